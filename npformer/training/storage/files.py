"""Files that are whole or not there: written under another name, forced to disk, then renamed."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryFile
from typing import IO

try:
    import fcntl
except ImportError:  # Windows, which refuses to remove a file that is open
    fcntl = None  # type: ignore[assignment]


def write_whole(path: Path, *parts: bytes | memoryview) -> None:
    """Write a file, so that at every moment the old one or the new one is on disk.

    Data and folder are forced to disk. What earlier, interrupted writes of this file left behind is
    removed first. An OSError names the file.
    """
    with name_in_errors(path), replacement(path) as file:
        for part in parts:
            file.write(part)


@contextmanager
def replacement(path: Path) -> Iterator[IO[bytes]]:
    """Lend a file that becomes `path` when the body ends; after an error there is no such file.

    Until then it has another name, by which other processes may write into it, too. If there is a
    file, the new one has its mode; a link stays a link, to the new file.
    """
    with name_in_errors(path):
        path = path.resolve() if path.is_symlink() else path
        remove_unfinished(path)
        file = _begun(path)
        if path.exists():
            shutil.copymode(path, file.name)
    unfinished = Path(file.name)
    try:
        with file:
            yield file
            with name_in_errors(path):
                file.flush()
                os.fsync(file.fileno())
                if os.name == "posix":  # while locked; Windows renames closed files only
                    unfinished.replace(path)
        if os.name != "posix":
            unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _begun(path: Path) -> IO[bytes]:
    """Return a new file beside another one, locked, so that no process takes it for a leftover."""
    while True:
        # The name is random because another process may be writing the same file.
        file = path.with_name(f"{path.name}.{token_hex(4)}.part").open("wb")
        if _try_lock(file) and Path(file.name).exists():
            return file
        file.close()  # another process has just removed it
        Path(file.name).unlink(missing_ok=True)


def remove_unfinished(path: Path) -> None:
    """Remove what interrupted writes of a file left behind, but nothing that is being written."""
    for left in path.parent.glob(f"{escape(path.name)}.????????.part"):
        with suppress(OSError), left.open("rb") as file:
            if _try_lock(file):
                left.unlink(missing_ok=True)


def check_writable(folder: Path, n_bytes: int = 0) -> None:
    """Make a folder, and check that `n_bytes` can be written there; an OSError names what fails.

    Call it before work whose result is written there.
    """
    with name_in_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as file:
            file.write(bytes(n_bytes))
            file.flush()
            os.fsync(file.fileno())


def check_place(path: Path, example: str) -> None:
    """Check, before any work, that a file can be written there; `example` is the name of one."""
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
    if path.exists() and not path.is_file():  # it would be replaced, even if it is /dev/null
        raise FileExistsError(f"{path} is not a regular file; expected the name of a file")


@contextmanager
def name_in_errors(path: Path) -> Iterator[None]:
    """Make OSErrors name this path, and not the name under which a file is being written."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        if error.filename2 is not None:
            del error.filename2  # None would be shown: "-> None"
        raise


def _try_lock(file: IO[bytes]) -> bool:
    """Lock an open file, as long as it stays open; return False if another process has locked it.

    True where files cannot be locked.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network file systems
        return True
    return True


def _sync_folder(folder: Path) -> None:
    """Force a folder's names to disk, where folders can be opened."""
    with suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
