"""Sequential: layers one after another."""

from collections.abc import Sequence
from typing import Any

from npformer.core import Array, Context, Gradients, Layer, a_type
from npformer.core.support.words import undefined


class Chain(Layer):
    """A layer that is others one after another: those that its `chain` returns."""

    def chain(self) -> Sequence[Any]:
        """Return the layers in the order in which they act."""
        raise undefined(self, "chain(self)")

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return forward_chain(self.chain(), x, context)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return backward_chain(self.chain(), dy, cache, gradients)


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
        return forward_chain(self.chain, x, context)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return backward_chain(self.chain, dy, cache, gradients)


def forward_chain(chain: Sequence[Any], x: Array, context: Context) -> tuple[Array, Any]:
    """Apply layers one after another; the cache is the list of theirs."""
    caches = []
    for layer in chain:
        x, cache = layer.forward(x, context)
        caches.append(cache)
    return x, caches


def backward_chain(chain: Sequence[Any], dy: Array, caches: Any, gradients: Gradients) -> Array:
    """Gradient of `forward_chain`: the layers from the last to the first."""
    for layer, cache in zip(reversed(chain), reversed(caches), strict=True):
        dy = layer.backward(dy, cache, gradients)
    return dy
