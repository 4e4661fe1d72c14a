"""Bugs of models that write: leaks, caches, beams, and memories with padding."""

# ruff: noqa: D102 -- documented in Layer and State

from dataclasses import replace
from typing import Any, Self

import numpy as np

from npformer import functional as F
from npformer.core import Array, Context, Gradients, Seed
from npformer.layers import CrossAttention, Positions
from npformer.layers.state import State
from npformer.learn.museum.table import plain
from npformer.mixers import Attention, MixerSettings
from npformer.tasks.estimators.text_writer import windows


@plain(22, "a_causal_mixer_sees_no_later_token")
class AttentionThatForgetsItIsCausal(Attention):
    """Attention of a decoder is built without its causal mask.

    Who: The authors of several small GPTs: minGPT's issue 75 and nanoGPT's issue 331 ask why the
    loss is near zero and the text is nonsense.
    Why: Token t sees token t + 1, which it should predict, and copies it.
    Cost: The loss falls as never before, but the model writes nonsense: when it writes, the token
    to copy does not exist yet.
    Caught: Changing a later token and looking at earlier outputs; writing a text. Not the loss.
    """

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        settings = replace(settings, causal=False)
        return super().build(settings, seed=seed, dtype=dtype)


@plain(23, "each_label_is_the_next_token", right=windows)
def windows_that_are_not_shifted(ids: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """The label of a token is the token itself, and not the next one.

    Who: Someone who cuts inputs and labels out of a text with the same slice. Issue 6 of
    lsdefine/attention-is-all-you-need-keras is about this, in its decoder.
    Why: A language model learns p(next token | tokens so far). The token itself is among those.
    Cost: The loss goes to 0 within a few steps, and the model repeats each token.
    Caught: Comparing the labels with the text. Generating a few tokens.
    """
    n = (len(ids) - 1) // length
    x = ids[: n * length].reshape(n, length)
    return x, x.copy()


@plain(24, "positions_go_on_behind_a_cache")
class PositionsThatStartAgain(Positions):
    """With a KV cache, every new token is at position 0.

    Who: Someone who adds a KV cache to a model that works: x is now one token, and its length 1.
    Why: The table is read from row 0 to the length of x; the tokens of the cache are not in x.
    Cost: The first token is right, and the others are those of a text that starts over each time.
    Caught: Comparing one pass over everything with token by token. No gradient check: training has
    no cache.
    """

    def forward_from(self, x: Array, begin: Any) -> Array:
        return x + self.table.value[: self.length_of(x)]


@plain(24, "a_query_behind_a_cache_sees_all_of_it", right=F.scaled_dot_product_attention)
def attention_with_the_mask_at_the_wrong_end(
    query: Array, key: Array, value: Array, *, causal: bool = False, begin: int = 0
) -> tuple[Array, Any]:
    """With a KV cache, the causal mask lets a new query see only the first keys.

    Who: PyTorch's `is_causal` has it for queries and keys of different lengths; npformer had it.
    Why: Query i is at position begin + i. A mask that begins at the top left lets it see only the
    keys 0 to i: a single query sees key 0.
    Cost: With a KV cache the model sees its first token and nothing else, and writes one word again
    and again. Training is not affected.
    Caught: Comparing the last query alone, with all keys, with the last row of the whole pass.
    """
    return F.scaled_dot_product_attention(query, key, value, causal=causal)


@plain(24, "a_state_follows_its_beams")
class StateThatKeepsItsRows(State):
    """The KV cache is not reordered with the beams.

    Who: Someone who writes beam search on top of a KV cache for greedy search.
    Why: After a step, beam 0 may go on from beam 2. Its tokens are copied, but its keys and values
    are still those of the old beam 0.
    Cost: Worse translations than with one beam, and no error. With one beam everything is right.
    Caught: Comparing beam search with and without a KV cache.
    """

    def select(self, rows: Any) -> State:
        return self


@plain(25, "padding_of_a_memory_changes_nothing")
class CrossAttentionThatReadsPadding(CrossAttention):
    """Cross-attention attends to the padding of its memory.

    Who: Someone who has a mask for the target, and forgets that the source is padded, too.
    Why: Keys at padding are vectors like any others, and get attention weights.
    Cost: A sentence is translated differently when there is a longer one in its batch.
    Caught: Comparing a source alone with the same one padded. No gradient check.
    """

    def forward(self, x: Array, memory: Array, context: Context) -> tuple[Array, Any]:  # type: ignore[override]
        return super().forward(x, memory, replace(context, memory_padding=None))

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> tuple[Array, Array]:
        return super().backward(dy, cache, gradients)
