"""Errors that say more: where, or what was too large for the memory, and what to try."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import numpy as np

from npformer.core import checks
from npformer.core.arrays import get_backend

P = ParamSpec("P")
R = TypeVar("R")

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
def guarded_computation(backend: str, batch: int, at_once: int | None = None) -> Iterator[None]:
    """Raise BatchTooLargeError if memory runs out, and free what the computation held.

    NumPy does not warn of numbers that overflow: the loss shows it, and `fit` names the tensor.
    `batch` is how many samples the batch has, and `at_once` how many of them are computed at a
    time, if the caller can choose that.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except BatchTooLargeError:
        raise
    except (MemoryError, RuntimeError) as error:  # CuPy's is the first, those of CUDA the second
        if not isinstance(error, MemoryError) and not any(word in str(error) for word in NO_MEMORY):
            raise
        from traceback import clear_frames

        # The variables of the frames are activations. They would live as long as the traceback.
        earlier: BaseException | None = error
        while earlier is not None:
            clear_frames(earlier.__traceback__)
            earlier = earlier.__context__
        get_backend(backend).free_memory()
        tried = min(batch, at_once or batch)
        less = f"batch_size={batch // 2}" if batch > 1 else "shorter sequences or a smaller model"
        if at_once is not None and tried > 1:
            less += f" or micro_batch={tried // 2}, which makes the same step in smaller parts"
        reason = str(error).rstrip(".") or "the system gave no memory"
        raise BatchTooLargeError(
            f"out of memory on backend {backend!r} with {tried} sequence{'s' * (tried > 1)} at a "
            f"time ({reason}). Try {less}. What was computed has been "
            "freed: this process can go on",
            batch,
        ) from error


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


@contextmanager
def located_errors(where: str) -> Iterator[None]:
    """Put `where`, such as "in data, ", in front of TypeErrors and ValueErrors of the body."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}{error}") from error


PAIRS = (
    "hidden_size=d_model embed_dim=d_model embedding_dim=d_model n_embd=d_model dim=d_model "
    "num_layers=n_layers num_hidden_layers=n_layers depth=n_layers nhead=n_heads num_heads=n_heads "
    "num_attention_heads=n_heads dim_feedforward=d_ff intermediate_size=d_ff torch_dtype=dtype "
    "max_position_embeddings=max_len num_labels=n_classes num_classes=n_classes verbose=progress "
    "padding_idx=padding_id attention_mask=mask key_padding_mask=mask token_type_ids=types "
    "learning_rate=lr num_epochs=epochs validation_data=validation max_grad_norm=clip_norm"
)
"""Names in PyTorch, Keras, scikit-learn and Hugging Face's libraries, each with that here."""
ELSEWHERE = dict(pair.split("=") for pair in PAIRS.split())


def in_our_words(call: Callable[P, R]) -> Callable[P, R]:
    """Make a function say which arguments it takes, if it is given another."""
    known = [n for n, p in signature(call).parameters.items() if n != "self" and str(p)[0] != "*"]

    @wraps(call)
    def checked(*values: P.args, **named: P.kwargs) -> R:
        if unknown := [name for name in named if name not in known]:
            hint = checks.did_you_mean(ELSEWHERE.get(unknown[0], unknown[0]), known)
            what = call.__qualname__.removesuffix(".__init__")
            raise TypeError(f"{what} takes no {unknown[0]!r}; it takes {', '.join(known)}{hint}")
        return call(*values, **named)

    return checked
