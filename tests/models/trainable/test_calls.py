"""All models are called in one form: model(x, mask, types), with or without names."""

import numpy as np
import pytest

import npformer as nf
from npformer.models.trainable import Model
from npformer.tasks.wide import WideSequenceClassifier
from npformer.training.storage.models import MODELS

V = 7
SIZES = {"d_model": 8, "n_layers": 1, "n_heads": 2, "d_ff": 8, "max_len": 6, "n_token_types": 2}
CONFIG = nf.EncoderConfig(**SIZES)
CAUSAL = nf.EncoderConfig(**SIZES, causal=True)
X = np.array([[1, 2, 3, 4], [4, 5, 0, 0]])
MASK = X > 0
TYPES = np.array([[0, 0, 1, 1], [0, 1, 0, 0]])


class Doubled(Model):
    """A model of somebody's own, with one input and without a call of its own."""

    loss = nf.losses.MeanSquaredError()
    n_classes = 8

    def __init__(self):
        self.config = CONFIG
        self.inner = nf.TextEncoder(CONFIG, V, pooler=False, dtype="float64")
        self.pool = nf.layers.MeanPooling()
        self.flatten()

    def forward(self, x, context):
        encoded, encoder_cache = self.inner.forward(x, context)
        pooled, pool_cache = self.pool.forward(encoded.hidden, context)
        return 2.0 * pooled, (encoder_cache, pool_cache)

    def backward(self, dy, cache, gradients):
        dhidden = self.pool.backward(2.0 * dy, cache[1], gradients)
        self.inner.backward((dhidden, None), cache[0], gradients)


ONE_INPUT = {
    "SequenceClassifier": lambda: nf.SequenceClassifier(CONFIG, 3, vocab_size=V, dtype="float64"),
    "WideSequenceClassifier": lambda: WideSequenceClassifier(
        CONFIG, 3, vocab_size=V, n_pairs=0, dtype="float64"
    ),
    "LanguageModel": lambda: nf.LanguageModel(CAUSAL, V, dtype="float64"),
    "MaskedLanguageModel": lambda: nf.MaskedLanguageModel(CONFIG, V, dtype="float64"),
    "TextEncoder": lambda: nf.TextEncoder(CONFIG, V, pooler=False, dtype="float64"),
    "Doubled": Doubled,
}


def numbers_of(outputs):
    """Return outputs of tokens and texts; those of padding have no meaning."""
    outputs = getattr(outputs, "hidden", outputs)
    return outputs[MASK] if outputs.shape[:2] == X.shape else outputs


def test_every_model_is_here():
    assert {*MODELS} <= {*ONE_INPUT, "EncoderDecoder", "Encoder"}  # the last one takes vectors


@pytest.mark.parametrize("kind", ONE_INPUT)
def test_a_model_of_one_input(kind):
    model = ONE_INPUT[kind]()
    padded = nf.Context(mask=MASK, types=TYPES)
    expected = numbers_of(model.forward(X, padded)[0])
    for outputs in (
        model(X, MASK, TYPES),
        model(X, mask=MASK, types=TYPES),
        model(X, MASK, types=TYPES),
    ):
        np.testing.assert_allclose(numbers_of(outputs), expected, rtol=0, atol=1e-12)
    assert np.abs(numbers_of(model(X, MASK)) - expected).max() > 1e-6
    if kind != "Doubled":
        of_name = numbers_of(model(x=X, mask=MASK))
        np.testing.assert_array_equal(of_name, numbers_of(model(X, MASK)))
    if hasattr(model, "predict_probabilities") and kind != "Doubled":
        chosen = model.predict_probabilities(X, MASK, types=TYPES).argmax(axis=-1)
        np.testing.assert_array_equal(model.predict(X, MASK, types=TYPES), chosen)
    for call in (lambda: model(X, MASK, TYPES, TYPES), lambda: model(X, MASK, mask=MASK)):
        with pytest.raises(TypeError, match=r"4 arrays; expected 1|mask twice|positional|multiple"):
            call()
    with pytest.raises(TypeError, match="mask has dtype float64; expected a boolean array"):
        model(X, MASK.astype("float64"))


def test_a_model_of_two_inputs():
    model = nf.EncoderDecoder(CONFIG, V, V, decoder=CAUSAL, dtype="float64")
    y = np.array([[1, 3, 4, 2], [1, 3, 0, 0]])
    masks = MASK, np.array([[1, 1, 1, 1], [1, 1, 0, 0]]) > 0
    types = TYPES, None
    expected = model(X, y, mask=masks, types=types)
    np.testing.assert_array_equal(model(X, y, masks, types), expected)
    np.testing.assert_array_equal(model(source=X, target=y, mask=masks, types=types), expected)
    chosen = model.predict((X, y), masks, types=types)
    np.testing.assert_array_equal(expected.argmax(axis=-1)[masks[1]], chosen[masks[1]])
    with pytest.raises(TypeError, match="mask is an ndarray; expected a tuple of 2"):
        model(X, y, masks[0])
