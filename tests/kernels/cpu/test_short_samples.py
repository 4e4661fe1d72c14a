"""Predictions of a few short sequences: the kernels that take a whole sublayer."""

from itertools import product

import numpy as np
import pytest

import npformer as nf
from npformer.engine import twin_classes
from npformer.engine.cpu.short_samples import short_attention

IDS = np.arange(12).reshape(2, 6) % 7
MIXERS = {"attention": "attention_of_short", "dense_synthesizer": "dense_synthesizer_of_short"}
BOUNDS = {"float64": 1e-12, "float32": 1e-5}


def plain_outputs(model, ids=IDS, mask=None):
    with nf.use_kernels(False):
        return model(ids, mask)


def assert_as_plain(model, ids=IDS, mask=None, dtype="float64"):
    expected = plain_outputs(model, ids, mask)
    bound = BOUNDS[dtype] * np.abs(expected).max()
    np.testing.assert_allclose(model(ids, mask), expected, rtol=0, atol=bound)


def randomise(model):
    """Fill all parameters with numbers, so that no bias is 0."""
    rng = np.random.default_rng(1)
    for array in model.parameters().values():
        array += 0.3 * rng.standard_normal(array.shape)
    return model


@pytest.fixture
def calls(short_samples_have_kernels):
    return short_samples_have_kernels


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu"])
@pytest.mark.parametrize("mixer", MIXERS)
def test_outputs_are_those_of_the_plain_passes(
    small_model, calls, mixer, activation, norm, causal, dtype
):
    model = small_model(
        mixer=mixer, activation=activation, norm=norm, causal=causal, dtype=dtype, n_layers=2
    )
    randomise(model)
    assert_as_plain(model, dtype=dtype)
    assert calls == [MIXERS[mixer], "network_of_short"] * 2


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_mixer_without_such_a_kernel_has_one_for_the_rest(small_model, calls, norm):
    assert_as_plain(randomise(small_model(mixer="fourier", norm=norm, n_layers=1)))
    assert calls == ["network_of_short"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"mixer": "identity"}, ["network_of_short"]),
        ({"mixer": "attention", "ffn": "none"}, ["attention_of_short"]),
        ({"mixer": "attention", "ffn": "gated"}, ["attention_of_short"]),
        ({"mixer": "attention", "activation": "tanh"}, ["attention_of_short"]),
        ({"mixer": "attention", "norm_kind": "rms"}, ["attention_of_short"]),
        ({"mixer": "attention", "bias": False}, []),
        ({"mixer": "attention", "window": 2, "causal": True}, ["network_of_short"]),
        ({"mixer": "attention", "positions": "rotary"}, ["network_of_short"]),
        ({"mixer": "attention", "n_kv_heads": 1}, ["network_of_short"]),
    ],
)
def test_what_the_kernels_lack_runs_as_usual(small_model, calls, settings, expected):
    assert_as_plain(randomise(small_model(n_layers=1, **settings)))
    assert calls == expected


def test_padding_runs_as_usual(small_model, calls):
    assert_as_plain(small_model(mixer="attention"), mask=np.arange(6) < [[4], [6]])
    assert not calls


def test_training_runs_as_usual(small_model, calls):
    small_model(mixer="attention").loss_and_gradients(IDS, np.array([0, 1]), seed=0)
    assert not calls


@pytest.mark.parametrize(
    ("limit", "beyond"), [("LONGEST", IDS.shape[1] - 1), ("PRODUCTS", IDS.size * 8 * 8 - 1)]
)
def test_long_or_many_sequences_run_as_usual(small_model, calls, monkeypatch, limit, beyond):
    monkeypatch.setattr(twin_classes, limit, beyond)
    assert_as_plain(small_model(mixer="attention", d_model=8))
    assert not calls


@pytest.mark.parametrize(
    ("limit", "at_most"), [("LONGEST", IDS.shape[1]), ("PRODUCTS", IDS.size * 8 * 8)]
)
def test_sequences_at_a_limit_have_kernels(small_model, calls, monkeypatch, limit, at_most):
    monkeypatch.setattr(twin_classes, limit, at_most)
    assert_as_plain(small_model(mixer="attention", d_model=8))
    assert calls


LAYOUTS = {
    "gaps": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "transposed": np.asfortranarray,
    "another dtype": lambda x: x.astype("float32"),
}


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize(
    ("layout", "changed"),
    [
        *product(["gaps", "another dtype"], range(9)),
        *product(["transposed"], [0, 1, 3, 5, 7]),  # a vector has no second layout
    ],
)
def test_arrays_for_which_numba_would_compile_again_are_left_to_others(layout, changed):
    arrays = [np.ones((1, 3, 4))] + [np.ones(shape) for _ in range(4) for shape in ((4, 4), 4)]
    assert short_attention(*arrays, n_heads=2, causal=False) is not None
    arrays[changed] = LAYOUTS[layout](arrays[changed])
    assert short_attention(*arrays, n_heads=2, causal=False) is None


def test_a_mixer_of_another_shape_still_gets_its_error(small_model, calls):
    class Halved(nf.mixers.Attention):
        def forward(self, x, context):
            return super().forward(x, context)[0][..., :4], None

    model = small_model(mixer="attention", d_model=8, n_layers=1)
    model.encoder.blocks[0].mixer = Halved(8, 2, seed=0, dtype="float64")
    with pytest.raises(ValueError, match="shape"):
        model(IDS)
    assert "network_of_short" not in calls
