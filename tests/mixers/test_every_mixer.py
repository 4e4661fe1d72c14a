"""What is true of every token mixer, above all about masks."""

import numpy as np
import pytest

from npformer import Context
from npformer import functional as F
from npformer.mixers import MIXERS, SCORES, Attention, AveragingMixer, MixerSettings
from tests.passes import both_passes

VARIANTS = {
    **{name: (name, {}) for name in MIXERS},
    "attention in blocks": ("attention", {"memory": "blocks"}),
    "mixture of six": ("mixture", {"mixture": tuple(SCORES)}),
    "two tables": ("mixture", {"mixture": ("random_synthesizer", "fixed_random_synthesizer")}),
}
AVERAGING = [
    variant
    for variant, (name, _) in VARIANTS.items()
    if issubclass(MIXERS[name], Attention | AveragingMixer)
]


def build(name, dtype="float64", **settings):
    kind, variant = VARIANTS[name]
    defaults = {"d_model": 8, "n_heads": 2, "max_len": 6, "rank": 2, "padding": "per_length"}
    return MIXERS[kind].build(MixerSettings(**defaults | variant | settings), seed=0, dtype=dtype)


@pytest.fixture(params=list(VARIANTS))
def name(request):
    return request.param


@pytest.fixture
def mixer(name, either):
    return either(build(name))


@pytest.fixture
def x(rng):
    return rng.normal(size=(3, 4, 8))


def test_the_shape_stays(mixer, rng):
    for length in (1, 2, 5, 6):
        x = rng.normal(size=(3, length, 8))
        assert mixer(x).shape == x.shape


def test_sequences_of_a_batch_do_not_see_each_other(mixer, x):
    y = mixer(x)
    x[1] += 1.0
    np.testing.assert_allclose(mixer(x)[[0, 2]], y[[0, 2]], rtol=1e-12)


def test_padding_is_left_out(mixer, x, padding):
    padded = mixer(x, padding)
    alone = mixer(x[1:2, :2])
    np.testing.assert_allclose(padded[1, :2], alone[0], rtol=1e-12)


def test_padding_is_left_out_of_the_explanation(mixer, x, padding):
    padded = mixer.explain(x, Context(mask=padding))
    alone = mixer.explain(x[1:2, :2], Context())
    np.testing.assert_allclose(padded[1, :, :2, :2], alone[0], rtol=1e-12)


def test_a_mask_that_keeps_every_token_changes_nothing(mixer, x):
    mask = np.ones((3, 4), dtype=bool)
    np.testing.assert_allclose(mixer(x, mask), mixer(x), rtol=1e-12)


def test_a_seed_gives_the_same_weights_whatever_the_dtype(name):
    single, double = build(name, dtype="float32"), build(name, dtype="float64")
    assert list(single.parameters()) == list(double.parameters())
    for key, weight in double.parameters().items():
        np.testing.assert_array_equal(single.parameters()[key], weight.astype("float32"))


@pytest.mark.parametrize("name", AVERAGING)
def test_a_causal_mixer_leaves_padding_out(either, name, rng, padding):
    mixer = either(build(name, causal=True))
    x = rng.normal(size=(3, 4, 8))
    padded = mixer(x, padding)
    alone = mixer(x[1:2, :2])
    np.testing.assert_allclose(padded[1, :2], alone[0], rtol=1e-12)


@pytest.mark.parametrize("name", AVERAGING)
def test_the_explained_weights_of_a_causal_mixer_are_a_lower_triangle(either, name, rng):
    mixer = either(build(name, causal=True))
    x = rng.normal(size=(3, 4, 8))
    weights = mixer.explain(x, Context())
    np.testing.assert_array_equal(np.triu(weights, 1), 0.0)
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0)


def test_a_shorter_sequence_needs_no_other_weights(mixer, x):
    """What is made for max_len is cropped at the top left: the parameters beyond change nothing."""
    y, _, *gradients = both_passes(mixer, x)
    gradients = dict(zip(mixer.parameters(), gradients, strict=True))
    for key, parameter in mixer.named_parameters().items():
        beyond = unused(key.rpartition(".")[-1], parameter.shape)
        if beyond is None:
            continue
        if parameter.trainable:
            np.testing.assert_array_equal(gradients[key][beyond], 0.0)
        parameter.value[beyond] = np.nan
    np.testing.assert_array_equal(mixer(x), y)


