"""What npformer needs to know about an array library."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

Array: TypeAlias = Any
"""An array of any backend. NumPy's and CuPy's arrays share no base class, so this only informs
the reader. Functions check their arrays when they are called."""

Module: TypeAlias = Any
"""The namespace of a backend: ``numpy``, ``cupy``, or anything with the same functions."""


class BackendUnavailableError(RuntimeError):
    """The requested backend cannot run on this machine."""


class Feed(Protocol):
    """Brings batches to a device while it computes.

    Each call reuses memory, so launch all work on its result before the next call.
    """

    def __call__(self, *arrays: np.ndarray | None) -> tuple[Array, ...]:
        """Return NumPy arrays on the device, and None for None, without waiting for the copy."""

    def close(self) -> None:
        """Wait for all copies, so that the memory may be used for something else."""


@dataclass(frozen=True)
class Link:
    """What connects this process's device to those of other processes."""

    nccl: Module  # cupy.cuda.nccl, whose `available` is False without the library
    stream: Callable[[], int]  # a pointer to the stream on which work is launched now
    device: Callable[[], str]  # which device of this machine is in use: its address on the bus


@dataclass(frozen=True)
class Backend:
    """An array library: where its arrays live, and where it differs from NumPy."""

    name: str  # as a user writes it: "numpy", "cupy"
    module: Module  # the namespace with NumPy's function names
    array_type: type
    upload: Callable[[Any], Array]  # from a NumPy array
    download: Callable[[Array], np.ndarray]  # to a NumPy array
    erfcx: Callable[[Array], Array]  # elementwise
    fft: Callable[[], Module]  # returns the module with fft, fft2 and rfft
    add_at: Callable[[Array, Array, Array], None]  # like numpy.add.at
    device: Callable[[], str]  # returns a description of where the arrays live
    number: Callable[[], int] = int  # which device is in use, counted from 0
    details: Callable[[], list[tuple[str, str]]] = list  # about the device: (what, found)
    feed: Callable[[], Feed] | None = None  # None if arrays need no upload
    free_memory: Callable[[], None] = lambda: None  # releases unused memory
    link: Callable[[], Link] | None = None  # None if arrays of several processes meet on the host
    set_tf32: Callable[[bool], None] | None = None  # ValueError if the device has no TF32
