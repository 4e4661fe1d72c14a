"""Pooling: from a sequence to what the classifier sees."""

from dataclasses import replace
from typing import Any

from npformer import functional as F
from npformer.core import (
    Array,
    Context,
    Gradients,
    Layer,
    Padding,
    Registry,
    Seed,
    array_module,
    checks,
)
from npformer.core.padding import check_padding
from npformer.core.support.explained_errors import drop_class_from_names
from npformer.layers.activation import ACTIVATIONS
from npformer.layers.layer_norm import LayerNorm
from npformer.layers.linear import Linear


@drop_class_from_names
class Pooling(Layer):
    """A layer from (batch, length, d) to what the classifier sees.

    Attributes
    ----------
    per_token : bool
        Whether there is one answer for each token.
    full_length : bool
        Whether every sequence must have max_len tokens.
    """

    per_token = False
    full_length = False

    def d_pooled(self, d_model: int, max_len: int) -> int:
        """Return how many features come out."""
        return d_model


class MeanPooling(Pooling):
    """The mean of the tokens that the mask keeps: (batch, length, d) -> (batch, d)."""

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.mean_pooling(x, context.mask)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return F.mean_pooling_backward(dy, cache)


class MaxPooling(Pooling):
    """The largest value of each feature among the tokens that the mask keeps: -> (batch, d)."""

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        return F.max_pooling(x, context.mask)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return F.max_pooling_backward(dy, cache)


class FirstToken(Pooling):
    """The first token that is kept, such as BERT's [CLS]: (batch, length, d) -> (batch, d).

    A sequence that is all padding gives 0, as the mean does.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        xp = checks.sequences(x)
        checks.has_tokens("x", x)
        first = first_kept(x, context.mask)
        if first is None:
            return x[:, 0], (x.shape, None)
        return xp.where(first[..., None], x, 0.0).sum(axis=1), (x.shape, first)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        shape, first = cache
        xp = checks.gradient(dy, (shape[0], shape[2]))
        if first is not None:
            return xp.where(first[..., None], dy[:, None, :], 0.0)
        dx = xp.zeros(shape, dtype=dy.dtype)
        dx[:, 0] = dy
        return dx


class Flatten(Pooling):
    """All tokens side by side, with 0 for padding: (batch, length, d) -> (batch, length d)."""

    full_length = True

    def d_pooled(self, d_model: int, max_len: int) -> int:
        return d_model * max_len

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        checks.sequences(x)
        batch, length, d_model = x.shape
        y = without_padding(x, context.mask).reshape(batch, length * d_model)
        return y, (x.shape, context.mask)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        shape, mask = cache
        return without_padding(dy.reshape(shape), mask)


class EveryToken(Pooling):
    """No pooling: one answer for each token, with 0 for padding."""

    per_token = True

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        checks.floating(x=x)
        return without_padding(x, context.mask), context.mask

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return without_padding(dy, cache)


class ChosenTokens(Layer):
    """The tokens that ``context.chosen`` selects, as rows: (batch, length, d) -> (n, d).

    Later layers then compute these tokens alone. If ``context.chosen`` is None, y is x.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        checks.floating(x=x)
        chosen = context.chosen
        if chosen is None:
            return x, None
        checks.mask("chosen", chosen, tuple(x.shape[:2]))
        return x[chosen], (chosen, x.shape)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        if cache is None:
            return dy
        chosen, shape = cache
        dx = array_module(dy).zeros(shape, dtype=dy.dtype)
        dx[chosen] = dy  # y = x[chosen]; the other tokens do not occur in y
        return dx


OF: dict[str, type[Pooling]] = {"first": FirstToken, "mean": MeanPooling, "none": EveryToken}
"""Poolings for ``Pooler(of=...)``."""


