"""The Dense Synthesizer as a mixer (Tay et al., 2020, arXiv 2005.00743)."""

from __future__ import annotations

from typing import Any, Self

from npformer import checks, initializers
from npformer import functional as F
from npformer.backend import Array
from npformer.initializers import Seed
from npformer.layers.linear import Linear
from npformer.mixers.attention import over_heads
from npformer.mixers.mixer import Mixer, MixerSettings, check_heads
from npformer.module import Context, Gradients, Parameter


class DenseSynthesizer(Mixer):
    """head_i = softmax(relu(x W1^i + b1^i) W2^i + b2^i) x W_V^i, y = concat(head_1, ...) W_O.

    The weights come from each token alone; no two tokens are compared. One head is the paper's
    equation, W1 (d_model, d_model) and W2 (d_model, max_len). With h heads the columns of W1 are
    shared out among them, as attention shares out its query projection, and each has its own W2
    of shape (d_model / h, max_len).

    Parameters
    ----------
    d_model : int
        Features of a token.
    n_heads : int
        Heads; each has a map of its own.
    max_len : int
        Columns of W2: the longest sequence. Shorter ones use the first columns.
    causal : bool
        Token i sees the tokens 0 to i only.
    seed : int or numpy.random.Generator
        Draws the weights.
    dtype : {"float32", "float64"}

    Attributes
    ----------
    W1 : Parameter, shape (d_model, d_model)
    b1 : Parameter, shape (d_model,)
    W2 : Parameter, shape (n_heads, d_model / n_heads, max_len)
    b2 : Parameter, shape (n_heads, max_len)
    value, output : Linear
        G and W_O.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int = 1,
        max_len: int = 128,
        *,
        causal: bool = False,
        seed: Seed,
        dtype: str = "float32",
    ) -> None:
        check_heads(d_model, n_heads)
        checks.positive("max_len", max_len)
        rng = initializers.generator(seed)
        xavier, zeros = initializers.xavier_uniform, initializers.zeros
        d_head = d_model // n_heads
        self.n_heads = n_heads
        self.max_len = max_len
        self.causal = causal
        self.W1 = Parameter(initializers.draw(xavier, rng, (d_model, d_model), dtype))
        self.b1 = Parameter(initializers.draw(zeros, rng, (d_model,), dtype))
        self.W2 = Parameter(
            initializers.draw(initializers.per_head(xavier), rng, (n_heads, d_head, max_len), dtype)
        )
        self.b2 = Parameter(initializers.draw(zeros, rng, (n_heads, max_len), dtype))
        self.value = Linear(d_model, d_model, seed=rng, dtype=dtype)
        self.output = Linear(d_model, d_model, seed=rng, dtype=dtype)

    @classmethod
    def build(cls, settings: MixerSettings, *, seed: Seed, dtype: str) -> Self:
        return cls(
            settings.d_model,
            settings.n_heads,
            settings.max_len,
            causal=settings.causal,
            seed=seed,
            dtype=dtype,
        )

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        value, value_cache = self.value.forward(x, context)  # [batch, length, d_model]
        heads, heads_cache = F.dense_synthesizer(
            x,
            F.split_heads(value, self.n_heads),  # [batch, heads, length, d_head]
            self.W1.value,
            self.b1.value,
            self.W2.value,
            self.b2.value,
            mask=over_heads(context.mask),
            causal=self.causal,
        )
        y, output_cache = self.output.forward(F.merge_heads(heads), context)
        return y, (value_cache, heads_cache, output_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        value_cache, heads_cache, output_cache = cache
        dmerged = self.output.backward(dy, output_cache, gradients)
        dx, dvalue, dW1, db1, dW2, db2 = F.dense_synthesizer_backward(
            F.split_heads(dmerged, self.n_heads), heads_cache
        )
        gradients.add(self.W1, dW1)
        gradients.add(self.b1, db1)
        gradients.add(self.W2, dW2)
        gradients.add(self.b2, db2)
        # x is used twice: its gradients add up
        return dx + self.value.backward(F.merge_heads(dvalue), value_cache, gradients)
