import hashlib
import math

import numpy as np
import pytest

import npformer as nf
from npformer.core import INITIALIZERS


def digest(model):
    sha256 = hashlib.sha256()
    for name, parameter in model.named_parameters().items():
        sha256.update(name.encode())
        sha256.update(np.ascontiguousarray(parameter.value).tobytes())
    return sha256.hexdigest()[:16]


GOLDEN = {
    "attention": "ce8046dff4935362",
    "dense_synthesizer": "4272cf75af810fe4",
    "random_synthesizer": "7340fe7d88afc792",
    "fixed_random_synthesizer": "7340fe7d88afc792",
    "factorized_dense_synthesizer": "ce22522a6aca3ecb",
    "factorized_random_synthesizer": "bb0d97567f01eccc",
    "mixture": "884db800995d2694",
    "fourier": "f9af2f314dd58df8",
    "hartley": "f9af2f314dd58df8",
    "linear": "7bd0ef00d8c29a74",
    "random": "7bd0ef00d8c29a74",
    "identity": "f9af2f314dd58df8",
    "gated_convolution": "662a8618c78239e7",
    "state_space": "116def87db198a73",
}
"""Hashes of the weights of one seed."""


@pytest.mark.parametrize("mixer", GOLDEN)
def test_a_seed_stands_for_the_same_bits_everywhere(mixer):
    config = nf.EncoderConfig(d_model=8, n_layers=2, n_heads=2, d_ff=12, max_len=6, mixer=mixer)
    assert digest(nf.SequenceClassifier(config, 3, vocab_size=7, seed=3)) == GOLDEN[mixer]


DRAWN = [name for name in nf.MIXERS if name not in ("fourier", "hartley", "identity")]
NOT_PROJECTIONS = {
    "R",
    "R1",
    "R2",
    "W_sequence",
    "W_features",
    "logits",
    "short",
    "kernel",
    "log_decay",
    "frequency",
    "C",
    "b2",
    "c2",
}


@pytest.mark.parametrize(
    "ffn",
    [
        "linear",
        "conv1d",
    ],
)
@pytest.mark.parametrize("mixer", nf.MIXERS)
def test_it_draws_the_matrices_of_blocks_alone(small_model, ffn, mixer):
    default_model = small_model(mixer=mixer, ffn=ffn, norm="pre")
    model = small_model(mixer=mixer, ffn=ffn, norm="pre", initializer="ones")
    for name, parameter in model.named_parameters().items():
        last = name.rpartition(".")[2]
        block = name.startswith("encoder.blocks") and "norm" not in name
        if block and parameter.value.ndim > 1 and last not in NOT_PROJECTIONS:
            np.testing.assert_array_equal(parameter.value, 1.0, err_msg=name)
        elif last == "kernel":  # it decays, so a few numbers decide how large it is
            assert (parameter.value != 1.0).all(), name
        else:
            theirs = default_model.named_parameters()[name]
            assert parameter.value.std() == pytest.approx(theirs.value.std(), rel=0.6), name


@pytest.mark.parametrize("changes", [{"memory": "blocks"}, {"mixer": "mixture"}], ids=str)
def test_it_reaches_nested_layers(small_model, changes):
    parameters = small_model(initializer="ones", **changes).parameters()
    for name in ("query", "key", "value", "output"):
        name = name if "memory" in changes or name in ("value", "output") else f"parts.0.{name}"
        np.testing.assert_array_equal(parameters[f"encoder.blocks.1.mixer.{name}.weight"], 1.0)


@pytest.mark.parametrize(
    ("spec", "std"),
    [
        ("xavier_uniform", math.sqrt(2 / 300)),
        ("xavier_normal", math.sqrt(2 / 300)),
        ("he_normal", math.sqrt(2 / 200)),
        ("normal", 0.02),
        ("normal(std=0.5)", 0.5),
        ("zeros", 0.0),
        ("ones", 0.0),
    ],
)
def test_each_has_its_standard_deviation(spec, std):
    drawn = INITIALIZERS.make(spec)(np.random.default_rng(0), (200, 100))
    assert drawn.std() == pytest.approx(std, rel=0.03)
    assert drawn.dtype == np.float64
    assert INITIALIZERS.make(spec)(np.random.default_rng(0), (2, 20, 30)).shape == (2, 20, 30)


def test_every_name_is_tested_above():
    assert set(INITIALIZERS) == {
        "xavier_uniform",
        "xavier_normal",
        "he_normal",
        "normal",
        "zeros",
        "ones",
    }
    assert set(GOLDEN) == set(nf.MIXERS)


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("orthogonal", ValueError, "initializer is 'orthogonal'; expected one of 'xavier_uniform'"),
        ("normal(sd=1)", TypeError, "the initializer 'normal' has no option 'sd'; expected std"),
        ("normal(std=-1)", ValueError, "std is -1"),
    ],
)
def test_a_mistake_is_explained(small_model, spec, error, message):
    with pytest.raises(error, match=message):
        small_model(initializer=spec)


def test_an_initializer_that_gives_another_shape_is_named(small_model, monkeypatch):
    monkeypatch.setitem(INITIALIZERS, "flat", lambda: lambda rng, shape: rng.random(shape[0]))
    with pytest.raises(ValueError, match=r"returned values of shape \(8,\); expected \(8, 8\)"):
        small_model(initializer="flat")
