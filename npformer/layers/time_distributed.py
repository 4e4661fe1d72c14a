"""TimeDistributed: one layer applied to every time step."""

from typing import Any

from npformer.core import Array, Context, Gradients, Layer, a_type, checks


class TimeDistributed(Layer):
    """y[:, t] = layer(x[:, t]) for every t, with the same weights.

    Time steps become part of the batch, and are separated again afterwards. Around a `Linear`
    this changes nothing, as it treats all leading axes as rows: a dense layer over a sequence, a
    time-distributed one and a convolution with kernel size 1 are the same map.

    Parameters
    ----------
    layer : Layer
        Maps (rows, ...) to (rows, ...).
    """

    def __init__(self, layer: Layer) -> None:
        if not isinstance(layer, Layer):
            raise TypeError(f"layer is {a_type(layer)}; expected a Layer to apply")
        self.layer = layer

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        if x.ndim < 2:
            checks.shape("x", x, ("batch", "length", "..."))  # raises
        y, cache = self.layer.forward(_fold(x), context.drop_mask())
        return y.reshape(*x.shape[:2], *y.shape[1:]), cache

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx = self.layer.backward(_fold(dy), cache, gradients)
        return dx if dx is None else dx.reshape(*dy.shape[:2], *dx.shape[1:])


def _fold(x: Array) -> Array:
    """(batch, length, ...) -> (batch length, ...)."""
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])
