"""A model with everything in it, layers that users might write, and what both have to agree on."""

import numpy as np
import pytest

import npformer as nf
from npformer import layers as L
from npformer.mixers import Attention

DOUBLE = 1e-11
MASK = np.arange(6) < np.array([6, 4, 6, 1, 3, 6, 2, 5])[:, None]


def make(pooling="mean", **changes):
    """Return a float64 classifier of token ids, small and with everything in it."""
    changes = {"mixer": "attention", "activation": "gelu"} | changes
    config = nf.EncoderConfig(d_model=8, n_layers=2, n_heads=2, d_ff=12, max_len=6, **changes)
    model = nf.SequenceClassifier(config, 3, vocab_size=7, pooling=pooling, seed=0, dtype="float64")
    rng = np.random.default_rng(1)
    for array in model.parameters().values():  # no bias at 0, no gamma at 1
        array += 0.3 * rng.standard_normal(array.shape)
    return model


class Square(nf.Layer):
    """y = x^2."""

    def forward(self, x, context):
        return x * x, x

    def backward(self, dy, cache, gradients):
        return 2.0 * dy * cache


class Scaled(L.Linear):
    """A linear map of which twice the result is taken."""

    def forward(self, x, context):
        y, cache = super().forward(x, context)
        return 2.0 * y, cache

    def backward(self, dy, cache, gradients):
        return super().backward(2.0 * dy, cache, gradients)


class Nothing(nf.Layer):
    """y = x: it hands on the very array that it was given."""

    def forward(self, x, context):
        return x, None

    def backward(self, dy, cache, gradients):
        return dy


class Reversed(nf.Layer):
    """Tokens in reverse."""

    def forward(self, x, context):
        return x[:, ::-1], None

    def backward(self, dy, cache, gradients):
        return dy[:, ::-1]


class Last(nf.Layer):
    """The last token."""

    def forward(self, x, context):
        return x[:, -1], x.shape

    def backward(self, dy, cache, gradients):
        dx = np.zeros(cache)
        dx[:, -1] = dy
        return dx


class HeadsOfOne(Attention):
    """Attention that only looks at the values."""

    def forward(self, x, context):
        value, value_cache = self.value.forward(x, context)
        y, output_cache = self.output.forward(value, context)
        return y, (value_cache, output_cache)

    def backward(self, dy, cache, gradients):
        value_cache, output_cache = cache
        dvalue = self.output.backward(dy, output_cache, gradients)
        return self.value.backward(dvalue, value_cache, gradients)


class Block(nf.EncoderBlock):
    """A block without a feed-forward network."""

    def forward(self, x, context):
        y, cache = self.mixer.forward(x, context)
        return x + y, cache

    def backward(self, dy, cache, gradients):
        return dy + self.mixer.backward(dy, cache, gradients)


def block(model, i=0):
    return model.encoder.blocks[i]


def linear(d_in=8, d_out=8, kind=L.Linear, **options):
    return kind(d_in, d_out, seed=5, dtype="float64", **options)


def plain_step(model, *batch, **options):
    """Return loss and gradients without the engine."""
    with nf.use_kernels(False):
        return model.loss_and_gradients(*batch, **options)


def assert_logits_agree(model, x, mask=MASK):
    """Check that a prediction with the engine is the one without it."""
    with nf.use_kernels(False):
        expected = model(x, mask)
    np.testing.assert_allclose(model(x, mask), expected, rtol=0, atol=DOUBLE)


def assert_same_step(result, expected):
    """Compare two pairs of loss and gradients, the first one's on any backend."""
    result_loss, result_gradients = result
    loss, gradients = expected
    scale = max(np.abs(g).max(initial=0.0) for g in gradients.values())
    assert float(result_loss) == pytest.approx(loss, rel=1e-12)
    assert list(result_gradients) == list(gradients)
    for name, g in gradients.items():
        np.testing.assert_allclose(
            nf.to_numpy(result_gradients[name]), g, rtol=0, atol=DOUBLE * scale, err_msg=name
        )


def assert_steps_agree(model, *batch, **options):
    """Check that a step with the engine is the step without it."""
    assert_same_step(model.loss_and_gradients(*batch, **options), plain_step(model, *batch))
