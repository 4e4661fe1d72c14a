"""Fourier, Hartley, linear and random mixing: what they do about padding, and what they learn."""

import numpy as np
import pytest

from npformer import Context, Gradients
from npformer import functional as F
from npformer.mixers import Fourier, Hartley, LinearMixing, RandomMixing
from tests.passes import both_passes

KINDS = [Fourier, Hartley, LinearMixing, RandomMixing]


def build(kind, padding="refuse"):
    if kind in (Fourier, Hartley):
        return kind(padding)
    return kind(8, 6, padding, seed=0, dtype="float64")


def function_of(mixer, transposed=False):
    """Return the map of whole sequences as in npformer.functional, or its transpose."""
    if isinstance(mixer, Fourier):
        return lambda x: F.fourier_mixing(x)[0]
    if isinstance(mixer, Hartley):
        return lambda x: F.hartley_mixing(x)[0]
    W, V = mixer.W_sequence.value, mixer.W_features.value
    if transposed:
        W, V = W.T, V.T
    return lambda x: F.linear_mixing(x, W, V)[0]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


def test_without_a_mask_it_is_the_function(either, kind, rng):
    x = rng.normal(size=(2, 5, 8))
    for padding in ("refuse", "per_length", "zero"):
        mixer = either(build(kind, padding))
        np.testing.assert_allclose(mixer(x), function_of(mixer)(x), rtol=1e-12, atol=1e-14)


def test_a_mask_is_refused_by_name_with_both_ways_out(either, kind, rng, padding):
    mixer = either(build(kind))
    with pytest.raises(ValueError, match="it cannot skip padding") as caught:
        mixer(rng.normal(size=(3, 4, 8)), padding)
    for words in (
        f"mixer {mixer.name!r} got a padding mask",
        "padding='per_length' mixes each sequence at its own length",
        "padding='zero' mixes the padding as zeros",
        "EncoderConfig(padding=...)",
    ):
        assert words in str(caught.value)


LENGTHS = [4, 2, 0, 1, 2]


@pytest.mark.parametrize("transposed", [False, True], ids=["forward", "backward"])
def test_per_length_mixes_each_sequence_by_itself(either, kind, rng, transposed):
    mask = np.arange(4) < np.array(LENGTHS)[:, None]
    x = rng.normal(size=(5, 4, 8))
    mixer = either(build(kind, "per_length"))
    dy = rng.normal(size=(5, 4, 8))
    y, dx, *_ = both_passes(mixer, x, Context(mask=mask), dy)
    outputs, inputs = (dx, dy) if transposed else (y, x)
    mix = function_of(mixer, transposed)
    for n, length in enumerate(LENGTHS):
        if length:
            alone = mix(inputs[n : n + 1, :length])
            np.testing.assert_allclose(outputs[n : n + 1, :length], alone, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(outputs[n, length:], 0.0)


def test_per_length_the_matrices_collect_every_length(either, rng):
    mask = np.arange(4) < np.array(LENGTHS)[:, None]
    x = rng.normal(size=(5, 4, 8))
    mixer = either(build(LinearMixing, "per_length"))
    dy = rng.normal(size=(5, 4, 8))
    together, alone = Gradients(mixer), Gradients(mixer)
    mixer.backward(dy, mixer.forward(x, Context(mask=mask))[1], together)
    for n in (0, 1, 3, 4):
        length = int(mask[n].sum())
        _, cache = mixer.forward(x[n : n + 1, :length], Context())
        mixer.backward(dy[n : n + 1, :length], cache, alone)
    np.testing.assert_allclose(together.flat, alone.flat, rtol=0, atol=1e-12)


def test_zero_mixes_zeros(either, kind, rng, padding):
    mixer = either(build(kind, "zero"))
    x = rng.normal(size=(3, 4, 8))
    expected = function_of(mixer)(x * padding[..., None])
    np.testing.assert_allclose(mixer(x, padding), expected, rtol=0, atol=1e-12)


def test_zero_depends_on_the_number_of_zeros_in_a_transform(either, kind, rng, padding):
    mixer = either(build(kind, "zero"))
    x = rng.normal(size=(3, 4, 8))
    y = mixer(x, padding)
    fewer = mixer(x[:, :3], padding[:, :3])
    if isinstance(mixer, Fourier | Hartley):
        assert np.abs(y[1, :2] - fewer[1, :2]).max() > 0.1
    else:  # a matrix that is cropped, not made for each length
        np.testing.assert_allclose(fewer[1, :2], y[1, :2], rtol=0, atol=1e-12)


def test_only_linear_mixing_trains_parameters():
    assert Fourier().n_parameters() == Hartley().n_parameters() == 0
    linear = LinearMixing(8, 6, seed=0)
    random = RandomMixing(8, 6, seed=0)
    assert linear.n_parameters() == 6 * 6 + 8 * 8
    assert random.n_parameters() == 0
    assert list(random.named_parameters()) == ["W_sequence", "W_features"]
    assert len(Gradients(random)) == 0


def test_random_mixing_is_linear_mixing_as_it_was_drawn(rng):
    x = rng.normal(size=(2, 5, 8))
    linear, random = (kind(8, 6, seed=3, dtype="float64") for kind in (LinearMixing, RandomMixing))
    np.testing.assert_array_equal(random(x), linear(x))


def test_linear_mixing_keeps_the_variance_of_what_it_mixes(either, rng):
    x = rng.normal(size=(4, 128, 64))
    assert 0.8 < either(LinearMixing(64, 128, seed=0, dtype="float64"))(x).std() < 1.25


@pytest.mark.parametrize("kind", [Fourier, Hartley])
def test_the_dtype_of_the_tokens_stays(kind, rng):
    assert kind()(rng.normal(size=(2, 5, 8)).astype("float32")).dtype == "float32"
