import dataclasses
import json

import numpy as np
import pytest

import npformer as nf
from npformer import layers as L
from npformer.mixers import MIXERS, SCORES, Attention, AveragingMixer, WholeSequenceMixer
from npformer.models.config import FLAGS
from tests.passes import assert_same, both_passes

AVERAGING = [name for name, kind in MIXERS.items() if issubclass(kind, Attention | AveragingMixer)]
WHOLE = [name for name, kind in MIXERS.items() if issubclass(kind, WholeSequenceMixer)]


@pytest.fixture
def x(rng):
    return rng.normal(size=(3, 4, 8))


@pytest.fixture
def encoder(small_config):
    """Make a float64 encoder with changes to the small configuration."""
    return lambda seed=0, **changes: nf.Encoder(small_config(**changes), seed, dtype="float64")


# What a block computes ----------------------------------------------------------------------------
def test_a_post_norm_block_applies_norms_to_the_sums(encoder, x):
    block = encoder(norm="post").blocks[0]
    middle = block.mixer_norm(x + block.mixer(x))
    expected = block.feed_forward_norm(middle + block.feed_forward(middle))
    np.testing.assert_array_equal(block(x), expected)


def test_a_pre_norm_block_applies_norms_to_the_inputs_of_sublayers(encoder, x):
    block = encoder(norm="pre").blocks[0]
    middle = x + block.mixer(block.mixer_norm(x))
    expected = middle + block.feed_forward(block.feed_forward_norm(middle))
    np.testing.assert_array_equal(block(x), expected)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_without_a_feed_forward_network_nothing_of_the_second_half_is_left(encoder, x, norm):
    model = encoder(norm=norm, ffn="none", dropout=0.2)
    block = model.blocks[0]
    mixed = block.mixer_norm(x + block.mixer(x)), x + block.mixer(block.mixer_norm(x))
    np.testing.assert_array_equal(block(x), mixed[norm == "pre"])
    assert [name for name, _ in block.children()] == ["mixer", "mixer_dropout", "mixer_norm"]
    both_passes(model, x)  # and every parameter has a gradient
    assert not [name for name in model.parameters() if "feed_forward" in name]


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_an_encoder_ends_in_a_norm(encoder, x, norm):
    y = encoder(norm=norm, norm_eps=1e-12)(x)
    np.testing.assert_allclose(y.mean(axis=-1), 0.0, atol=1e-13)
    np.testing.assert_allclose(y.var(axis=-1), 1.0, rtol=1e-9)


def test_blocks_act_in_turn(encoder, x):
    model = encoder(n_layers=3)
    y = x
    for block in model.blocks:
        y = block(y)
    np.testing.assert_array_equal(model(x), y)


def test_no_dropout_follows_the_mixers_whose_papers_have_none(encoder):
    for mixer in MIXERS:
        (block,) = encoder(n_layers=1, mixer=mixer, dropout=0.3).blocks
        follows = mixer in AVERAGING or mixer in ("gated_convolution", "state_space")
        assert block.mixer_dropout.rate == (0.3 if follows else 0.0)
        assert block.feed_forward_dropout.rate == 0.3


def test_dropout_acts_in_training_alone(encoder, x):
    model = encoder(dropout=0.5)
    plain = encoder(dropout=0.0)
    context = nf.Context(training=True, generator=np.random.default_rng(0))
    np.testing.assert_array_equal(model(x), plain(x))
    assert np.abs(model.forward(x, context)[0] - plain(x)).max() > 0.1


# What an encoder keeps to -------------------------------------------------------------------------
@pytest.mark.parametrize("mixer", MIXERS)
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_padded_sequence_is_the_sequence_alone(encoder, x, padding, mixer, norm):
    model = encoder(mixer=mixer, norm=norm, padding="per_length")
    np.testing.assert_allclose(model(x, padding)[1, :2], model(x[1:2, :2])[0], rtol=1e-10)


# Shared layers ------------------------------------------------------------------------------------
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_shared_layers_have_the_sum_of_the_gradients_of_equal_ones(encoder, x, norm):
    shared = encoder(n_layers=3, share_layers=True, norm=norm)
    separate = encoder(n_layers=3, share_layers=False, norm=norm)
    for name, array in separate.parameters().items():
        array[...] = shared.parameters()[name.replace(".1.", ".0.", 1).replace(".2.", ".0.", 1)]

    y, dx, *gradients = both_passes(shared, x)
    other_y, other_dx, *separate_gradients = both_passes(separate, x)
    assert_same([other_y, other_dx], [y, dx])
    separate_gradients = dict(zip(separate.parameters(), separate_gradients, strict=True))
    for name, gradient in zip(shared.parameters(), gradients, strict=True):
        places = {name.replace("blocks.0.", f"blocks.{i}.") for i in range(3)}
        total = sum(separate_gradients[place] for place in places)
        np.testing.assert_allclose(gradient, total, rtol=0, atol=1e-12)


