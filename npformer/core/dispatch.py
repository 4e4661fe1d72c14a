"""Where faster versions of plain functions and layers are registered, and the switch for them.

Plain code asks `faster` for a version that may run in its place. Importing `npformer.engine`
registers its kernels and twins; without it, or in ``use_kernels(False)``, everything runs as it is
written.
"""

from collections.abc import Callable
from typing import Any

from npformer.core.support.scoped_setting import ScopedSetting, Switch
from npformer.core.support.wording import describe

_finders: dict[Any, Callable[[Any], Any]] = {}
_enabled = ScopedSetting("npformer.use_kernels", True)


def register(plain: Any, find: Callable[[Any], Any]) -> None:
    """Register ``find(x)``: the version of `plain` for something like x, or None."""
    _finders[plain] = find


def faster(plain: Any, x: Any) -> Any:
    """Return what is to run in place of `plain` for something like x; None if nothing is."""
    return _finders[plain](x) if plain in _finders and _enabled.value() else None


class use_kernels(Switch[bool]):
    """Switch the engine on or off for the process; in a ``with`` statement, for its body alone.

    Parameters
    ----------
    enabled : bool
        False: every model runs as it is written, with the pairs of `npformer.functional`, for
        reading and debugging. The numbers agree up to rounding, except that a GPU that draws
        dropout's masks itself (``fit(masks="device")``) draws different ones.

    Notes
    -----
    A ``with`` statement changes nothing for other threads, but for those that npformer itself
    starts in its body.

    Examples
    --------
    >>> with npformer.use_kernels(False):
    ...     loss, gradients = model.loss_and_gradients(x, y)
    """

    def __init__(self, enabled: bool) -> None:
        if not isinstance(enabled, bool):
            raise TypeError(f"enabled is {describe(enabled)}; expected True or False")
        super().__init__(_enabled, enabled)


def enabled() -> bool:
    """Return whether the engine is on in this context."""
    return _enabled.value()
