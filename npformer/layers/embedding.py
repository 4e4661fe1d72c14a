"""Embeddings: rows of a table for token ids, positions and token types."""

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
    constants,
    enough_memory,
    generators,
    initializers,
    value_of,
)
from npformer.core.support.explained_errors import refuse_unknown_arguments
from npformer.functional.sums import sum_along
from npformer.layers.state import positions


class Embedding(Layer):
    """y = scale table[ids].

    Parameters
    ----------
    vocab_size, d_model : int
        Ids run from 0 to vocab_size - 1; each has d_model features.
    scale : bool
        Whether to multiply by sqrt(d_model) (Vaswani et al., 2017, section 3.4). If so, rows are
        drawn from N(0, 1 / d_model), and y has variance 1. If not, they are drawn from
        N(0, 0.02^2), as in BERT.

    Attributes
    ----------
    weight : Parameter, shape (vocab_size, d_model)
    """

    @refuse_unknown_arguments
    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        *,
        scale: bool = False,
        seed: Seed = None,
        dtype: str = "float32",
    ) -> None:
        checks.positive("vocab_size", vocab_size)
        checks.positive("d_model", d_model)
        checks.flag("scale", scale)
        self.scale = math.sqrt(d_model) if scale else 1.0
        init = initializers.normal(d_model**-0.5 if scale else 0.02)
        rng = generators.from_seed(seed)
        self.weight = Parameter(initializers.draw(init, rng, (vocab_size, d_model), dtype))

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        rows, cache = F.embedding(x, self.weight.value)
        return self.scale * rows, cache

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> None:
        # y = scale * rows
        gradients.add(self.weight, F.embedding_backward(self.scale * dy, cache))


class TiedOutput(Layer):
    """y = x table^T + b: a logit for each token, by the table of an embedding (Press & Wolf, 2017).

    The table is used twice, so its gradient is a sum: of what its rows get as embeddings, and as
    columns of this map.

    Parameters
    ----------
    embedding : Embedding
    bias : bool
        Whether to add b, (vocab_size,), which is 0 at first.

    Attributes
    ----------
    weight : Parameter, shape (vocab_size, d_model)
        The table of the embedding.
    bias : Parameter or None
    """

    def __init__(self, embedding: Embedding, bias: bool = False) -> None:
        checks.instance("embedding", embedding, Embedding)
        checks.flag("bias", bias)
        self.weight = embedding.weight
        self.bias: Parameter | None = None
        if bias:
            vocab_size = self.weight.shape[0]
            dtype = self.weight.dtype.name
            self.bias = Parameter(initializers.draw(initializers.zeros, None, (vocab_size,), dtype))

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.linear(x, self.weight.value.T, value_of(self.bias))

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        dx, dW, *db = F.linear_backward(dy, cache)
        gradients.add_each((self.weight, self.bias), (dW.T, *db))
        return dx


class Positions(Layer):
    """y_t = x_t + table_t.

    Parameters
    ----------
    max_len, d_model : int
        Length of the longest sequence, and features of a token.
    kind : {"sinusoidal", "sinusoidal_halves", "learned"}
        Sinusoids of Vaswani et al. (2017), sines and cosines alternating or in halves; or a table
        that is trained.
    std : float
        A learned table is drawn from N(0, std^2). Its entries should be about as large as those of
        x: positions that are much smaller than the tokens are learned late or never.

    Attributes
    ----------
    table : Parameter, shape (max_len, d_model)
        Not trained if sinusoidal.
    """

    def __init__(
        self,
        max_len: int,
        d_model: int,
        kind: str = "sinusoidal",
        *,
        std: float = 0.02,
        seed: Seed = None,
        dtype: str = "float32",
    ) -> None:
        checks.positive("max_len", max_len)
        checks.positive("d_model", d_model)
        checks.choice("positions", kind, ("sinusoidal", "sinusoidal_halves", "learned"))
        checks.choice("dtype", dtype, checks.FLOATS)
        if kind == "learned":
            rng = generators.from_seed(seed)
            init = initializers.normal(std)
            self.table = Parameter(initializers.draw(init, rng, (max_len, d_model), dtype))
        else:
            with enough_memory("the table of positions", (max_len, d_model)):
                table = constants.sinusoids(max_len, d_model, halves=kind != "sinusoidal")
            self.table = Parameter(table.astype(dtype), trainable=False)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return x + self.table.value[: self.length_of(x)], None

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        if self.table.trainable:
            # y = x + table[:length], the same rows for the whole batch
            dtable = gradients.of(self.table)[: dy.shape[1]]
            dtable += sum_along(dy, axis=0)
        return dy

    def forward_from(self, x: Array, begin: Any) -> Array:
        """Return y for tokens that follow earlier ones: the first is at position `begin`.

        `begin` is one number, or one for each row, (batch,).
        """
        table = self.table.value
        n = self.length_of(x)
        if isinstance(begin, int) and begin + n > len(table):
            raise ValueError(
                f"x has {n} tokens after {begin} others; expected at most {len(table)} in all, "
                "which is the model's max_len"
            )
        return x + table[positions(begin, n, table)]

    def length_of(self, x: Array) -> int:
        """Return the length of x after checking that there is a position for each token."""
        checks.sequences(x, self.table.shape[1], self.table.shape[0], table=self.table.value)
        return int(x.shape[1])


class TokenTypes(Embedding):
    """y_t = x_t + scale table[type_t]. The types are ``context.types``, or 0 if there are none.

    Its parameters are those of `Embedding`; `vocab_size` is the number of types.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        type_embedding, cache = super().forward(self.types_of(x, context), context)
        return x + type_embedding, cache

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        # y = x + type_embedding: both terms get the gradient of the sum
        super().backward(dy, cache, gradients)
        return dy

    def types_of(self, x: Array, context: Context) -> Array:
        """Return the type of each token of x."""
        checks.sequences(x, self.weight.shape[1])
        if context.types is None:
            return array_module(x).zeros(x.shape[:2], dtype="int64")
        checks.shape("types", context.types, tuple(x.shape[:2]), "One type for each token")
        return context.types
