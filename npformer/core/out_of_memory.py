"""Errors for too little memory: what was too large, and what to try."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from npformer.core.arrays import get_backend
from npformer.core.precision import set_device

_MOST_GIB = 2**30  # an exbibyte: no address space has more, and NumPy counts in 64 bits


class BatchTooLargeError(MemoryError):
    """The device or the host has too little memory for a batch of `batch_size` samples."""

    def __init__(self, message: str, batch_size: int) -> None:
        super().__init__(message)
        self.batch_size = batch_size

    def __reduce__(self) -> Any:  # it may come from a worker process
        return type(self), (str(self), self.batch_size), self.__dict__


NO_MEMORY = ("ALLOC_FAILED", "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY")
"""What cuBLAS, cuFFT, and the runtime and driver of CUDA say when there is no memory left."""


@contextmanager
def guard_computation(backend: str, batch: int, at_once: int | None = None) -> Iterator[None]:
    """Raise BatchTooLargeError if memory runs out, and free what the computation held.

    A device multiplies with the precision of this context, which another thread may have changed.
    NumPy does not warn of numbers that overflow: the loss shows it, and `fit` names the tensor.
    `batch` is how many samples the batch has, and `at_once` how many of them are computed at a
    time, if the caller can choose that.
    """
    if backend != "numpy":
        set_device(backend)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except BatchTooLargeError:
        raise
    except (MemoryError, RuntimeError) as error:  # CuPy's is the first, those of CUDA the second
        if not says_no_memory(error):
            raise
        free_activations(error, backend)
        raise too_large(error, backend, batch, at_once) from error


def says_no_memory(error: Exception) -> bool:
    """Return whether an error says that there is no memory left."""
    return isinstance(error, MemoryError) or any(word in str(error) for word in NO_MEMORY)


def free_activations(error: BaseException, backend: str) -> None:
    """Free what the frames of an error hold, and the backend's unused memory."""
    from traceback import clear_frames

    # The variables of the frames are activations. They would live as long as the traceback.
    earlier: BaseException | None = error
    while earlier is not None:
        clear_frames(earlier.__traceback__)
        earlier = earlier.__context__
    get_backend(backend).free_memory()


def too_large(
    error: Exception, backend: str, batch: int, at_once: int | None
) -> BatchTooLargeError:
    """Return the error that says what did not fit, and what to try."""
    tried = min(batch, at_once or batch)
    advice = f"batch_size={batch // 2}" if batch > 1 else "shorter sequences or a smaller model"
    if at_once is not None and tried > 1:
        advice += f" or micro_batch={tried // 2}, which makes the same step in smaller parts"
    reason = str(error).rstrip(".") or "the system gave no memory"
    return BatchTooLargeError(
        f"out of memory on backend {backend!r} with {tried} sequence{'s' * (tried > 1)} at a "
        f"time ({reason}). Try {advice}. What was computed has been "
        "freed: this process can go on",
        batch,
    )


@contextmanager
def enough_memory(what: str, shape: tuple[int, ...]) -> Iterator[None]:
    """Explain that there is no memory for numbers of some shape, which `what` describes."""
    gib = math.prod(shape) * 8 / 2**30  # values are drawn in float64
    try:
        if gib > _MOST_GIB:
            raise MemoryError
        yield
    except MemoryError:
        raise MemoryError(
            f"{what} would have shape {shape} and take {gib:.3g} GiB, more than this machine has; "
            "expected smaller sizes"
        ) from None
