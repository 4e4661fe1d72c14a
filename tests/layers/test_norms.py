import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer.layers import Dropout, LayerNorm, RMSNorm


def test_norms_begin_as_plain_normalisations(either, rng):
    x = rng.normal(2.0, 3.0, size=(4, 16))
    y, z = (either(kind(16, dtype="float64"))(x) for kind in (LayerNorm, RMSNorm))
    np.testing.assert_allclose(y.mean(axis=-1), 0.0, atol=1e-14)
    np.testing.assert_allclose(y.std(axis=-1), 1.0, rtol=1e-4)
    np.testing.assert_allclose((z**2).mean(axis=-1), 1.0, rtol=1e-4)


@pytest.mark.parametrize(
    ("kind", "function", "maps"),
    [(LayerNorm, F.layer_norm, (np.ones(16), np.zeros(16))), (RMSNorm, F.rms_norm, (np.ones(16),))],
)
def test_epsilon_reaches_the_function(either, rng, kind, function, maps):
    x = rng.normal(size=(4, 16))
    y, _ = function(x, *maps, eps=0.7)
    np.testing.assert_allclose(either(kind(16, eps=0.7, dtype="float64"))(x), y, rtol=1e-13)


def test_two_layer_norms_share_nothing():
    one, other = LayerNorm(4), LayerNorm(4)
    one.gamma.value[...] = 5.0
    np.testing.assert_array_equal(other.gamma.value, 1.0)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_every_norm_of_a_model_is_of_the_kind(norm):
    config = nf.EncoderConfig(norm_kind="rms", norm=norm, embedding_norm=True, causal=True)
    models = nf.LanguageModel(config, 9), nf.EncoderDecoder(config, 9, 9)
    for model in models:
        norms = [layer for name, layer in model.layers() if name.endswith("norm")]
        assert sum(isinstance(layer, RMSNorm) for layer in norms) > 4
        first = {Dropout} if norm == "pre" else set()  # that of the embeddings is there
        assert {type(layer) for layer in norms} == {RMSNorm} | first
