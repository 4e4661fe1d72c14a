"""Where faster versions of plain functions and layers are registered, and the switch for them.

Plain code asks `faster` for a version that may run in its place. Importing `npformer.engine`
registers its kernels and twins; without it, or in ``use_kernels(False)``, everything runs as it is
written.
"""

from collections.abc import Callable
from typing import Any

from npformer.core.support.words import described

_finders: dict[Any, Callable[[Any], Any]] = {}
_enabled = True


def register(plain: Any, find: Callable[[Any], Any]) -> None:
    """Register ``find(x)``: the version of `plain` for something like x, or None."""
    _finders[plain] = find


def faster(plain: Any, x: Any) -> Any:
    """Return what is to run in place of `plain` for something like x; None if nothing is."""
    return _finders[plain](x) if _enabled and plain in _finders else None


class use_kernels:
    """Switch the engine on or off for the whole process; in a ``with`` statement, for its body.

    Parameters
    ----------
    enabled : bool
        False: every model runs as it is written, with the pairs of `npformer.functional`, for
        reading and debugging. The numbers agree up to rounding, except that a GPU that draws
        dropout's masks itself (``fit(masks="device")``) draws different ones.

    Examples
    --------
    >>> with npformer.use_kernels(False):
    ...     loss, gradients = model.loss_and_gradients(x, y)
    """

    def __init__(self, enabled: bool) -> None:
        global _enabled
        if not isinstance(enabled, bool):
            raise TypeError(f"enabled is {described(enabled)}; expected True or False")
        self._before, _enabled = _enabled, enabled

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        global _enabled
        _enabled = self._before


def enabled() -> bool:
    """Return whether the engine is on."""
    return _enabled
