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


class NameTakenError(FileExistsError):
    """Another file got the name while this one was being written.

    Attributes
    ----------
    written : Path
        Where what was written is now.
    """

    def __init__(self, path: Path, written: Path) -> None:
        super().__init__(
            f"another program wrote {path} while this one was at work; its file stays, and what "
            f"was to be written there is in {written}"
        )
        self.written = written


def write_whole(path: Path, *chunks: bytes | memoryview, overwrite: bool = True) -> None:
    """Write a file, so that at every moment the old one or the new one is on disk.

    Data and folder are forced to disk. What earlier, interrupted writes of this file left behind is
    removed first. An OSError names the file. Without `overwrite`, see `replacement`.
    """
    with name_in_errors(path), replacement(path, overwrite=overwrite) as file:
        for chunk in chunks:
            file.write(chunk)


@contextmanager
def replacement(path: Path, *, overwrite: bool = True) -> Iterator[IO[bytes]]:
    """Lend a file that becomes `path` when the body ends; after an error there is no such file.

    Until then it has another name, by which other processes may write into it, too. If there is a
    file, the new one has its mode; a link stays a link, to the new file.

    Without `overwrite`, a file that came into being meanwhile stays. The lent one then gets a name
    beside it, which `NameTakenError` says: an hour of work is not lost to a name.
    """
    give_name = _replace_old_file if overwrite else _give_new_name
    with name_in_errors(path):
        path = path.resolve() if overwrite and path.is_symlink() else path
        remove_unfinished(path)
        file = _open_beside(path)
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
                    give_name(unfinished, path)
        if os.name != "posix":
            give_name(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _replace_old_file(unfinished: Path, path: Path) -> None:
    """Rename a file; what had its new name is gone."""
    unfinished.replace(path)


def _give_new_name(unfinished: Path, path: Path) -> None:
    """Rename a file, unless the name is taken."""
    try:
        path.hardlink_to(unfinished)  # at once or not at all; a rename would replace
    except OSError:
        if not os.path.lexists(path):  # a file system without links
            unfinished.replace(path)
            return
        beside = path.with_name(f"{path.stem}-{token_hex(4)}{path.suffix}")
        unfinished.replace(beside)
        raise NameTakenError(path, beside) from None


def _open_beside(path: Path) -> IO[bytes]:
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
    for left in path.parent.glob(f"{escape(path.name)}.{8 * '[0-9a-f]'}.part"):
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


@contextmanager
def name_in_errors(path: Path) -> Iterator[None]:
    """Make OSErrors name this path, and not the name under which a file is being written."""
    try:
        yield
    except NameTakenError:  # which names both
        raise
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
