import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer.layers import Dropout, GatedFeedForward, RMSNorm


def test_begins_as_a_plain_normalisation(either, rng):
    x = rng.normal(2.0, 3.0, size=(4, 16))
    y = either(RMSNorm(16, dtype="float64"))(x)
    np.testing.assert_allclose((y**2).mean(axis=-1), 1.0, rtol=1e-4)


def test_epsilon_reaches_the_function(either, rng):
    x = rng.normal(size=(4, 16))
    y, _ = F.rms_norm(x, np.ones(16), eps=0.7)
    np.testing.assert_allclose(either(RMSNorm(16, eps=0.7, dtype="float64"))(x), y, rtol=1e-13)


def test_a_gated_network_without_biases_is_the_function(either, rng):
    layer, x = (
        GatedFeedForward(4, 6, bias=False, seed=0, dtype="float64"),
        rng.normal(size=(2, 3, 4)),
    )
    expected, _ = F.gated(
        x, layer.gate.weight.value, layer.up.weight.value, layer.down.weight.value
    )
    np.testing.assert_allclose(either(layer)(x), expected, rtol=0, atol=1e-14)
    assert sorted(layer.parameters()) == ["down.weight", "gate.weight", "up.weight"]


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_every_norm_of_a_model_is_of_the_kind(norm):
    config = nf.EncoderConfig(norm_kind="rms", norm=norm, embedding_norm=True, causal=True)
    models = nf.LanguageModel(config, 9), nf.EncoderDecoder(config, 9, 9)
    for model in models:
        norms = [layer for name, layer in model.layers() if name.endswith("norm")]
        assert sum(isinstance(layer, RMSNorm) for layer in norms) > 4
        first = {Dropout} if norm == "pre" else set()  # that of the embeddings is there
        assert {type(layer) for layer in norms} == {RMSNorm} | first


def test_a_language_model_with_both_learns_and_writes_with_a_cache(rng):
    config = nf.EncoderConfig(
        *(16, 2, 2, 24, 12),
        **{"norm_kind": "rms", "norm": "pre", "ffn": "gated", "activation": "silu", "causal": True},
    )
    model = nf.LanguageModel(config, 7, seed=0)
    ids = np.tile(np.arange(1, 7), 2)[None].repeat(8, axis=0)
    history = nf.fit(model, (ids[:, :-1], ids[:, 1:]), epochs=60, lr=1e-2, seed=0, progress=False)
    assert history.train_loss[-1] < 0.2 * history.train_loss[0]
    written = model.generate(np.array([1, 2]), 8, temperature=0)
    np.testing.assert_array_equal(written, model.generate(np.array([1, 2]), 8, 0, cache=False))
    assert written[:4].tolist() == [3, 4, 5, 6]
