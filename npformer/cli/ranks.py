"""The command line as one rank of several: rank 0 prints and writes, the others only compute."""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from npformer.training.distributed import Communicator

TOGETHER = ("train", "pretrain", "evaluate", "predict", "doctor")
"""Commands that several ranks run together."""


def check_together(ranks: Communicator, command: str) -> None:
    """Raise ValueError if a command is for one process, and there are several ranks."""
    if ranks.size > 1 and command not in TOGETHER:
        raise ValueError(
            f"mpiexec started {ranks.size} processes, and this command is for one; expected "
            f"{', '.join(TOGETHER)}. Run it without mpiexec"
        )


def who_is_who(ranks: Communicator) -> str:
    """Return which process on which machine each rank is; "" for a single one.

    If one is killed, the launcher ends all at once, and names only the process.
    """
    if ranks.size == 1:
        return ""
    processes = ranks.gather((os.getpid(), platform.node()))
    listed = (f"{k} is process {pid} on {node}" for k, (pid, node) in enumerate(processes))
    return f"{ranks.size} ranks: {', '.join(listed)}"


@contextmanager
def only_the_first_speaks(ranks: Communicator) -> Iterator[None]:
    """Keep results and warnings of all ranks but the first from being printed."""
    if ranks.rank == 0:
        yield
        return
    with (
        Path(os.devnull).open("w") as nowhere,
        redirect_stdout(nowhere),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


@contextmanager
def own_folder(ranks: Communicator, path: Path) -> Iterator[Path]:
    """Yield the folder that a rank writes into: the run's for the first, else a temporary one."""
    if ranks.rank == 0:
        yield path
        return
    with TemporaryDirectory(prefix="npformer-rank-") as folder:
        yield Path(folder) / "run"