class Pooler(Pooling):
    """y = f(x_first W + b), the pooler of BERT: (batch, length, d) -> (batch, d).

    x_first is what `FirstToken` gives.

    Parameters
    ----------
    d_model : int
    activation : str
        f, a name in `ACTIVATIONS`: "tanh" in BERT and RoBERTa, "relu" in DistilBERT, "gelu" in
        ModernBERT, which also has the other options.
    of : {"first", "mean", "none"}
        What is mapped: the first token, the mean of all, or each token.
    bias : bool
        Whether there is a b.
    norm : bool
        Whether a `LayerNorm` follows, with a shift if there is a b.
    """

    def __init__(
        self,
        d_model: int,
        seed: Seed = None,
        dtype: str = "float32",
        *,
        activation: str = "tanh",
        of: str = "first",
        bias: bool = True,
        norm: bool = False,
    ) -> None:
        checks.positive("d_model", d_model)
        ACTIVATIONS.parse(activation, "activation")
        self.first = OF[checks.choice("of", of, OF)]()
        self.per_token = self.first.per_token
        self.dense = Linear(d_model, d_model, bias=bias, seed=seed, dtype=dtype)
        self.activation = ACTIVATIONS.make(activation)
        self.norm: LayerNorm | None = None
        if checks.flag("norm", norm):
            self.norm = LayerNorm(d_model, bias=bias, dtype=dtype)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        pooled, first_cache = self.first.forward(x, context)
        mapped, dense_cache = self.dense.forward(pooled, context)
        y, activation_cache = self.activation.forward(mapped, context)
        norm_cache = None
        if self.norm is not None:
            y, norm_cache = self.norm.forward(y, context)
        return y, (first_cache, dense_cache, activation_cache, norm_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        first_cache, dense_cache, activation_cache, norm_cache = cache
        if self.norm is not None:
            dy = self.norm.backward(dy, norm_cache, gradients)
        dmapped = self.activation.backward(dy, activation_cache, gradients)
        dpooled = self.dense.backward(dmapped, dense_cache, gradients)
        return self.first.backward(dpooled, first_cache, gradients)


def first_kept(x: Array, mask: Array | None) -> Array | None:
    """Return a mask, (batch, length), that is True at the first kept token of each row.

    Without a mask the result is None: the first token is token 0.
    """
    if mask is None:
        return None
    check_padding(mask, x)
    return mask & (mask.cumsum(axis=1) == 1)


def without_padding(x: Array, mask: Array | None) -> Array:
    """Return x, (batch, length, features), with 0 at padding; None if x is None (no gradient).

    Padding may hold NaN, and a weight of 0 would not keep it out of the result: 0 * NaN is NaN.
    """
    if mask is None or x is None:
        return x
    xp = checks.sequences(x)
    check_padding(mask, x)
    return xp.where(mask[..., None], x, 0.0)


def hide_padding(x: Array, context: Context) -> tuple[Array, Context, Array | None]:
    """Return x with 0 at padding, a context that says so, and the mask.

    Without padding the mask is None. Token ids stay as they are, also with mask None.
    """
    padding = context.padding
    if padding is None or x.ndim < 3:
        return x, context, None
    if not padding.hidden:
        x = without_padding(x, padding.mask)
        context = replace(context, padding=padding.as_hidden())
    return x, context, padding.mask


def finite_at_padding(x: Array, padding: Padding | None) -> Array:
    """Return x with 0 where it is NaN or infinite at padding, unless padding is hidden already.

    Every mixer calls this first, forward and backward: 0 * NaN is NaN, for example in gradients of
    weights. Finite numbers at padding are mixed as others are; they reach padding only.
    """
    if padding is None or padding.hidden:
        return x
    xp = checks.sequences(x)
    check_padding(padding.mask, x)
    return xp.where(padding.mask[..., None] | xp.isfinite(x), x, 0.0)


POOLINGS: Registry[Layer] = Registry(
    "pooling",
    {
        "mean": lambda d_model, seed, dtype: MeanPooling(),
        "max": lambda d_model, seed, dtype: MaxPooling(),
        "first": lambda d_model, seed, dtype: FirstToken(),
        "flatten": lambda d_model, seed, dtype: Flatten(),
        "none": lambda d_model, seed, dtype: EveryToken(),
        "pooler": Pooler,
    },
    table="npformer.layers.POOLINGS",
    makes=Layer,
    gets="d_model, seed, dtype and their options",
)
"""What ``SequenceClassifier(pooling=...)`` takes. A builder is called with d_model, seed and dtype,
and returns a layer: a `Pooling` if its output is not (batch, d_model)."""
