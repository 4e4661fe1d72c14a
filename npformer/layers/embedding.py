"""Embedding and positions: where a sequence becomes vectors that know their place."""

from __future__ import annotations

import math
from typing import Any

from npformer import functional as F
from npformer.core import (
    Array,
    Context,
    Gradients,
    Layer,
    Parameter,
    Seed,
    array_module,
    checks,
    initializers,
)


class Embedding(Layer):
    """y = scale table[ids].

    Parameters
    ----------
    vocab_size : int
        Ids run from 0 to vocab_size - 1.
    d_model : int
        Features.
    scale : bool
        Multiply by sqrt(d_model) (Vaswani et al., 2017, section 3.4). Rows are drawn from
        N(0, 1 / d_model) and so come out with variance 1, beside positions of about that size.
        Without it they are drawn from N(0, 0.02^2), as BERT's are.
    seed : int or numpy.random.Generator
        Draws the table.
    dtype : {"float32", "float64"}

    Attributes
    ----------
    weight : Parameter, shape (vocab_size, d_model)
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        *,
        scale: bool = False,
        seed: Seed,
        dtype: str = "float32",
    ) -> None:
        checks.positive("vocab_size", vocab_size)
        checks.positive("d_model", d_model)
        self.scale = math.sqrt(d_model) if scale else 1.0
        init = initializers.normal(d_model**-0.5 if scale else 0.02)
        rng = initializers.generator(seed)
        self.weight = Parameter(initializers.draw(init, rng, (vocab_size, d_model), dtype))

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        rows, cache = F.embedding(x, self.weight.value)
        return self.scale * rows, cache

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> None:
        # y = scale * rows
        gradients.add(self.weight, F.embedding_backward(self.scale * dy, cache))


class Positions(Layer):
    """y_t = x_t + table_t.

    Parameters
    ----------
    max_len : int
        The longest sequence.
    d_model : int
        Features.
    kind : {"sinusoidal", "learned"}
        Sinusoids of Vaswani et al. (2017), or a table that is trained.
    std : float
        A learned table is first drawn from N(0, std^2). It should be about as large as what it is
        added to: positions that are lost beside the tokens are learned late or never.
    seed : int or numpy.random.Generator
        Draws a learned table.
    dtype : {"float32", "float64"}

    Attributes
    ----------
    table : Parameter, shape (max_len, d_model)
        A constant if sinusoidal.
    """

    def __init__(
        self,
        max_len: int,
        d_model: int,
        kind: str = "sinusoidal",
        *,
        std: float = 0.02,
        seed: Seed,
        dtype: str = "float32",
    ) -> None:
        checks.positive("max_len", max_len)
        checks.positive("d_model", d_model)
        checks.choice("positions", kind, ("sinusoidal", "learned"))
        if kind == "learned":
            rng = initializers.generator(seed)
            self.table = Parameter(
                initializers.draw(initializers.normal(std), rng, (max_len, d_model), dtype)
            )
        else:
            checks.choice("dtype", dtype, checks.FLOATS)
            table = initializers.sinusoids(max_len, d_model).astype(dtype)
            self.table = Parameter(table, trainable=False)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        length = self.length_of(x)
        return x + self.table.value[:length], length

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        length = cache
        if self.table.trainable:
            # y = x + table[:length], the same rows for the whole batch
            used = gradients.of(self.table)[:length]
            used += dy.sum(axis=0)
        return dy

    def length_of(self, x: Array) -> int:
        """Return the length of x after checking that there is a position for each token.

        Parameters
        ----------
        x : array, shape (batch, length, d_model)
        """
        checks.floating(x=x, table=self.table.value)
        checks.shape("x", x, ("batch", "length", self.table.shape[1]))
        checks.at_most(x, self.table.shape[0], "model")
        return int(x.shape[1])


class TokenTypes(Embedding):
    """y_t = x_t + scale table[types_t], with the types of ``context.types``; all 0 if there are
    none.

    Parameters
    ----------
    vocab_size, d_model, scale, seed, dtype
        As in `Embedding`; vocab_size is the number of types.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        of_type, cache = super().forward(self.types_of(x, context), context)
        return x + of_type, cache

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        super().backward(dy, cache, gradients)
        return dy  # y = x + of_type: each term gets the whole gradient

    def types_of(self, x: Array, context: Context) -> Array:
        """Return the types of x's tokens."""
        if context.types is not None:
            return context.types
        return array_module(x).zeros(x.shape[:2], dtype="int64")