def test_shared_layers_are_one_block_at_any_depth(encoder):
    shared = encoder(n_layers=5, share_layers=True)
    assert shared.n_parameters() == encoder(n_layers=1).n_parameters()


# Seeds --------------------------------------------------------------------------------------------
def test_float32_is_the_model_of_float64_up_to_rounding(small_config, x):
    single, double = (nf.Encoder(small_config(), 0, dtype) for dtype in ("float32", "float64"))
    rounded = double.parameters().flat.astype("float32")
    np.testing.assert_array_equal(single.parameters().flat, rounded)
    np.testing.assert_allclose(single(x.astype("float32")), double(x), atol=1e-5)


def test_a_generator_goes_on_where_it_was(small_config):
    generator = np.random.default_rng(0)
    seeds = generator, generator, 0
    first, second, seeded = (nf.Encoder(small_config(), s).parameters().flat for s in seeds)
    np.testing.assert_array_equal(first, seeded)
    assert (first != second).any()


# Configuration ------------------------------------------------------------------------------------
CONFIGURATIONS = pytest.mark.parametrize(
    "changes",
    [
        {},
        {"mixer": ("fourier", "attention"), "dropout": 0.1},
        {"mixer": ["fourier", "attention"]},
        {"mixer": "mixture", "mixture": ["attention", "dense_synthesizer"], "rank": 3},
        {"memory": "blocks"},
    ],
)


@CONFIGURATIONS
def test_a_configuration_comes_back_from_json(small_config, changes):
    config = small_config(**changes)
    plain = json.loads(json.dumps(config.to_dict()))
    assert nf.EncoderConfig.from_dict(plain) == config


@CONFIGURATIONS
def test_equal_configurations_have_equal_hashes(small_config, changes):
    config = small_config(**changes)
    plain = json.loads(json.dumps(config.to_dict()))
    assert hash(nf.EncoderConfig.from_dict(plain)) == hash(config)


def test_options_reach_the_mixers(encoder):
    (attention,) = encoder(n_layers=1, memory="blocks", causal=True).blocks
    assert (attention.mixer.memory, attention.mixer.causal) == ("blocks", True)
    (factorized,) = encoder(n_layers=1, mixer="factorized_random_synthesizer", rank=3).blocks
    assert factorized.mixer.R1.shape == (2, 6, 3)
    (mixture,) = encoder(n_layers=1, mixer="mixture", mixture=tuple(SCORES), rank=5).blocks
    assert [type(scores) for scores in mixture.mixer.parts] == list(SCORES.values())
    assert mixture.mixer.parts[-1].R1.shape == (2, 6, 5)
    for name in WHOLE:
        (block,) = encoder(n_layers=1, mixer=name, padding="zero").blocks
        assert block.mixer.padding == "zero"


def test_a_mixture_has_two_mixers_by_default(small_config):
    assert small_config(mixer="mixture").mixture == ("attention", "random_synthesizer")


@pytest.mark.parametrize(
    ("name", "value", "error", "expected"),
    [
        *(("n_token_types", n, ValueError, "a whole number") for n in (-1, 1.5, True, "2", None)),
        *((name, 1, TypeError, "True or False") for name in FLAGS),
    ],
)
def test_wrong_values_are_refused_by_name(name, value, error, expected):
    with pytest.raises(error, match=rf"{name} is {value!r}; expected {expected}"):
        nf.EncoderConfig(**{name: value})


def test_a_configuration_cannot_be_changed(small_config):
    with pytest.raises(dataclasses.FrozenInstanceError):
        small_config().d_model = 16
    assert dataclasses.replace(small_config(), d_model=16).d_model == 16


@pytest.mark.parametrize(("ffn", "kind"), [("linear", L.Linear), ("conv1d", L.Conv1d)])
def test_the_feed_forward_network_is_the_one_that_was_asked_for(ffn, kind):
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=12, max_len=6, ffn=ffn)
    block = nf.EncoderBlock(config, seed=0)
    assert type(block.feed_forward.expand) is kind
