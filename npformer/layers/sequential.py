"""Sequential: layers one after another."""

from typing import Any

from npformer.core import Array, Context, Gradients, Layer, a_type


class Sequential(Layer):
    """y = f_n(... f_2(f_1(x))).

    Parameters
    ----------
    *chain : Layer
        f_1 to f_n. The same layer may occur twice.
    """

    def __init__(self, *chain: Layer) -> None:
        for i, layer in enumerate(chain):
            if not isinstance(layer, Layer):
                raise TypeError(
                    f"item {i} of Sequential is {a_type(layer)}; expected a Layer. "
                    "Pass layers one by one: Sequential(a, b, c)"
                )
        self.chain = list(chain)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        caches = []
        for layer in self.chain:
            x, cache = layer.forward(x, context)
            caches.append(cache)
        return x, caches

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        # The chain rule: the gradient passes the layers from the last to the first.
        for layer, layer_cache in zip(reversed(self.chain), reversed(cache), strict=True):
            dy = layer.backward(dy, layer_cache, gradients)
        return dy
