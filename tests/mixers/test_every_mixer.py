"""What every token mixer keeps to: one signature, and one truth about masks."""

import numpy as np
import pytest

from npformer import Context, Gradients
from npformer.mixers import MIXERS, Mixer, MixerSettings

CAUSAL = ["attention", "dense_synthesizer"]
OWN_LENGTH = {"padding": "per_length"}


def build(name, dtype="float64", **settings):
    chosen = MixerSettings(d_model=8, n_heads=2, max_len=6, **settings)
    return MIXERS[name].build(chosen, seed=0, dtype=dtype)


@pytest.fixture(params=list(MIXERS))
def name(request):
    return request.param


def test_the_shape_stays(name, rng):
    for length in (1, 2, 5, 6):
        x = rng.normal(size=(3, length, 8))
        assert build(name)(x).shape == x.shape


def test_is_a_mixer(name):
    assert isinstance(build(name), Mixer)


def test_sequences_of_a_batch_do_not_see_each_other(name, rng):
    mixer, x = build(name), rng.normal(size=(3, 5, 8))
    y = mixer(x)
    x[1] += 1.0
    np.testing.assert_allclose(mixer(x)[[0, 2]], y[[0, 2]], rtol=1e-12)


def test_what_padding_holds_changes_no_kept_token(name, rng, padding):
    mixer, x = build(name, **OWN_LENGTH), rng.normal(size=(3, 4, 8))
    y = mixer(x, padding)
    x[~padding] = 1e3 * rng.normal(size=x[~padding].shape)
    np.testing.assert_allclose(mixer(x, padding)[padding], y[padding], rtol=1e-12)


def test_a_padded_sequence_is_the_sequence_alone(name, rng, padding):
    mixer, x = build(name, **OWN_LENGTH), rng.normal(size=(3, 4, 8))
    padded, alone = mixer(x, padding), mixer(x[1:2, :2])
    np.testing.assert_allclose(padded[1, :2], alone[0], rtol=1e-12)


def test_kept_tokens_send_no_gradient_into_padding(name, rng, padding):
    mixer, x = build(name, **OWN_LENGTH), rng.normal(size=(3, 4, 8))
    _, cache = mixer.forward(x, Context(mask=padding))
    dy = rng.normal(size=x.shape) * padding[..., None]
    dx = mixer.backward(dy, cache, Gradients(mixer))
    np.testing.assert_allclose(dx[~padding], 0.0, atol=1e-15)
    assert np.abs(dx[padding]).max() > 0.0


def test_a_sequence_of_padding_alone_is_finite(name, rng, padding):
    mixer, x = build(name, **OWN_LENGTH), rng.normal(size=(3, 4, 8))
    y, cache = mixer.forward(x, Context(mask=padding))
    gradients = Gradients(mixer)
    dx = mixer.backward(np.ones_like(y), cache, gradients)
    assert all(np.isfinite(a).all() for a in (y, dx, gradients.flat))


def test_a_mask_that_keeps_everything_is_no_mask(name, rng):
    mixer, x = build(name, **OWN_LENGTH), rng.normal(size=(3, 4, 8))
    masked = mixer(x, np.ones((3, 4), dtype=bool))
    np.testing.assert_allclose(masked, mixer(x), rtol=1e-12)


def test_a_seed_gives_the_same_weights_whatever_the_dtype(name):
    single, double = build(name, dtype="float32"), build(name, dtype="float64")
    assert list(single.parameters()) == list(double.parameters())
    for key, weight in double.parameters().items():
        np.testing.assert_array_equal(single.parameters()[key], weight.astype("float32"))


@pytest.mark.parametrize("name", CAUSAL)
def test_causal_a_later_token_changes_no_earlier_result(name, rng):
    mixer, x = build(name, causal=True), rng.normal(size=(2, 5, 8))
    y = mixer(x)
    x[:, 3] += 1.0
    np.testing.assert_allclose(mixer(x)[:, :3], y[:, :3], rtol=1e-13)
    assert np.abs(mixer(x)[:, 3:] - y[:, 3:]).max() > 1e-3


@pytest.mark.parametrize("name", CAUSAL)
def test_causal_and_padding_hold_both(name, rng, padding):
    mixer, x = build(name, causal=True), rng.normal(size=(3, 4, 8))
    padded, alone = mixer(x, padding), mixer(x[1:2, :2])
    np.testing.assert_allclose(padded[1, :2], alone[0], rtol=1e-12)
