"""The systems that npformer grew from, as they were written, with the backward pass by hand.

Five texts on the web, questions, answers and an article, are about the Transformer's feed-forward
network, the Dense Synthesizer and FNet. Their code is kept here to be run and compared, with its
mistakes; each docstring names what to use instead.
"""

from __future__ import annotations

from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients, Layer, Seed, asarray, checks, initializers
from npformer.functional.embedding import check_ids
from npformer.layers import (
    GELU,
    Conv1d,
    Dropout,
    Flatten,
    LayerNorm,
    Linear,
    PositionwiseFeedForward,
    ReLU,
    Sequential,
)
from npformer.layers.feed_forward import MAPS


class KerasFeedForward(Layer):
    """y = norm(x + dropout(w_2(relu(w_1(x))))): the block of attention-is-all-you-need-keras.

    The question was why it uses convolutions, if two dense layers compute the same. They do, number
    for number: with equal weights both values of `ffn` give equal outputs and gradients.

    Parameters
    ----------
    d_model : int
        ``d_hid`` there.
    d_ff : int
        ``d_inner_hid`` there.
    dropout : float
        Probability of dropping an entry of what w_2 gives.
    ffn : {"conv1d", "linear"}
        Convolutions with kernel size 1, or linear maps.
    eps : float
        Of the layer norm, added to the variance. Theirs adds 1e-6 to the standard deviation.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}

    Notes
    -----
    In an encoder: `EncoderBlock`, whose second half this is.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        dropout: float = 0.1,
        *,
        ffn: str = "conv1d",
        eps: float = 1e-6,
        seed: Seed,
        dtype: str = "float32",
    ) -> None:
        checks.choice("ffn", ffn, MAPS)
        rng = initializers.generator(seed)
        self.w_1: Linear | Conv1d = MAPS[ffn](d_model, d_ff, seed=rng, dtype=dtype)
        self.relu = ReLU()
        self.w_2: Linear | Conv1d = MAPS[ffn](d_ff, d_model, seed=rng, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.layer_norm = LayerNorm(d_model, eps, dtype=dtype)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        before, first_cache = self.w_1.forward(x, context)  # [batch, length, d_ff]
        hidden, relu_cache = self.relu.forward(before, context)
        output, second_cache = self.w_2.forward(hidden, context)  # [batch, length, d_model]
        output, dropout_cache = self.dropout.forward(output, context)
        y, norm_cache = self.layer_norm.forward(output + x, context)
        return y, (first_cache, relu_cache, second_cache, dropout_cache, norm_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        first_cache, relu_cache, second_cache, dropout_cache, norm_cache = cache
        # y = norm(output + x): the sum hands its gradient to both terms
        dsum = self.layer_norm.backward(dy, norm_cache, gradients)
        doutput = self.dropout.backward(dsum, dropout_cache, gradients)
        dhidden = self.w_2.backward(doutput, second_cache, gradients)
        dbefore = self.relu.backward(dhidden, relu_cache, gradients)
        return dsum + self.w_1.backward(dbefore, first_cache, gradients)


def benchmark_model(
    length: int,
    d_model: int,
    d_ff: int,
    *,
    ffn: str = "linear",
    seed: Seed = 0,
    dtype: str = "float32",
) -> Sequential:
    """Return the model of the benchmark under that question: FFN, flatten, one logit.

    Parameters
    ----------
    length : int
        Tokens of each sequence; 32 in the benchmark.
    d_model : int
        Features of a token; 512 in the benchmark.
    d_ff : int
        Features inside; 4 d_model in the benchmark.
    ffn : {"linear", "conv1d"}
        What was compared.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}

    Returns
    -------
    model : Sequential
        (batch, length, d_model) -> (batch, 1). The sigmoid is in the loss.

    Examples
    --------
    Keras trains with Adam and an epsilon of 1e-7:

    >>> import numpy as np, npformer as nf
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(64, 4, 8)).astype("float32"), rng.integers(0, 2, 64)
    >>> model = nf.published.benchmark_model(4, 8, 32, ffn="conv1d")
    >>> optimizer = nf.Adam(model.parameters(), eps=1e-7)
    >>> loss, gradients = nf.published.benchmark_loss_and_gradients(model, x, y)
    >>> optimizer.step(gradients)
    """
    checks.positive("length", length)
    rng = initializers.generator(seed)
    model = Sequential(
        PositionwiseFeedForward(d_model, d_ff, "relu", ffn=ffn, seed=rng, dtype=dtype),
        Flatten(),
        Linear(length * d_model, 1, seed=rng, dtype=dtype),
    )
    model.flatten()
    return model


def benchmark_loss_and_gradients(model: Layer, x: Array, y: Array) -> tuple[float, Gradients]:
    """Return the binary cross-entropy of a model with one logit, and its gradients.

    Parameters
    ----------
    model : Layer
        (batch, length, d_model) -> (batch, 1), such as `benchmark_model` makes.
    x : array, shape (batch, length, d_model)
        On the model's backend.
    y : int array, shape (batch,)
        0 or 1.

    Returns
    -------
    loss : float
        Mean over the batch, in nats.
    gradients : Gradients
    """
    checks.shape("y", y, (x.shape[0],), "One label for each sequence")
    check_ids("y", y, 2, "there are two classes")
    logits, cache = model.forward(x, Context(training=True))  # [batch, 1]
    targets = asarray(y, model.backend).reshape(-1, 1).astype(logits.dtype)
    loss, loss_cache = F.binary_cross_entropy_with_logits(logits, targets)
    gradients = Gradients(model)
    dlogits = F.binary_cross_entropy_with_logits_backward(1.0, loss_cache)
    model.backward(dlogits, cache, gradients)
    return float(loss), gradients


class AskersSynthesizer(Layer):
    """y = softmax(relu(x W1 + b1) W2 + b2) v with W1 (d_model, length), W2 (length, length).

    The Dense Synthesizer as a forum question wrote it. It is a position-wise map and can be
    trained, but it is not the paper's, whose W1 is (d_model, d_model) and whose W2 is (d_model,
    length); the answer there says so. That `x` would have to be taken row by row, as the answer
    says too, is wrong: both are matrix products, for a whole batch at once.

    Parameters
    ----------
    length : int
        ``l`` there: every sequence has this length.
    d_model : int
        ``d`` there.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}

    Notes
    -----
    The question calls softmax without an axis. PyTorch then takes the last one for two axes, which
    is right, and the first one for three, which is not: over a batch, the weights of a token would
    not sum to 1. Here it is always the last.

    The paper's: `functional.dense_synthesizer`, and ``EncoderConfig(mixer="dense_synthesizer")``.
    """

    def __init__(self, length: int, d_model: int, *, seed: Seed, dtype: str = "float32") -> None:
        rng = initializers.generator(seed)
        self.linear1 = Linear(d_model, length, seed=rng, dtype=dtype)
        self.linear2 = Linear(length, length, seed=rng, dtype=dtype)

    def forward(self, x: tuple[Array, Array], context: Context) -> tuple[Array, Any]:
        """Return y and what `backward` needs.

        Parameters
        ----------
        x : (x, v)
            Tokens, (..., length, d_model), and what is averaged, (..., length, d_value); with a
            batch or without one.
        context : Context
            With a mask, padding is not averaged.
        """
        tokens, v = x
        before, first_cache = self.linear1.forward(tokens, context)  # [.., length, length]
        hidden, relu_cache = F.relu(before)
        b, second_cache = self.linear2.forward(hidden, context)  # [.., length, length]
        mask = None if context.mask is None else context.mask[:, None, :]  # [batch, 1, length]
        y, average_cache = F.average(b, v, mask)
        return y, (first_cache, relu_cache, second_cache, average_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> tuple[Array, Array]:
        """Add the parameters' gradients to `gradients` and return (dx, dv)."""
        first_cache, relu_cache, second_cache, average_cache = cache
        # y = softmax(b) @ v
        db, dv = F.average_backward(dy, average_cache)
        dhidden = self.linear2.backward(db, second_cache, gradients)
        dbefore = F.relu_backward(dhidden, relu_cache)
        return self.linear1.backward(dbefore, first_cache, gradients), dv

    def __call__(self, x: Array, v: Array) -> Array:  # type: ignore[override]
        """Return y, as in the question.

        Parameters
        ----------
        x : array, shape (..., length, d_model)
        v : array, shape (..., length, d_value)
        """
        y, _ = self.forward((x, v), Context())
        return y


