"""Where results go: no file that is there already is replaced, unless somebody says so.

Pipes and terminals, such as ``/dev/stdout``, hold nothing that could be lost: they are written to.
"""

import os
import re
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from npformer.training.storage.files import name_in_errors, write_whole

STANDARD = {"/dev/stdout": 1, "/dev/stderr": 2}

OPEN_FILE = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,9})")
"""What the system calls a file that this process has open."""


def check_place(
    path: Path, example: str, *, overwrite: bool = False, regular: bool = False
) -> None:
    """Check, before any work, that a file can be written there; `example` is the name of one.

    With `regular`, pipes and devices are refused, too.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path} is in a folder that does not exist; create it first")
    if path.is_dir():
        raise IsADirectoryError(
            f"{path} is a folder; expected the name of a file, such as {path / example}"
        )
    if path.suffix in (".safetensors", ".json", ".jsonl") and path.suffix != Path(example).suffix:
        raise ValueError(
            f"{path} has the ending of a file of a run, which it might replace; expected another "
            f"name, such as {path.with_name(example)}"
        )
    if is_stream(path) and not regular:
        return
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path} is not a regular file; expected the name of a file")
    if not overwrite:
        check_new(path)


def check_new(path: Path) -> None:
    """Raise FileExistsError if there is a file of this name, or a link, wherever it leads."""
    if os.path.lexists(path):
        raise FileExistsError(
            f"{path} exists already; expected a new name. To replace it, pass overwrite=True"
        )


def check_not_read(name: str, path: Path, sources: Iterable[Path]) -> None:
    """Raise ValueError if a result would replace what it is computed from, by whatever name."""
    if path.is_file() and not is_stream(path):
        for source in sources:
            if os.path.isfile(source) and path.samefile(source):  # noqa: PTH113 - of any length
                raise ValueError(f"{name} {path} is the file that is read; expected another name")


def write_output(path: Path, *parts: bytes, overwrite: bool) -> None:
    """Write a result, whole or not at all, after `check_place`; an OSError names the file."""
    if not is_stream(path):
        write_whole(path, *parts, overwrite=overwrite)
        return
    with name_in_errors(path), _open_stream(path) as stream:
        stream.writelines(parts)


def is_stream(path: Path) -> bool:
    """Return whether a path is a pipe, a terminal, or a file that this process has open."""
    if _descriptor(path) is not None:
        return True
    try:
        mode = path.stat().st_mode
    except OSError:  # there is no such file
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def _descriptor(path: Path) -> int | None:
    """Return the number of the open file that a path names; None if it does not."""
    if os.name != "posix":
        return None
    named = OPEN_FILE.fullmatch(str(path))
    return int(named[1]) if named else STANDARD.get(str(path))


def _open_stream(path: Path) -> IO[bytes]:
    """Return a stream to write to. What has been printed comes first."""
    descriptor = _descriptor(path)
    if descriptor is None:
        return os.fdopen(os.open(path, os.O_WRONLY), "wb")
    sys.stdout.flush()
    # Not opened anew: what standard output leads to may be a file that others write to as well.
    return os.fdopen(os.dup(descriptor), "wb")
