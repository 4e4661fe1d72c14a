"""Attention heads: features split into heads, and merged again."""

from numbers import Integral

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


def over_heads(mask: Array | None) -> Array | None:
    """(batch, key_length) -> (batch, 1, 1, key_length): for all heads and all queries."""
    return None if mask is None else mask[:, None, None, :]


def check_heads(d_model: int, n_heads: int) -> None:
    """Check that n_heads divides d_model."""
    checks.positive("d_model", d_model)
    checks.positive("n_heads", n_heads)
    if d_model % n_heads:
        fitting = ", ".join(str(n) for n in range(1, d_model + 1) if d_model % n == 0)
        raise ValueError(
            f"n_heads is {n_heads} and d_model is {d_model}; expected n_heads to divide d_model, "
            f"because each head gets d_model / n_heads features. These do: {fitting}"
        )
