"""Running out of memory: an error that says which batch size to try."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from npformer.core.arrays import get_backend


class BatchTooLargeError(MemoryError):
    """The memory of the device, or of the host, is not enough for a batch of this size.

    Attributes
    ----------
    batch_size : int
        What was tried.
    """

    def __init__(self, message: str, batch_size: int) -> None:
        super().__init__(message)
        self.batch_size = batch_size

    def __reduce__(self) -> Any:  # it may come from a worker process
        return type(self), (str(self), self.batch_size), self.__dict__


NO_MEMORY = ("ALLOC_FAILED", "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY")
"""How cuBLAS, cuFFT, CUDA's runtime and its driver say that there is no memory left."""


@contextmanager
def explained_memory_error(backend: str, batch: int, at_once: int | None = None) -> Iterator[None]:
    """Turn running out of memory into an error that says which batch size to try.

    What the failed computation held is let go, and the pool of memory is emptied, so that the
    caller can go on with a smaller batch.

    Parameters
    ----------
    backend : str
        Where it happened.
    batch : int
        Samples of the batch.
    at_once : int, optional
        Samples that were computed at a time, where the caller can choose that apart from the batch.

    Raises
    ------
    BatchTooLargeError
        From MemoryError, as CuPy's OutOfMemoryError is one, or from an error of CUDA's libraries
        that says the same.
    """
    try:
        yield
    except BatchTooLargeError:
        raise
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(word in str(error) for word in NO_MEMORY):
            raise
        from traceback import clear_frames

        # Their variables are the activations; as long as the traceback lives, so would they.
        earlier: BaseException | None = error
        while earlier is not None:
            clear_frames(earlier.__traceback__)
            earlier = earlier.__context__
        get_backend(backend).free_memory()
        tried = min(batch, at_once or batch)
        ways = [f"batch_size={batch // 2}"] if batch > 1 else []
        if at_once is not None and tried > 1:
            ways.append(f"micro_batch={tried // 2}, which makes the same step in smaller parts")
        said = str(error).rstrip(".") or "the system gave no memory"
        several = "s" if tried > 1 else ""
        raise BatchTooLargeError(
            f"out of memory on backend {backend!r} with {tried} sequence{several} at a time "
            f"({said}). Try "
            + (" or ".join(ways) or "shorter sequences or a smaller model")
            + ". What was computed has been let go: this process can go on",
            batch,
        ) from error
