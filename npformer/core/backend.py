"""What npformer needs to know of an array library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

Array: TypeAlias = Any
"""An array of any backend. NumPy's and CuPy's arrays share no base class, so this is a name for
the reader; what a function expects stands in its docstring and is checked when it is called."""


Module: TypeAlias = Any
"""The namespace of a backend: ``numpy``, ``cupy``, or anything that spells the same functions."""


class BackendUnavailableError(RuntimeError):
    """The backend that was asked for cannot run on this machine."""


class Feed(Protocol):
    """Brings batches to a device while it computes.

    What a call returns is for work that is launched before the next call: its memory is used again.
    """

    def __call__(self, *arrays: np.ndarray | None) -> tuple[Array, ...]:
        """Return NumPy arrays on the device, None as it is; the host does not wait for the copy."""

    def close(self) -> None:
        """Wait until nothing is under way: the memory may then be used for something else."""


def _nothing() -> None:
    """Do nothing, where a library has nothing to do."""


@dataclass(frozen=True)
class Backend:
    """What npformer needs to know of an array library.

    Attributes
    ----------
    name : str
        The word a user writes: ``"numpy"``, ``"cupy"``.
    module : module
        The namespace with NumPy's function names.
    array_type : type
        The class of its arrays.
    upload : callable
        NumPy array -> array of this backend.
    download : callable
        Array of this backend -> NumPy array. The one way back to the host.
    erf : callable
        The error function, elementwise.
    fft : callable
        Returns the module with ``fft2``, ``rfft`` and ``fft`` for these arrays.
    add_at : callable
        ``add_at(target, indices, values)``: ``target[indices] += values``, adding once for every
        time that an index occurs.
    device : callable
        Where the arrays live, in words.
    details : callable
        Lines about the device, ``[(what, found), ...]``, for `npformer doctor`.
    feed : callable or None
        Returns a `Feed`; None where host arrays need no way to go.
    free_memory : callable
        Gives memory that is held for later use back to the system.
    set_tf32 : callable or None
        ``set_tf32(on)`` rounds the factors of float32 products to TF32 from now on, or no longer;
        None where there is no TF32. Raises ValueError if the device has none.
    """

    name: str
    module: Module
    array_type: type
    upload: Callable[[Any], Array]
    download: Callable[[Array], np.ndarray]
    erf: Callable[[Array], Array]
    fft: Callable[[], Module]
    add_at: Callable[[Array, Array, Array], None]
    device: Callable[[], str]
    details: Callable[[], list[tuple[str, str]]] = list
    feed: Callable[[], Feed] | None = None
    free_memory: Callable[[], None] = _nothing
    set_tf32: Callable[[bool], None] | None = None
