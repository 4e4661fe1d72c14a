"""TF32: how a GPU multiplies float32 arrays."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager

from npformer.core.arrays import get_backend

PRECISIONS = ("float32", "tf32")


class _Precisions(threading.local):
    """What backends were told in this thread; "float32" where nothing."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}


_precisions = _Precisions()


_asked_last: dict[str, str] = {}  # in whichever thread


def precision(backend: str) -> str:
    """Return how a backend multiplies float32 arrays: "float32", or "tf32" where that was asked.

    Parameters
    ----------
    backend : str
        A name in `backends()`.
    """
    return _precisions.of.get(backend, "float32")


class use_precision(AbstractContextManager[None]):
    """Set how float32 arrays are multiplied on a GPU; in a ``with`` statement, for its body.

    Parameters
    ----------
    precision : {"float32", "tf32"}
        "tf32": the factors of matrix products are rounded to 10 bits behind the point, 3 digits,
        and summed in float32, which tensor cores do several times as fast. Everything else, and
        float64, stays as it is.
    backend : str
        Whose products; TF32 is a format of NVIDIA's GPUs.

    Raises
    ------
    ValueError
        Another precision, or a backend or device that has no TF32.
    BackendUnavailableError
        There is no GPU.

    Notes
    -----
    It is for the thread that sets it: cuBLAS keeps its mode for each, and products of stacks of
    matrices follow that. For products of two matrices CuPy keeps one setting in the whole process:
    where threads ask for different precisions at once, those follow who asked last.

    Examples
    --------
    >>> with npformer.use_precision("tf32"):
    ...     history = npformer.fit(model, (x, y))
    """

    def __init__(self, precision: str, backend: str = "cupy") -> None:
        self._backend = backend
        self._before = _precisions.of.get(backend, "float32")
        self._set(precision)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        self._set(self._before)

    def _set(self, precision: str) -> None:
        backend = self._backend
        if precision not in PRECISIONS:
            raise ValueError(
                f"precision is {precision!r}; expected 'float32' or 'tf32'. npformer has no "
                "float16 and no bfloat16: 'tf32' is the fast way on a GPU, with weights in float32"
            )
        here, anywhere = (asked.get(backend, "float32") for asked in (_precisions.of, _asked_last))
        if here == anywhere == precision:
            return
        set_tf32 = get_backend(backend).set_tf32
        if set_tf32 is None:
            raise ValueError(
                f"precision is 'tf32' and the backend is {backend!r}; expected 'float32', for TF32 "
                "is a format of NVIDIA's GPUs. Move the model there, model.to('cupy'), or leave "
                "the precision as it is"
            )
        set_tf32(precision == "tf32")
        _precisions.of[backend] = _asked_last[backend] = precision
