"""What is read of the tokens if nothing is said: never a mean that has lost all but one."""

import numpy as np
import pytest

import npformer as nf
from npformer.tasks.estimators.fitting_mixers import TRANSFORMS, usual_pooling, usual_positions
from tests.tasks.estimators.conftest import SIZES

EXPECTED = {("attention", 1): "mean", ("attention", 2): "mean", ("fourier", 1): "first"}
EXPECTED |= {("fourier", 2): "mean", ("hartley", 3): "first", (("fourier", "attention"), 2): "mean"}
EXPECTED[("fourier", "fourier", "hartley"), 3] = "first"


@pytest.mark.parametrize(("mixer", "n_layers"), EXPECTED)
def test_the_number_of_transforms_decides(mixer, n_layers):
    config = nf.EncoderConfig(mixer=mixer, n_layers=n_layers)
    assert usual_pooling(config) == EXPECTED[mixer, n_layers]


@pytest.mark.parametrize(
    ("mixer", "n_layers", "expected"),
    [("attention", 2, "sinusoidal"), ("fourier", 1, "sinusoidal"), ("fourier", 2, "learned")],
)
def test_positions_of_several_transforms_are_learned(mixer, n_layers, expected):
    config = {"mixer": mixer, "n_layers": n_layers}
    assert usual_positions(nf.EncoderConfig(**config)) == expected
    texts, labels = ["a b", "c d"] * 6, ["x", "y"] * 6
    settings = {"d_model": 8, "n_heads": 2, "d_ff": 8, **config}
    for changes, positions in (({}, expected), ({"positions": "none"}, "none")):
        classifier = nf.TextClassifier({**settings, **changes}, members=1)
        classifier.fit(texts, labels, epochs=1, progress=False)
        assert classifier.model.config.positions == positions


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_mean_over_the_rows_of_a_transform_is_the_first_token(name):
    mix = getattr(nf.functional, f"{name}_mixing")
    x = np.random.default_rng(0).normal(size=(2, 5, 4))
    changed = x.copy()
    changed[:, 1:] += 1.0
    first, second = (mix(array)[0].mean(axis=1) for array in (x, changed))
    np.testing.assert_allclose(first, second)
    assert not np.allclose(mix(x)[0][:, 0], mix(changed)[0][:, 0])


def test_classifiers_go_by_it_unless_told_otherwise():
    series, labels = [np.ones((3, 2)), np.zeros((4, 2))] * 6, ["a", "b"] * 6
    fitted = {"validation": None, "epochs": 1, "progress": False}
    for pooling, expected in ((None, "first"), ("mean", "mean")):
        config = {**SIZES, "mixer": "fourier", "n_layers": 1}
        classifier = nf.SeriesClassifier(config, pooling=pooling).fit(series, labels, **fitted)
        assert classifier.model.pooling == expected
    texts = ["good film", "bad film"] * 6
    config = {**SIZES, "mixer": "fourier", "n_layers": 1}
    assert nf.TextClassifier(config).fit(texts, labels, **fitted).model.pooling == "first"
