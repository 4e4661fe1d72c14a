"""What attention and all synthesizers share: y = softmax(scores) G, by head.

They differ in where the scores come from. That is a layer of its own, from (batch, length, d_model)
to scores; the mixer around it is always the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from npformer import functional as F
from npformer import initializers
from npformer.backend import Array, array_module
from npformer.initializers import Seed
from npformer.layers.linear import Linear
from npformer.mixers.mixer import Mixer, check_heads
from npformer.module import Context, Gradients, Layer, Parameter


class AveragingMixer(Mixer):
    """y = concat(head_1, ..., head_h) W_O, head_i = softmax(scores_i(x)) x W_V^i.

    Parameters
    ----------
    scores : Layer
        (batch, length, d_model) -> (batch, heads, length, length), or (heads, length, length) if
        the tokens have no say in them. Its parameters are named as if they were the mixer's own:
        ``mixer.query.weight``, not ``mixer.scores.query.weight``.
    d_model : int
        Features of a token.
    n_heads : int
        Heads; each averages d_model / n_heads features with weights of its own.
    causal : bool
        Token i sees the tokens 0 to i only.
    seed : int or numpy.random.Generator
        Draws the weights of the two projections.
    dtype : {"float32", "float64"}

    Attributes
    ----------
    value, output : Linear
        W_V (G in the synthesizers' paper) and W_O.
    """

    def __init__(
        self,
        scores: Layer,
        d_model: int,
        n_heads: int = 1,
        *,
        causal: bool = False,
        seed: Seed,
        dtype: str = "float32",
    ) -> None:
        check_heads(d_model, n_heads)
        rng = initializers.generator(seed)
        self.n_heads = n_heads
        self.causal = causal
        self.scores = scores
        self.value = Linear(d_model, d_model, seed=rng, dtype=dtype)
        self.output = Linear(d_model, d_model, seed=rng, dtype=dtype)

    def children(self) -> Iterator[tuple[str, Parameter | Layer]]:
        yield from self.scores.children()
        for name, child in super().children():
            if child is not self.scores:
                yield name, child

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        scores, scores_cache = self.scores.forward(x, context)  # [batch, heads, length, length]
        value, value_cache = self.value.forward(x, context)  # [batch, length, d_model]
        heads, average_cache = F.average(
            scores,
            F.split_heads(value, self.n_heads),  # [batch, heads, length, d_head]
            mask=over_heads(context.mask),
            causal=self.causal,
        )
        y, output_cache = self.output.forward(F.merge_heads(heads), context)
        return y, (scores_cache, value_cache, average_cache, output_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        scores_cache, value_cache, average_cache, output_cache = cache
        dmerged = self.output.backward(dy, output_cache, gradients)
        dscores, dvalue = F.average_backward(F.split_heads(dmerged, self.n_heads), average_cache)
        dx_value = self.value.backward(F.merge_heads(dvalue), value_cache, gradients)
        dx_scores = self.scores.backward(dscores, scores_cache, gradients)
        # x is used twice, unless the tokens have no say in the scores: its gradients add up
        return dx_value if dx_scores is None else dx_value + dx_scores

    def explain(self, x: Array, context: Context) -> Array:
        scores, _ = self.scores.forward(x, context)
        weights, _ = F.averaging_weights(scores, over_heads(context.mask), self.causal)
        xp = array_module(x)
        weights = xp.broadcast_to(weights, (x.shape[0], *weights.shape[-3:]))
        if context.mask is None:
            return weights.copy()
        return xp.where(context.mask[:, None, :, None], weights, 0.0)  # padding asks nothing


def over_heads(mask: Array | None) -> Array | None:
    """(batch, key_length) -> (batch, 1, 1, key_length): for all heads and all queries."""
    return None if mask is None else mask[:, None, None, :]
