"""Sequential: layers one after another."""

from __future__ import annotations

from typing import Any

from npformer.core import Array, Context, Gradients, Layer


class Sequential(Layer):
    """y = f_n(... f_2(f_1(x))).

    Parameters
    ----------
    *chain : Layer
        In the order in which they act. The same layer may stand in two places.
    """

    def __init__(self, *chain: Layer) -> None:
        for i, layer in enumerate(chain):
            if not isinstance(layer, Layer):
                raise TypeError(
                    f"item {i} of Sequential is a {type(layer).__name__}; expected a Layer. "
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
        for layer, layer_cache in zip(reversed(self.chain), reversed(cache), strict=True):
            dy = layer.backward(dy, layer_cache, gradients)
        return dy
