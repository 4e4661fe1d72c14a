"""Attention one token after another: the state is the keys and values of the tokens so far."""

from __future__ import annotations

from npformer import functional as F
from npformer.core import Array, Context
from npformer.layers.state import State, StateShapes


def shapes_of_keys_and_values(n_heads: int, length: int, d_head: int) -> StateShapes:
    """Return the shapes of the keys and values of one sequence of up to `length` tokens."""
    return {"key": (n_heads, length, d_head), "value": (n_heads, length, d_head)}


def attend_to_state(
    query: Array, key: Array, value: Array, state: State, context: Context, group: int = 1
) -> tuple[Array, State]:
    """Return the heads of new tokens, which see the tokens so far and themselves.

    Parameters
    ----------
    query : array, shape (batch, heads, n, d_head)
        Of the n new tokens.
    key, value : array, shape (batch, heads / group, n, d_head)
        Of the same tokens; they are added to the state.
    state : State
        The state before these tokens.
    group : int
        How many heads of queries share a head of keys and values.

    Returns
    -------
    heads : array, shape (batch, heads, n, d_head)
    state : State
        The state after these tokens.
    """
    n_new = query.shape[2]
    state = state.extend(n_new, context, key=key, value=value)
    keys, _ = F.repeat_heads(state.so_far("key"), group)  # [batch, heads, length so far, d_head]
    values, _ = F.repeat_heads(state.so_far("value"), group)
    scores, _ = F.attention_scores(query, keys)  # [batch, heads, n, length so far]
    heads, _ = F.average(scores, values, mask=state.causal_mask(n_new, query))
    return heads, state.trim()
