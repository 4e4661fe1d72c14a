"""Attention of one new token of each sequence to those so far, as in generation.

Without this a generated token takes 18 % longer in a batch of one, 11 % in one of 16 (d_model 128,
four layers).
"""

import math

import numpy as np

from npformer.core import Array, Context
from npformer.core.state import State, places
from npformer.engine.cpu.rows import EXP, UNIT, product
from npformer.functional.rotary import rotary


def attention_of_one(
    x: Array,
    W_query: Array,
    b_query: Array,
    W_key: Array,
    b_key: Array,
    W_value: Array,
    b_value: Array,
    n_heads: int,
    rope_theta: float | None,
    state: State,
    context: Context,
) -> tuple[Array, State]:
    """Return the heads side by side, (batch, 1, d_model), and the new state.

    With a single token, splitting its features into heads moves nothing. The division by the sum of
    the exponentials comes last: the average has fewer numbers than there are exponentials.
    """
    batch, _, d = x.shape
    by_head = batch, n_heads, 1, d // n_heads
    query, key, value = (
        product(x.reshape(batch, d), W, b).reshape(by_head)
        for W, b in ((W_query, b_query), (W_key, b_key), (W_value, b_value))
    )
    if rope_theta is not None:
        (query, key), _ = rotary(np.stack((query, key)), places(state.stop, 1), rope_theta)
    state = state.extend(1, context, key=key, value=value)
    query *= UNIT / math.sqrt(d // n_heads)
    e = np.matmul(state.so_far("key"), query.swapaxes(-1, -2))  # [batch, heads, length, 1]
    seen = state.seen(1, x)
    if seen is not None:
        np.copyto(e, -np.inf, where=~seen.swapaxes(-1, -2))
    e -= np.maximum.reduce(e, axis=-2, keepdims=True)
    EXP(e, out=e)
    y = np.matmul(e.swapaxes(-1, -2), state.so_far("value"))
    y /= np.add.reduce(e, axis=-2, keepdims=True)
    return y.reshape(batch, 1, d), state
