"""Bugs of rotary positional encoding: what is turned, from where, and in which pairs."""

# ruff: noqa: D102 -- documented in GeneralAttention

from typing import Any

from npformer import functional as F
from npformer.core import Array, Context
from npformer.layers.state import places
from npformer.learn.museum.table import plain
from npformer.mixers import GeneralAttention


@plain(26, "only_distances_count_in_rotary_attention")
class AttentionThatTurnsItsValues(GeneralAttention):
    """Values are turned by their positions, like queries and keys.

    Who: Someone who applies the rotation to all of q, k and v, because one product computes them.
    Why: A score is the product of a turned query and a turned key, in which only the difference of
    their positions is left. A value is not multiplied by anything that was turned.
    Cost: What a token gives to others depends on its position in the sequence. A text means
    something else behind padding, or further on in a long text.
    Caught: Moving all tokens by some positions: no result may change. Gradient checks too, if the
    backward pass is that of right attention.
    """

    def attend(self, query: Array, key: Array, value: Array, context: Context) -> tuple[Array, Any]:
        rotated, _ = self.rotate(value)
        return super().attend(query, key, rotated, context)


@plain(26, "a_cache_changes_no_turned_token")
class AttentionThatTurnsFromTheStart(GeneralAttention):
    """With a KV cache, every new query and key is turned as if it stood at position 0.

    Who: Someone who adds a KV cache to a model that works: x is now one token, and its length 1.
    Why: Keys in the cache keep the angle of their own positions. A new token's angle is that of
    its place behind them.
    Cost: The first token is right. The others are compared as if all stood at the beginning.
    Caught: Comparing one pass over everything with token by token. No gradient check: training has
    no cache.
    """

    def rotate(self, heads: Array, begin: Any = 0) -> tuple[Array, Any]:
        return super().rotate(heads, begin=0)


@plain(26, "rotary_pairs_are_halves")
class AttentionThatPairsNeighbours(GeneralAttention):
    """Features 2 i and 2 i + 1 are turned as a pair, with weights that were trained in halves.

    Who: Someone who reads the paper, which pairs neighbours, and loads weights of Llama, whose
    files pair feature i with feature i + d_head / 2.
    Why: Both are right in a model trained that way: they differ by the order of the rows of the
    projections. Weights of one order with pairs of the other turn features that do not belong
    together.
    Cost: A pretrained model writes nonsense. Trained from scratch, nothing is lost.
    Caught: Comparing with the model that the weights come from. No gradient check, because the
    backward pass turns the same pairs back.
    """

    def rotate(self, heads: Array, begin: Any = 0) -> tuple[Array, Any]:
        positions = places(begin, heads.shape[2])
        return F.rotary(heads, positions, theta=self.rope_theta, layout="neighbours")
