"""The ranks that a launcher such as mpiexec has started, this process among them."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from npformer.core import describe
from npformer.training.distributed.communicator import Communicator

SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
"""Variables that launchers set to the number of ranks."""

RANKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK")
"""Variables of which they set at least one if they do not state the number of ranks."""


def number_of_launched_ranks() -> int | None:
    """Return how many ranks a launcher started; 0 if it does not say, None if there was none."""
    for name in SIZES:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0 if any(name in os.environ for name in RANKS) else None


class LauncherError(RuntimeError):
    """A launcher started several ranks, and they cannot find each other."""


@cache
def world() -> Communicator:
    """Return the ranks that mpiexec or another launcher of MPI started; without one, a single rank.

    mpi4py is imported only if there is a launcher. Raises LauncherError if it is missing, or if it
    belongs to another MPI than the launcher.
    """
    launched = number_of_launched_ranks()
    if launched is None or launched == 1:
        return Communicator()
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise LauncherError(
            f"this process was started by mpiexec, and mpi4py cannot be imported ({error}); "
            "expected mpi4py beside npformer. Install it: python -m pip install 'npformer[mpi]'"
        ) from error
    size = MPI.COMM_WORLD.Get_size()
    if size == 1 and launched > 1:
        library = MPI.Get_library_version().partition("\n")[0].strip(" \0")
        raise LauncherError(
            f"mpiexec started {launched} ranks, and mpi4py sees 1; expected the mpiexec of "
            f"mpi4py's own library, {library}. Each rank would train by itself. `python -m mpi4py "
            "--mpi-lib-version` names the library"
        )
    return communicator_of(MPI.COMM_WORLD)


def communicator_of(communicator: Any) -> Communicator:
    """Return what `fit` was given: a `Communicator`, one of mpi4py, or None for a single rank."""
    if communicator is None:
        return Communicator()
    if isinstance(communicator, Communicator):
        return communicator
    if not all(hasattr(communicator, name) for name in ("Dup", "Iallgather", "Split_type")):
        raise TypeError(
            f"communicator is {describe(communicator)}; expected npformer.distributed.world(), a "
            "communicator of mpi4py such as MPI.COMM_WORLD, or None"
        )
    if communicator.Get_size() == 1:
        return Communicator()
    from npformer.training.distributed.mpi import MPICommunicator

    return MPICommunicator(communicator)
