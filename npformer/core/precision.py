"""TF32: how a GPU multiplies float32 arrays."""

import threading
from contextlib import AbstractContextManager

from npformer.core import checks
from npformer.core.arrays import backends, get_backend
from npformer.core.support.words import described

PRECISIONS = ("float32", "tf32")

_in_this_thread = threading.local()  # its attributes are backends: what was set for each
_set_last: dict[str, str] = {}  # the same, by whichever thread set it last


def precision(backend: str) -> str:
    """Return how a backend multiplies float32 arrays in this thread: "float32" or "tf32"."""
    return getattr(_in_this_thread, backend, "float32")


class use_precision(AbstractContextManager["use_precision"]):
    """Set how float32 arrays are multiplied on a GPU; in a ``with`` statement, for its body.

    Parameters
    ----------
    precision : {"float32", "tf32"}
        "tf32" rounds the factors of matrix products to 10 bits after the point, about 3 digits, and
        sums in float32, which tensor cores do several times as fast. Nothing else changes.
    backend : str
        If it or its device has no TF32, "tf32" is a ValueError.

    Notes
    -----
    Set this in each thread: the products of stacks of matrices follow a setting of the thread. The
    products of two matrices follow a setting of the whole process, so if threads differ, the last
    one decides.

    Examples
    --------
    >>> with npformer.use_precision("tf32"):
    ...     history = npformer.fit(model, (x, y))
    """

    def __init__(self, precision: str, backend: str = "cupy") -> None:
        self._backend = checks.choice("backend", backend, backends())
        self._before = getattr(_in_this_thread, backend, "float32")
        self._set(precision)

    def __exit__(self, *exception: object) -> None:
        self._set(self._before)

    def _set(self, wanted: str) -> None:
        backend = self._backend
        if not isinstance(wanted, str) or wanted not in PRECISIONS:
            raise ValueError(
                f"precision is {described(wanted)}; expected 'float32' or 'tf32'. npformer has no "
                "float16 or bfloat16: 'tf32' is the fast choice on a GPU, with weights in float32"
            )
        if wanted == precision(backend) == _set_last.get(backend, "float32"):
            return
        set_tf32 = get_backend(backend).set_tf32
        if set_tf32 is None:
            raise ValueError(
                f"precision is 'tf32' and the backend is {backend!r}; expected 'float32', as TF32 "
                "is a format of NVIDIA's GPUs. Move the model there, model.to('cupy'), or leave "
                "the precision as it is"
            )
        set_tf32(wanted == "tf32")
        setattr(_in_this_thread, backend, wanted)
        _set_last[backend] = wanted
