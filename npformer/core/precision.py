"""TF32: how a GPU multiplies float32 arrays."""

import threading

from npformer.core import checks
from npformer.core.arrays import backends, get_backend
from npformer.core.support.scoped_setting import ScopedSetting, Switch
from npformer.core.support.wording import describe

PRECISIONS = ("float32", "tf32")

_settings: dict[str, ScopedSetting[str]] = {}
"""By backend."""

_device_in_thread = threading.local()
"""How the device is set in this thread: an attribute for each backend."""

_device: dict[str, str] = {}
"""The same, by whichever thread set it last."""


def precision(backend: str) -> str:
    """Return how a backend multiplies float32 arrays in this context: "float32" or "tf32"."""
    return _setting(backend).value()


def set_device(backend: str) -> None:
    """Set this thread's device to the precision of this context, if it is set otherwise."""
    chosen = precision(backend)
    set_by_thread = getattr(_device_in_thread, backend, "float32")
    set_last = _device.get(backend, "float32")
    if chosen == set_by_thread == set_last:
        return
    set_tf32 = get_backend(backend).set_tf32
    if set_tf32 is None:
        raise ValueError(
            f"precision is 'tf32' and the backend is {backend!r}; expected 'float32', as TF32 "
            "is a format of NVIDIA's GPUs. Move the model there, model.to('cupy'), or leave "
            "the precision as it is"
        )
    set_tf32(chosen == "tf32")
    setattr(_device_in_thread, backend, chosen)
    _device[backend] = chosen


def _setting(backend: str) -> ScopedSetting[str]:
    if backend not in _settings:
        _settings.setdefault(backend, ScopedSetting(f"npformer.use_precision.{backend}", "float32"))
    return _settings[backend]


class use_precision(Switch[str]):
    """Set how float32 arrays are multiplied on a GPU; in a ``with`` statement, for its body alone.

    Parameters
    ----------
    precision : {"float32", "tf32"}
        "tf32" rounds the factors of matrix products to 10 bits after the point, about 3 digits, and
        sums in float32, which tensor cores do several times as fast. Nothing else changes.
    backend : str
        If it or its device has no TF32, "tf32" is a ValueError.

    Notes
    -----
    A ``with`` statement changes nothing for other threads, but for those that npformer itself
    starts in its body. On the device, the products of stacks of matrices follow a setting of the
    thread, and the products of two matrices one of the whole process. So if threads that compute at
    the same time ask for different precisions, the last one decides on products of two matrices.

    Examples
    --------
    >>> with npformer.use_precision("tf32"):
    ...     history = npformer.fit(model, (x, y))
    """

    def __init__(self, precision: str, backend: str = "cupy") -> None:
        self._backend = checks.choice("backend", backend, backends())
        if not isinstance(precision, str) or precision not in PRECISIONS:
            raise ValueError(
                f"precision is {describe(precision)}; expected 'float32' or 'tf32'. npformer has "
                "no float16 or bfloat16: 'tf32' is the fast choice on a GPU, with weights in "
                "float32"
            )
        setting = _setting(self._backend)
        super().__init__(setting, precision)
        try:
            set_device(self._backend)
        except BaseException:
            setting.take_back_default(self)
            raise

    def __enter__(self) -> None:
        super().__enter__()
        set_device(self._backend)

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        set_device(self._backend)
