"""Attention heads: features split into heads, and merged again."""

from numbers import Integral
from typing import Any

from npformer.core import Array, checks


def split_heads(x: Array, n_heads: int) -> Array:
    """View (batch, length, d_model) as (batch, heads, length, d_head); nothing is copied."""
    checks.sequences(x)
    batch, length, d_model = x.shape
    if not isinstance(n_heads, Integral) or n_heads is True or n_heads < 1 or d_model % n_heads:
        n_heads = checks.positive("n_heads", n_heads)
        raise ValueError(
            f"x has {d_model} features and n_heads is {n_heads}; expected n_heads to divide them"
        )
    return x.reshape(batch, length, n_heads, d_model // n_heads).transpose(0, 2, 1, 3)


def merge_heads(x: Array) -> Array:
    """(batch, heads, length, d_head) -> (batch, length, d_model), the inverse of `split_heads`."""
    checks.floating(x=x)
    if x.ndim != 4:
        checks.shape("x", x, ("batch", "heads", "length", "d_head"))
    batch, n_heads, length, d_head = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, n_heads * d_head)


def repeat_heads(x: Array, times: int) -> tuple[Array, Any]:
    """Repeat each head: (batch, heads, length, d_head) -> (batch, times heads, length, d_head).

    Grouped queries (Ainslie et al., 2023, arXiv 2305.13245): head h of the result is head
    h // times of x, so each head of keys and values serves `times` heads of queries.
    """
    checks.floating(x=x)
    if x.ndim != 4:
        checks.shape("x", x, ("batch", "heads", "length", "d_head"))
    times = checks.positive("times", times)
    return (x if times == 1 else x.repeat(times, axis=1)), (times, x.shape)


def repeat_heads_backward(dy: Array, cache: Any) -> Array:
    """dx = the sum of dy over the `times` heads that each head of x became."""
    times, (batch, n_heads, *rest) = cache
    checks.gradient(dy, (batch, times * n_heads, *rest))
    # Each head was used `times` times, so its gradient is a sum [batch, n_heads, length, d_head]
    return dy if times == 1 else dy.reshape(batch, n_heads, times, *rest).sum(axis=2)


def mask_for_heads(mask: Array | None) -> Array | None:
    """(batch, key_length) -> (batch, 1, 1, key_length): for all heads and all queries."""
    return None if mask is None else mask[:, None, None, :]


def check_heads(
    d_model: int, n_heads: int, n_kv_heads: int | None = None, d_head: int | None = None
) -> None:
    """Check that n_heads divides d_model, if this gives d_head, and that n_kv_heads divides it."""
    checks.positive("d_model", d_model)
    checks.positive("n_heads", n_heads)
    if n_kv_heads is not None and n_heads % n_kv_heads:
        raise ValueError(
            f"n_kv_heads is {n_kv_heads} and n_heads is {n_heads}; expected n_kv_heads to divide "
            "n_heads, because each head of keys and values serves as many heads of queries"
        )
    if d_head is None and d_model % n_heads:
        fitting = ", ".join(str(n) for n in range(1, d_model + 1) if d_model % n == 0)
        raise ValueError(
            f"n_heads is {n_heads} and d_model is {d_model}; expected n_heads to divide d_model, "
            f"because each head gets d_model / n_heads features. These divide it: {fitting}"
        )