class BlogFNetBlock(Layer):
    """h = norm(fourier(x) + x), y = norm(ffn(h) + x): a blog's FNet layer.

    The paper's is h = norm_1(fourier(x) + x), y = norm_2(ffn(h) + h). Here a single layer norm does
    the work of two, and the second residual connection adds the block's *input* again, so that
    what the tokens said to each other reaches the output through the feed-forward network alone.

    Parameters
    ----------
    d_model : int
        ``dim`` there.
    d_ff : int
        ``hidden_dim`` there.
    dropout : float
        After both layers of the feed-forward network; the paper has it after the second.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}

    Notes
    -----
    The blog appends one and the same layer object to its list again and again: see `blog_fnet`. The
    feed-forward network's GELU is the exact one, where FNet's published code has the tanh form.

    What it should have meant, the tied layers included, on sequences of 20 tokens::

        npformer.EncoderConfig(
            d_model=256, d_ff=512, n_layers=2, max_len=20, mixer="fourier", dropout=0.5,
            activation="gelu", share_layers=True,
        )

    and the paper's FNet, with ``activation="gelu_tanh"``, ``norm_eps=1e-12`` and without
    ``share_layers``.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        dropout: float = 0.0,
        *,
        seed: Seed,
        dtype: str = "float32",
    ) -> None:
        rng = initializers.generator(seed)
        self.norm = LayerNorm(d_model, dtype=dtype)
        self.feed_forward = Sequential(
            Linear(d_model, d_ff, seed=rng, dtype=dtype),
            GELU(),
            Dropout(dropout),
            Linear(d_ff, d_model, seed=rng, dtype=dtype),
            Dropout(dropout),
        )

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        if context.mask is not None:
            raise ValueError(
                "BlogFNetBlock got a padding mask, and it mixes every position. Leave the mask "
                "out, or use npformer.EncoderConfig(mixer='fourier', padding='per_length')"
            )
        mixed, mixing_cache = F.fourier_mixing(x)  # [batch, length, d_model]
        h, first_cache = self.norm.forward(mixed + x, context)
        thought, feed_forward_cache = self.feed_forward.forward(h, context)
        y, second_cache = self.norm.forward(thought + x, context)
        return y, (mixing_cache, first_cache, feed_forward_cache, second_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        mixing_cache, first_cache, feed_forward_cache, second_cache = cache
        # y = norm(thought + x)
        dsecond = self.norm.backward(dy, second_cache, gradients)
        dh = self.feed_forward.backward(dsecond, feed_forward_cache, gradients)
        # h = norm(mixed + x)
        dfirst = self.norm.backward(dh, first_cache, gradients)
        # x goes three ways: into both sums and into the mixing
        return dsecond + dfirst + F.fourier_mixing_backward(dfirst, mixing_cache)


def blog_fnet(
    d_model: int,
    d_ff: int,
    dropout: float,
    n_layers: int,
    *,
    seed: Seed = 0,
    dtype: str = "float32",
) -> Sequential:
    """Return the blog's FNet: one `BlogFNetBlock` applied n_layers times.

    Parameters
    ----------
    d_model, d_ff : int
        Features of a token, and inside the feed-forward network.
    dropout : float
    n_layers : int
        How many times. The weights are those of a single block, whatever the number.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}
    """
    checks.positive("n_layers", n_layers)
    block = BlogFNetBlock(d_model, d_ff, dropout, seed=seed, dtype=dtype)
    model = Sequential(*[block] * n_layers)
    model.flatten()
    return model
