"""The table of all bugs: a decorator puts each wrong class or function into it."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from npformer import functional as F
from npformer.layers import GELU, Dropout, LayerNorm, Linear, Sequential, Tanh
from npformer.learn.museum.attention_by import AttentionBy, Pair
from npformer.learn.museum.bug import Bug, Source, backward_of
from npformer.learn.museum.probes import TOKENS, small
from npformer.mixers import Attention, Fourier
from npformer.models import Encoder, EncoderBlock, EncoderConfig
from npformer.proof.cases.case import SEEDED, draw

Wrong = TypeVar("Wrong", bound=Callable[..., Any])

ROWS: list[Bug] = []

GRADIENT = "differences", "complex step"


def layer_norm(kind: Any, config: EncoderConfig, dtype: str, **_: Any) -> LayerNorm:
    """Return a layer norm, its gamma away from 1."""
    norm: LayerNorm = kind(config.d_model, dtype=dtype)
    norm.gamma.value[...] = 1.5 + draw(config.d_model)
    return norm


def twice(kind: Any, config: EncoderConfig, **_: Any) -> Sequential:
    """Return a chain that uses one dropout layer twice."""
    shared = kind(config.dropout or 0.5)
    return Sequential(shared, Tanh(), shared)


BUILDERS: dict[type, Callable[..., Any]] = {
    LayerNorm: layer_norm,
    Dropout: lambda kind, config, **_: kind(config.dropout or 0.5),
    GELU: lambda kind, **_: kind(),
    Linear: lambda kind, config, **drawn: kind(config.d_model, config.d_ff, **drawn),
    Attention: lambda kind, config, **drawn: kind(config.d_model, config.n_heads, **drawn),
    Fourier: lambda kind, **_: kind(padding="refuse"),
    EncoderBlock: lambda kind, **settings: kind(**settings),
    Encoder: lambda kind, **settings: kind(**settings),
}
"""Class of layers -> how one is built, of that class or of a wrong subclass."""


def bug(
    number: int,
    *caught_by: str,
    right: Any = None,
    build: Callable[..., Any] | None = None,
    inputs: tuple[Any, ...] = (TOKENS,),
    **more: Any,
) -> Callable[[Wrong], Wrong]:
    """Return a decorator for a wrong layer, or for anything else with its own way to `build` it.

    The right class is the one that it derives from, if `right` does not say what is right.
    """

    def add(wrong: Any) -> Any:
        correct = right or wrong.__bases__[0]
        config = small(**more.get("config", {}))
        builder = partial(build or BUILDERS[correct], config=config, **SEEDED)
        row = Bug(
            number=number,
            wrong=wrong,
            of=path_of(correct),
            build=partial(builder, wrong),
            right=partial(builder, correct),
            caught_by=caught_by,
            inputs=inputs,
            **more,
        )
        ROWS.append(row)
        return wrong

    return add


def path_of(thing: Any) -> str:
    """Return a thing's name, after that of the first package or module that has it."""
    words = thing.__module__.split(".")
    modules = (".".join(words[:n]) for n in range(2, len(words) + 1))
    first = next(m for m in modules if getattr(sys.modules[m], thing.__name__, None) is thing)
    return f"{first}.{thing.__name__}".removeprefix("npformer.")


def plain(number: int, *caught_by: str, right: Any = None) -> Callable[[Wrong], Wrong]:
    """Return a decorator for a wrong class or function that is used as it is."""
    return bug(number, *caught_by, right=right, build=lambda thing, **_: thing, inputs=())


def pair(right: Callable[..., Any], *arrays: Any) -> Callable[..., Callable[[Any], Any]]:
    """Return `bug` for functions that, with a backward pass, take the place of a right one."""
    return partial(bug, right=right, build=partial(with_backward, right=right), inputs=arrays)


def with_backward(forward: Any, right: Any, **_: Any) -> Pair:
    """Return a forward function with its own backward pass, or with the right one."""
    return forward, backward_of(forward) or backward_of(right)


def in_attention(forward: Any, config: EncoderConfig, **drawn: Any) -> AttentionBy:
    """Return a layer whose attention is computed by a function."""
    attend = with_backward(forward, F.scaled_dot_product_attention)
    return AttentionBy(config.d_model, config.n_heads, attend=attend, causal=config.causal, **drawn)


def source(number: int, *caught_by: str) -> Callable[[type[Source]], type[Source]]:
    """Return a decorator for a wrong source file."""

    def add(wrong: type[Source]) -> type[Source]:
        row = Bug(
            number=number,
            wrong=wrong,
            of=wrong.path,
            build=lambda: {wrong.path: wrong.text},
            right=lambda: {wrong.path: wrong.right},
            caught_by=caught_by,
        )
        ROWS.append(row)
        return wrong

    return add


def attention_layer(number: int, *caught_by: str, **more: Any) -> Callable[[Wrong], Wrong]:
    """Return a decorator for an attention that a layer uses."""
    right = F.scaled_dot_product_attention
    return bug(number, *caught_by, right=right, build=in_attention, **more)


softmax = pair(F.softmax, draw(2, 3, 4))
attention = pair(F.scaled_dot_product_attention, draw(4, 3), draw(4, 3, seed=1), draw(4, 2, seed=2))
"""Decorators for a softmax and for an attention."""
