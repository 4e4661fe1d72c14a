"""Text files, also with ``.gz``, in any encoding; "-" is standard input."""

import codecs
import gzip
import os
import sys
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from npformer.core import checks
from npformer.data.formats import check_format

MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # begins like the mark of UTF-16, so it comes first
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks, which show the encoding of a file."""


def read_text(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> str:
    """Return the text of a file; each line ends in a single line feed.

    Raises
    ------
    FileNotFoundError, ValueError
        The file does not exist, or it is in another encoding; the message names the line.
    """
    return decode_file(checks.path("path", path), encoding).replace("\r\n", "\n")


def check_file(path: Path) -> None:
    """Raise FileNotFoundError unless a path is a regular file."""
    if path.is_file():
        return
    if path.is_dir():
        problem = "is a folder"
    elif path.exists():
        problem = "is no regular file"
    else:
        problem = "does not exist"
    raise FileNotFoundError(f"{path} {problem}; expected a file")


def decode_file(path: Path, encoding: str) -> str:
    """Return the text of a file unchanged, except for its byte order mark.

    A mark overrides the encoding UTF-8.
    """
    content = content_of(path)
    path = Path(display_name(path))
    check_format(str(path), content, "text")
    try:
        encoding = _encoding_by_mark(path, content, encoding)
        text = content.decode(encoding).lstrip("\ufeff")  # some programs write several marks
    except LookupError as error:
        raise ValueError(
            f"{error}; expected an encoding such as utf-8 or latin-1 to read {path}"
        ) from None
    except UnicodeError as error:
        raise _decoding_error(path, content, encoding, error) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ValueError(
            f"{path}: line {line} has the character NUL, which no text has. Is it damaged, or in "
            "UTF-16 without a mark? Then encoding='utf-16-le', on the command line --encoding"
        )
    return text


def _encoding_by_mark(path: Path, content: bytes, encoding: str) -> str:
    """Return the encoding of a file, after comparing it with its byte order mark, if any."""
    name = codecs.lookup(encoding).name
    encoding_of_mark = next((e for mark, e in MARKS.items() if content.startswith(mark)), None)
    if encoding_of_mark is None:
        return encoding
    if name == "utf-8":
        return encoding_of_mark
    family = encoding_of_mark.removesuffix("-sig")
    if not name.startswith(family):
        raise ValueError(
            f"{path} begins with the mark of {family}, and the encoding {encoding} is given; "
            "expected none: leave it out"
        )
    return encoding


def _decoding_error(path: Path, content: bytes, encoding: str, error: UnicodeError) -> ValueError:
    """Return the error for a file that is not in an encoding, with likely other encodings."""
    problem = str(error)
    likely = "'utf-8', 'latin-1' or 'cp1252'"
    if isinstance(error, UnicodeDecodeError):
        line = content.count(b"\n", 0, error.start) + 1
        problem = f"byte 0x{content[error.start]:02x} in line {line}"
        likely = "'utf-16-le'" if b"\0" in content else "'latin-1' or 'cp1252'"
    return ValueError(
        f"{path} is not in {encoding}: {problem}. Save it as UTF-8, or name its encoding: "
        f"encoding={likely}, on the command line --encoding"
    )


def display_name(path: Path | str) -> str:
    """Return the name of a file for messages."""
    return "standard input" if str(path) == "-" else str(path)


def content_of(path: Path) -> bytes:
    """Return the bytes of a file, or of standard input, decompressed."""
    if str(path) == "-":
        content = _all_of(sys.stdin)
    else:
        check_file(path)
        content = path.read_bytes()
    if path.suffix.lower() != ".gz" and not content.startswith(b"\x1f\x8b"):  # no text begins so
        return content
    try:
        return gzip.decompress(content)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{display_name(path)} is not a complete .gz file: {error}") from None


@lru_cache(maxsize=1)
def _all_of(stream: Any) -> bytes:
    """Return all bytes of a stream; the cache is needed because it can be read only once."""
    content: bytes = stream.buffer.read()
    return content