def unused(key, shape):
    """Return the entries of a parameter for 6 tokens that 4 tokens do not use."""
    beyond = np.zeros(shape, dtype=bool)
    if key in ("R", "W_sequence"):
        beyond[..., 4:, :] = beyond[..., 4:] = True
    elif key in ("R1", "R2"):
        beyond[..., 4:, :] = True
    elif key in ("W2", "b2") and shape[-1] == 6:
        beyond[..., 4:] = True
    else:
        return None
    return beyond


def test_longer_than_max_len_is_refused_where_something_was_made_for_it(mixer, rng):
    x = rng.normal(size=(2, 7, 8))
    sized = {"R", "R1", "W_sequence", "W2", "kernel"}
    if sized & {key.rpartition(".")[-1] for key in mixer.named_parameters()}:
        with pytest.raises(ValueError, match="length 7; expected at most 6"):
            mixer(x)
    else:
        assert mixer(x).shape == x.shape


# What they mixed with -----------------------------------------------------------------------------
def test_explain_gives_a_matrix_a_head(mixer, name, x):
    assert mixer.explain(x, Context()).shape == (3, 2 if name in AVERAGING else 1, 4, 4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_explain_gives_numbers_of_the_tokens_precision(either, name, rng, dtype):
    x = rng.normal(size=(3, 5, 8)).astype(dtype)
    assert either(build(name, dtype)).explain(x, Context()).real.dtype == dtype


@pytest.mark.parametrize("strategy", ["per_length", "zero"])
def test_explain_pairs_with_padding_are_0(either, name, rng, padding, strategy):
    mixer = either(build(name, padding=strategy))
    x = rng.normal(size=(3, 4, 8))
    matrices = mixer.explain(x, Context(mask=padding))
    pairs = padding[:, None, :, None] & padding[:, None, None, :]
    np.testing.assert_array_equal(matrices[~np.broadcast_to(pairs, matrices.shape)], 0.0)
    assert np.abs(matrices[:2]).max() > 0.0


def test_explain_changes_neither_x_nor_the_mixer(mixer, x, padding):
    arrays = [x, padding, *(p.value for p in mixer.named_parameters().values())]
    before = [a.copy() for a in arrays]
    mixer.explain(x, Context(mask=padding))[...] = 7.0  # what came back is the caller's
    for array, array_before in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, array_before)


@pytest.mark.parametrize("name", AVERAGING)
def test_explain_gives_weights_that_average_the_values_as_the_mixer_does(mixer, x, padding):
    weights = mixer.explain(x, Context(mask=padding))
    assert (weights >= 0.0).all()
    sums = weights.sum(axis=-1)
    tokens = np.broadcast_to(padding[:, None], sums.shape)
    np.testing.assert_allclose(sums[tokens], 1.0)
    np.testing.assert_array_equal(sums[~tokens], 0.0)
    heads = weights @ F.split_heads(mixer.value(x), 2)
    expected = mixer.output(F.merge_heads(heads))
    np.testing.assert_allclose(mixer(x, padding)[padding], expected[padding], rtol=1e-12)


@pytest.mark.parametrize("masked", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("name", ["fourier", "hartley", "linear", "random"])
def test_explain_the_mixing_is_the_matrix_before_a_map_of_features(mixer, x, name, padding, masked):
    mask = padding if masked else None
    mixed = mixer.explain(x, Context(mask=mask))[:, 0] @ x
    if name in ("fourier", "hartley"):
        transform = np.fft.fft(mixed, axis=-1)
        expected = transform.real - (transform.imag if name == "hartley" else 0.0)
    else:
        expected = mixed @ mixer.W_features.value
    np.testing.assert_allclose(mixer(x, mask), expected, rtol=0, atol=1e-12)


def test_no_mixing_is_the_identity(either, x, padding):
    mixer = either(build("identity"))
    for mask in (None, padding):
        np.testing.assert_array_equal(mixer(x, mask), x)
    matrices = mixer.explain(x, Context())
    np.testing.assert_array_equal(matrices, np.broadcast_to(np.eye(4), (3, 1, 4, 4)))
