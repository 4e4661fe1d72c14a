"""Published snippets as they were written, mistakes included, with backward passes by hand.

They come from questions, answers and an article on the web about the feed-forward network of the
Transformer, the Dense Synthesizer and FNet. They are here to be run and compared; each docstring
says what to use instead.
"""

from typing import Any

from npformer import functional as F
from npformer.core import (
    Array,
    Context,
    Gradients,
    Layer,
    Seed,
    TwoInputLayer,
    asarray,
    checks,
    generators,
)
from npformer.core.inputs import Sequences
from npformer.core.support.missing_names import lead_to_names
from npformer.layers import (
    GELU,
    Dropout,
    Flatten,
    LayerNorm,
    Linear,
    PositionwiseFeedForward,
    ReLU,
    Sequential,
)
from npformer.layers.feed_forward import MAPS
from npformer.models.batch import Batch
from npformer.models.losses import BinaryCrossEntropy
from npformer.models.step import accumulate

__all__ = [
    "AskersSynthesizer",
    "BlogFNetBlock",
    "KerasFeedForward",
    "benchmark_loss_and_gradients",
    "benchmark_model",
    "blog_fnet",
]

lead_to_names(__name__)


class KerasFeedForward(Layer):
    """y = norm(x + dropout(w_2(relu(w_1(x))))): the block of attention-is-all-you-need-keras.

    The question was why it uses convolutions, if two dense layers compute the same. They do: with
    equal weights ``ffn="conv1d"``, of kernel size 1, and ``ffn="linear"`` give equal outputs and
    gradients, number for number. Use `EncoderBlock`; this is its second half.

    `d_model` and `d_ff` are ``d_hid`` and ``d_inner_hid`` in the original. `eps` is added to the
    variance in the layer norm; the original adds it to the standard deviation.
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
        rng = generators.from_seed(seed)
        self.w_1 = MAPS[ffn](d_model, d_ff, seed=rng, dtype=dtype)
        self.relu = ReLU()
        self.w_2 = MAPS[ffn](d_ff, d_model, seed=rng, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.layer_norm = LayerNorm(d_model, eps, dtype=dtype)

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        hidden, w_1_cache = self.w_1.forward(x, context)  # [batch, length, d_ff]
        active, relu_cache = self.relu.forward(hidden, context)
        output, w_2_cache = self.w_2.forward(active, context)  # [batch, length, d_model]
        output, dropout_cache = self.dropout.forward(output, context)
        y, norm_cache = self.layer_norm.forward(output + x, context)
        return y, (w_1_cache, relu_cache, w_2_cache, dropout_cache, norm_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        w_1_cache, relu_cache, w_2_cache, dropout_cache, norm_cache = cache
        # y = norm(output + x): both terms of the sum get the gradient of the sum
        dsum = self.layer_norm.backward(dy, norm_cache, gradients)
        doutput = self.dropout.backward(dsum, dropout_cache, gradients)
        dactive = self.w_2.backward(doutput, w_2_cache, gradients)
        dhidden = self.relu.backward(dactive, relu_cache, gradients)
        return dsum + self.w_1.backward(dhidden, w_1_cache, gradients)


def benchmark_model(
    length: int,
    d_model: int,
    d_ff: int,
    *,
    ffn: str = "linear",
    seed: Seed = 0,
    dtype: str = "float32",
) -> Sequential:
    """Return the model of a benchmark in the answers to that question: FFN, flatten, one logit.

    (batch, length, d_model) -> (batch, 1); the sigmoid is part of the loss. In the benchmark,
    `length`, `d_model` and `d_ff` are 32, 512 and 2048. It compares the two values of `ffn`.

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
    rng = generators.from_seed(seed)
    return Sequential(
        PositionwiseFeedForward(d_model, d_ff, "relu", ffn=ffn, seed=rng, dtype=dtype),
        Flatten(),
        Linear(length * d_model, 1, seed=rng, dtype=dtype),
    ).flatten()


def benchmark_loss_and_gradients(model: Layer, x: Array, y: Array) -> tuple[float, Gradients]:
    """Return the binary cross-entropy of a `benchmark_model` and its gradients.

    x is on the model's backend; y, shape (batch,), holds 0 and 1.
    """
    checks.instance("model", model, Layer)
    checks.sequences(x)
    loss, gradients = BinaryCrossEntropy(), Gradients(model)
    loss.check(y, x.shape[:1], n_classes=2)
    batch = Batch((Sequences(x),), asarray(y, model.backend))
    context = Context(training=True)
    return float(accumulate(model, loss, batch, context, gradients)), gradients


