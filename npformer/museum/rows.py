"""How the rows of the table are made: what wrong things of a kind have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from npformer import functional as F
from npformer.core import Layer
from npformer.layers import Dropout, LayerNorm, Sequential
from npformer.mixers import Attention
from npformer.models import Encoder, EncoderBlock
from npformer.museum import attention, costs, places
from npformer.museum.attention import AttentionBy, Pair
from npformer.museum.bug import Bug, Source
from npformer.museum.dropout import twice
from npformer.museum.probes import HEADS, TOKENS, WIDTH, draw, small
from npformer.optim import Adam


def pair_of(forward: Any) -> Pair:
    """Return a function of `attention` and its backward pass beside it."""
    return forward, getattr(attention, f"{forward.__name__}_backward")


def a_norm(kind: type[LayerNorm]) -> LayerNorm:
    """Return a layer norm whose gamma is away from 1."""
    norm = kind(WIDTH, dtype="float64")
    norm.gamma.value[...] = 1.5 + draw(WIDTH)
    return norm


def an_attention(kind: type[Attention], **more: Any) -> Attention:
    """Return attention `WIDTH` wide."""
    return kind(WIDTH, HEADS, seed=0, dtype="float64", **more)


def a_block(kind: type[EncoderBlock]) -> EncoderBlock:
    """Return a small block with post-norm."""
    return kind(small(), seed=0, dtype="float64")


def an_encoder(kind: type[Encoder]) -> Encoder:
    """Return a small encoder."""
    return kind(small(), dtype="float64")


def a_dropout(kind: type[Dropout]) -> Dropout:
    """Return a dropout that drops half."""
    return kind(0.5)


def a_dropout_twice(kind: type[Dropout]) -> Sequential:
    """Return a chain in which one dropout stands at two places."""
    return twice(kind(0.5))


def of_layer(
    number: int,
    wrong: type[Layer],
    right: type[Layer],
    make: Callable[[Any], Layer],
    *caught_by: str,
    **more: Any,
) -> Bug:
    """Return the row of a layer's class; the right one is made in the same way."""
    of = f"{right.__module__.split('.')[1]}.{right.__name__}"
    more = {"inputs": (TOKENS,)} | more
    return Bug(number, wrong, of, lambda: make(wrong), lambda: make(right), caught_by, **more)


def of_attention(
    number: int, wrong: Any, *caught_by: str, causal: bool = False, **more: Any
) -> Bug:
    """Return the row of a pair that a layer attends by."""
    return Bug(
        number,
        wrong,
        "functional.scaled_dot_product_attention",
        build=lambda: an_attention(AttentionBy, attend=pair_of(wrong), causal=causal),
        right=lambda: an_attention(Attention, causal=causal),
        caught_by=caught_by,
        inputs=(TOKENS,),
        config={"causal": causal},
        place=places.mixer,
        measure=costs.in_the_output,
        **more,
    )


def of_softmax(number: int, wrong: Any, *caught_by: str, **more: Any) -> Bug:
    """Return the row of a pair in the place of softmax."""
    return Bug(
        number,
        wrong,
        "functional.softmax",
        build=lambda: pair_of(wrong),
        right=lambda: (F.softmax, F.softmax_backward),
        caught_by=caught_by,
        place=places.softmax,
        **more,
    )


def of_adam(number: int, wrong: type[Adam], caught_by: str, measure: Any) -> Bug:
    """Return the row of an optimizer's class."""
    return Bug(
        number,
        wrong,
        "optim.Adam",
        build=lambda: wrong,
        right=lambda: Adam,
        caught_by=(caught_by,),
        measure=measure,
    )


def of_source(number: int, wrong: type[Source], *caught_by: str) -> Bug:
    """Return the row of a source file."""
    return Bug(number, wrong, wrong.path, wrong.wrong, wrong.right, caught_by)
