"""The switch that turns the engine on and off."""

_enabled = True


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
            raise TypeError(f"enabled is {enabled!r}; expected True or False")
        self._before, _enabled = _enabled, enabled

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        global _enabled
        _enabled = self._before


def enabled() -> bool:
    """Return whether the engine is on."""
    return _enabled
