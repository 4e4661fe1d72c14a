"""Files of text, also with ``.gz``, in any encoding; "-" is standard input."""

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
"""Byte order marks, by which a file says its encoding."""


def read_text(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> str:
    """Return the text of a file; lines end in a line feed alone.

    Raises
    ------
    FileNotFoundError, ValueError
        There is no such file; or it is in another encoding: the message names the line.
    """
    return decoded(checks.path("path", path), encoding).replace("\r\n", "\n")


def check_file(place: Path) -> None:
    """Check that there is a file."""
    if not place.is_file():
        odd = "is no regular file" if place.exists() else "does not exist"
        what = "is a folder" if place.is_dir() else odd
        raise FileNotFoundError(f"{place} {what}; expected a file")


def decoded(path: Path, encoding: str) -> str:
    """Return the text of a file as it stands, without a byte order mark.

    A mark decides the encoding of what is called UTF-8.
    """
    content, path = content_of(path), Path(named(path))
    check_format(str(path), content, "text")
    marked = next((name for mark, name in MARKS.items() if content.startswith(mark)), None)
    try:
        known = codecs.lookup(encoding).name
        if known == "utf-8" and marked is not None:
            known = encoding = marked
        if marked is not None and not known.startswith(marked.removesuffix("-sig")):
            raise ValueError(
                f"{path} begins with the mark of {marked.removesuffix('-sig')}, and the encoding "
                f"{encoding} is given; expected none: leave it out"
            )
        text = content.decode(encoding).lstrip("\ufeff")  # some programs write a mark each time
    except LookupError as error:
        raise ValueError(
            f"{error}; expected an encoding such as utf-8 or latin-1 to read {path}"
        ) from None
    except UnicodeError as error:
        what, likely = str(error), "'utf-8', 'latin-1' or 'cp1252'"
        if isinstance(error, UnicodeDecodeError):
            line = content.count(b"\n", 0, error.start) + 1
            what, likely = f"byte 0x{content[error.start]:02x} in line {line}", likely[9:]
            if b"\0" in content:
                likely = "'utf-16-le'"
        raise ValueError(
            f"{path} is not in {encoding}: {what}. Save it as UTF-8, or name its encoding: "
            f"encoding={likely}, on the command line --encoding"
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ValueError(
            f"{path}: line {line} has the character NUL, which no text has. Is it damaged, or in "
            "UTF-16 without a mark? Then encoding='utf-16-le', on the command line --encoding"
        )
    return text


def named(path: Path | str) -> str:
    """Return what a file is called in messages."""
    return "standard input" if str(path) == "-" else str(path)


def content_of(path: Path) -> bytes:
    """Return the bytes of a file, or of standard input, decompressed."""
    if str(path) == "-":
        content = _all_of(sys.stdin)
    else:
        check_file(path)
        content = path.read_bytes()
    if path.suffix.lower() != ".gz" and not content.startswith(b"\x1f\x8b"):  # no text does
        return content
    try:
        return gzip.decompress(content)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{named(path)} is not a complete .gz file: {error}") from None


@lru_cache(maxsize=1)
def _all_of(stream: Any) -> bytes:
    """Return all that a stream holds, which can be read only once."""
    found: bytes = stream.buffer.read()
    return found
