"""The scores of attention alone, as a part of a `Mixture`."""

from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients, initializers
from npformer.layers import Linear
from npformer.layers.state import State, StateShapes
from npformer.mixers.averaging import Scores
from npformer.mixers.mixer import MixerSettings


class AttentionScores(Scores):
    """S = Q K^T / sqrt(d_head), Q = x W_Q, K = x W_K, for each head.

    W_Q and W_K hold the columns of all heads side by side, so one product serves all heads.
    """

    def draw_scores(self, settings: MixerSettings, rng: Any, dtype: str) -> None:
        d_model = settings.d_model
        bias = settings.bias
        init = initializers.INITIALIZERS.make(settings.initializer)
        self.query = Linear(d_model, d_model, bias=bias, seed=rng, dtype=dtype, init=init)
        self.key = Linear(d_model, d_model, bias=bias, seed=rng, dtype=dtype, init=init)

    def scores(self, x: Array, context: Context) -> tuple[Array, Any]:
        query, query_cache = self.query.forward(x, context)  # [batch, length, d_model]
        key, key_cache = self.key.forward(x, context)
        scores, scores_cache = F.attention_scores(
            query=F.split_heads(query, self.n_heads), key=F.split_heads(key, self.n_heads)
        )  # [batch, heads, length, length]
        return scores, (query_cache, key_cache, scores_cache)

    def scores_backward(self, dscores: Array, cache: Any, gradients: Gradients) -> Array:
        query_cache, key_cache, scores_cache = cache
        dquery, dkey = F.attention_scores_backward(dscores, scores_cache)
        dx_key = self.key.backward(F.merge_heads(dkey), key_cache, gradients)
        dx_query = self.query.backward(F.merge_heads(dquery), query_cache, gradients)
        return dx_key + dx_query  # x is used twice, so its gradient is a sum

    def score_state_shapes(self, length: int) -> StateShapes:
        d_head = self.key.weight.shape[1] // self.n_heads
        return {"key": (self.n_heads, length, d_head)}

    def score_state(self, x: Array, state: State, context: Context) -> dict[str, Array]:
        key, _ = self.key.forward(x, context)
        return {"key": F.split_heads(key, self.n_heads)}

    def newest_scores(self, x: Array, state: State, context: Context) -> Array:
        query, _ = self.query.forward(x, context)
        scores, _ = F.attention_scores(F.split_heads(query, self.n_heads), state.so_far("key"))
        return scores
