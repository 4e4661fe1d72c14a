"""Files whose first bytes show another format than their names."""

from pathlib import Path

POINTER = b"version https://git-lfs.github.com/spec/"
"""First bytes of the file that Git LFS leaves in place of a large one."""

EXPORT = "Open it in Excel or LibreOffice, and save it as CSV UTF-8"
UNPACK = "Unpack it, and name the file in it"

STARTS = {
    b"PK\x03\x04": (
        "an Excel or LibreOffice file, or another archive in ZIP format",
        f"{EXPORT}; unpack an archive, and name the file in it",
    ),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ("an old Excel file", EXPORT),
    POINTER: (
        "a pointer of Git LFS in place of the file",
        "Run `git lfs pull` where it was cloned, or download the file itself",
    ),
    b"PAR1": ("a Parquet file", "Let its name end in .parquet"),
    b"\x93NUMPY": ("an array in NumPy's format", "Let its name end in .npy"),
    b"SQLite format 3\0": ("an SQLite database", "Export the table as CSV"),
    b"\x89HDF\r\n\x1a\n": ("an HDF5 file", "Write its table as CSV"),
    b"ARROW1": ("an Arrow file", "Write its table as Parquet or CSV"),
    b"%PDF-": ("a PDF file", "Write its table or its text into a separate file"),
    b"{\\rtf": ("a file in rich text format", "Save it as plain text in UTF-8"),
    b"BZh": ("compressed by bzip2", UNPACK),
    b"\xfd7zXZ\0": ("compressed by xz", UNPACK),
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", UNPACK),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", UNPACK),
    b"Rar!\x1a\x07": ("a RAR archive", UNPACK),
}
"""By its first bytes: what a file is, and what to do with it."""

PAGES = (b"<!doctype html", b"<html", b"<?xml", b"<table")
"""First bytes of web pages, often downloaded in place of the table that they show."""


def check_format(name: str, content: bytes, expected: str) -> None:
    """Raise ValueError for bytes of a known binary format, or of a pointer to another file.

    `name` is the name of the file; `expected` says what it should have been.
    """
    for start, (format, advice) in STARTS.items():
        if content.startswith(start):
            raise ValueError(f"{name} is {format}; expected {expected}. {advice}")


def check_is_no_pointer(path: Path) -> None:
    """Raise ValueError if a file is a pointer that Git LFS left in its place."""
    if not path.is_file():  # reading a pipe or a device could wait forever
        return
    with path.open("rb") as file:
        start = file.read(len(POINTER))
    if start == POINTER:
        format, advice = STARTS[POINTER]
        raise ValueError(f"{path} is {format}; expected the file itself. {advice}")


def check_is_no_page(name: str, text: str) -> None:
    """Raise ValueError for a web page in place of a table."""
    if text.lstrip()[:20].lower().encode("utf-8", "replace").startswith(PAGES):
        raise ValueError(
            f"{name} is a page in HTML or XML; expected a table. Download the file itself: on "
            "GitHub by its button Raw, elsewhere by its link for downloads"
        )
