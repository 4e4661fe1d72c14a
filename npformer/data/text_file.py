"""Files of text, also with ``.gz``, in any encoding."""

import gzip
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from npformer.core import checks


def read_text(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> str:
    """Return the text of a file; lines end in a line feed alone.

    Raises
    ------
    FileNotFoundError, ValueError
        There is no such file; or it is in another encoding: the message names the line.
    """
    place = checks.path("path", path)
    check_file(place)
    with open_text(place, encoding) as file:
        return file.read().replace("\r\n", "\n")


def check_file(place: Path) -> None:
    """Check that there is a file."""
    if not place.is_file():
        what = "is a folder" if place.is_dir() else "does not exist"
        raise FileNotFoundError(f"{place} {what}; expected a file")


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[IO[str]]:
    """Open a text file; an encoding error says where it is and what to try."""
    try:
        with _binary(path) as raw, io.TextIOWrapper(raw, _with_mark(encoding), newline="") as file:
            yield file
    except LookupError as error:
        raise ValueError(f"{error}; expected an encoding such as utf-8 or latin-1") from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        with _binary(path) as file:
            marked = file.read(2) in (b"\xff\xfe", b"\xfe\xff")
        likely = "encoding='utf-16'" if marked else "encoding='latin-1' or 'cp1252'"
        raise ValueError(
            f"{path} is not in {encoding}: byte 0x{byte:02x} in {_place_of(path, encoding)}. Save "
            f"it as UTF-8, or name its encoding: {likely}, on the command line --encoding"
        ) from None
    except (gzip.BadGzipFile, EOFError) as error:
        raise ValueError(f"{path} is not a complete .gz file: {error}") from None


def _binary(path: Path) -> Any:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


def _with_mark(encoding: str) -> str:
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding


def _place_of(path: Path, encoding: str) -> str:
    """Return the first line that is not in an encoding, in words."""
    with _binary(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError:
                return f"line {number}"
    return "the file"
