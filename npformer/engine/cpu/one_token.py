"""Attention of one new token of each sequence to the tokens so far, as in generation.

Without this a generated token takes 18 % longer in a batch of one, 11 % in one of 16 (d_model 128,
four layers).
"""

import math

import numpy as np

from npformer.core import Array, Context
from npformer.engine.cpu.rows import EXP, UNIT, product
from npformer.functional.rotary import rotary
from npformer.layers.state import State, places


def attention_of_one(
    x: Array,
    W_query: Array,
    b_query: Array | None,
    W_key: Array,
    b_key: Array | None,
    W_value: Array,
    b_value: Array | None,
    n_heads: int,
    kv_heads: int,
    rope_theta: float | None,
    state: State,
    context: Context,
) -> tuple[Array, State]:
    """Replaces `functional.linear` and `functional.scaled_dot_product_attention`.

    Return the heads side by side, (batch, 1, n_heads d_head), and the new state. Queries that share
    a head of keys are columns of one product. The division by the sum of the exponentials comes
    last, because the average has fewer numbers than there are exponentials.
    """
    batch, _, d = x.shape
    d_head = W_query.shape[1] // n_heads
    query, key, value = (
        product(x.reshape(batch, d), W, b).reshape(batch, kv_heads, -1, d_head)
        for W, b in ((W_query, b_query), (W_key, b_key), (W_value, b_value))
    )
    if rope_theta is not None:
        # All rows of a sequence have the same position.
        query_and_key = np.concatenate((query, key), axis=2)
        rotated, _ = rotary(query_and_key, places(state.stop, 1), rope_theta)
        query, key = rotated[:, :, :-1], rotated[:, :, -1:]
    state = state.extend(1, context, key=key, value=value)
    query = query * (UNIT / math.sqrt(d_head))
    e = np.matmul(state.so_far("key"), query.swapaxes(-1, -2))  # [batch, kv heads, length, group]
    visible_keys = state.causal_mask(1, x)
    if visible_keys is not None:
        np.copyto(e, -np.inf, where=~visible_keys.swapaxes(-1, -2))
    e -= np.maximum.reduce(e, axis=-2, keepdims=True)
    EXP(e, out=e)
    y = np.matmul(e.swapaxes(-1, -2), state.so_far("value"))
    y /= np.add.reduce(e, axis=-2)[..., None]
    return y.reshape(batch, 1, -1), state.trim()