class AskersSynthesizer(TwoInputLayer):
    """y = softmax(relu(x W1 + b1) W2 + b2) v with W1 (d_model, length), W2 (length, length).

    The Dense Synthesizer of a forum question. It can be trained, but it is not that of the paper,
    as the answer notes: there W1 is (d_model, d_model) and W2 is (d_model, length). The answer also
    says that `x` has to be taken row by row, which is wrong: both maps are matrix products, for a
    whole batch at once. Use ``EncoderConfig(mixer="dense_synthesizer")`` or
    `functional.dense_synthesizer`.

    All sequences have the same `length`, which is ``l`` in the question; `d_model` is ``d``.

    The question calls softmax without an axis. PyTorch then chooses the last of two axes, which is
    right, but the first of three: the weights of a token in a batch would not sum to 1. Here it is
    always the last axis.
    """

    def __init__(self, length: int, d_model: int, *, seed: Seed, dtype: str = "float32") -> None:
        rng = generators.from_seed(seed)
        self.linear1 = Linear(d_model, length, seed=rng, dtype=dtype)
        self.linear2 = Linear(length, length, seed=rng, dtype=dtype)

    def forward(  # type: ignore[override]
        self, tokens: Array, v: Array, context: Context
    ) -> tuple[Array, Any]:
        """Return y. Tokens are (..., length, d_model); v is averaged.

        A `memory_mask` in the context leaves the padding of v out of the averages.
        """
        before, first_cache = self.linear1.forward(tokens, context)  # [.., length, length]
        hidden, relu_cache = F.relu(before)
        b, second_cache = self.linear2.forward(hidden, context)  # [.., length, length]
        mask = context.memory_mask
        mask = None if mask is None else mask[:, None, :]  # [batch, 1, length]
        y, average_cache = F.average(b, v, mask)
        return y, (first_cache, relu_cache, second_cache, average_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> tuple[Array, Array]:
        """Add the parameters' gradients and return (dtokens, dv)."""
        first_cache, relu_cache, second_cache, average_cache = cache
        # y = softmax(b) @ v
        db, dv = F.average_backward(dy, average_cache)
        dhidden = self.linear2.backward(db, second_cache, gradients)
        dbefore = F.relu_backward(dhidden, relu_cache)
        return self.linear1.backward(dbefore, first_cache, gradients), dv


class BlogFNetBlock(Layer):
    """h = norm(fourier(x) + x), y = norm(ffn(h) + x): the FNet layer of a blog.

    In the paper it is h = norm_1(fourier(x) + x), y = norm_2(ffn(h) + h). The blog has one norm in
    place of two. Its second residual connection adds the *input* of the block again, so the mixing
    reaches the output only through the feed-forward network. Dropout follows both layers of that
    network; in the paper only the second. `d_model` and `d_ff` are ``dim`` and ``hidden_dim``.

    The blog appends the same layer object to its list n times: see `blog_fnet`. Its GELU is the
    exact one; FNet's published code has the tanh form. What the blog probably meant, with the tied
    layers and sequences of 20 tokens, is::

        npformer.EncoderConfig(
            d_model=256, d_ff=512, n_layers=2, max_len=20, mixer="fourier", dropout=0.5,
            activation="gelu", share_layers=True,
        )

    FNet itself has ``activation="gelu_tanh"``, ``norm_eps=1e-12`` and no ``share_layers``.
    """

    def __init__(
        self, d_model: int, d_ff: int, dropout: float = 0.0, *, seed: Seed, dtype: str = "float32"
    ) -> None:
        rng = generators.from_seed(seed)
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
        output, feed_forward_cache = self.feed_forward.forward(h, context)
        y, second_cache = self.norm.forward(output + x, context)
        return y, (mixing_cache, first_cache, feed_forward_cache, second_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        mixing_cache, first_cache, feed_forward_cache, second_cache = cache
        # y = norm(output + x)
        dsecond = self.norm.backward(dy, second_cache, gradients)
        dh = self.feed_forward.backward(dsecond, feed_forward_cache, gradients)
        # h = norm(mixed + x)
        dfirst = self.norm.backward(dh, first_cache, gradients)
        # x is used three times: in both sums and in the mixing
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
    """Return the FNet of the blog: one `BlogFNetBlock`, applied n_layers times."""
    checks.whole("n_layers", n_layers, at_least=1, at_most=checks.MOST_LAYERS)
    block = BlogFNetBlock(d_model, d_ff, dropout, seed=seed, dtype=dtype)
    return Sequential(*[block] * n_layers).flatten()
