"""Everything gives the numbers of NumPy on the fake device, which refuses what a GPU would."""

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer import optim
from tests.device import cases
from tests.device.cases import IDS, LABELS, MASK, X, classifier, fit, on_device, same
from tests.fake_device import FakeArray, waits
from tests.pairs import NAMES

pytestmark = pytest.mark.usefixtures("plain")


@cases.parametrize_cases(cases.EVERYTHING)
def test_float64_gives_the_numbers_of_numpy(case) -> None:
    cases.assert_agree(case, "fake", "float64", tolerance=1e-12)


@cases.parametrize_cases(cases.EVERYTHING)
def test_results_in_float32_are_those_of_numpy(case) -> None:
    cases.assert_agree(case, "fake", "float32", tolerance=1e-6)


def test_every_pair_has_a_case() -> None:
    assert {*NAMES} - {case.covers for case in cases.PAIRS} == set(), "add a case to cases.PAIRS"


def test_every_layer_has_a_case() -> None:
    layers = set()
    for name in nf.layers.__all__:
        value = getattr(nf.layers, name)
        is_layer = isinstance(value, type) and issubclass(value, nf.Layer)
        if is_layer and value.forward is not nf.Layer.forward:
            layers.add(name)
    assert layers - {case.covers for case in cases.LAYERS} == set(), "add a case to cases.LAYERS"


def test_every_mixer_has_a_case() -> None:
    assert {case.covers for case in cases.MIXERS} == set(nf.MIXERS)


@cases.parametrize_cases([*cases.PAIRS, *cases.LAYERS, *cases.ENCODERS])
def test_forward_and_backward_wait_for_nothing(case) -> None:
    with waits():
        case.run("fake", "float32")


def test_fit_trains_as_on_numpy() -> None:
    histories, models = [], []
    for name in ("numpy", "fake"):
        model = classifier("float64", dropout=0.2).to(name)
        data = IDS, LABELS, MASK
        history = fit(model, data, validation=data, clip_norm=1.0)
        histories.append({"train": history.train_loss, "validation": history.validation_loss})
        models.append(model.parameters())
    same(histories[0], histories[1])
    same(models[0], models[1])


def test_a_seed_gives_the_same_weights() -> None:
    same(classifier("float64").to("fake").parameters(), classifier("float64").parameters())


def test_a_seed_gives_the_same_dropout() -> None:
    here = F.dropout(X, 0.5, np.random.default_rng(3))[0]
    there = F.dropout(on_device(X), 0.5, np.random.default_rng(3))[0]
    np.testing.assert_array_equal(nf.to_numpy(there), here)


def test_dropout_takes_a_generator_of_the_device() -> None:
    class DeviceGenerator:
        def random(self, shape: tuple[int, ...], dtype: str) -> FakeArray:
            return on_device(np.random.default_rng(3).random(shape, dtype=dtype))

    is_kept = np.random.default_rng(3).random(X.shape, dtype="float32") >= 0.5
    there = F.dropout(on_device(X), 0.5, DeviceGenerator())[0]
    np.testing.assert_array_equal(nf.to_numpy(there), X * is_kept * 2.0)


# NumPy's numbers as options: they come from numpy.linspace and friends


@pytest.mark.parametrize(
    "compute",
    [
        lambda x, v: F.dropout(x, v, np.random.default_rng(0))[0],
        lambda x, v: F.layer_norm(x, x[0, 0], x[0, 0], eps=v)[0],
        lambda x, v: F.softmax_cross_entropy(x[:, 0], nf.asarray(LABELS, "fake"), v)[0],
    ],
)
def test_a_numpy_number_as_an_option_leaves_float32(compute) -> None:
    y = compute(on_device(X.astype("float32")), np.float64(0.25))
    assert y.dtype == "float32"


@pytest.mark.parametrize(
    "options",
    [
        {"lr": np.float64(0.1)},
        {"betas": (np.float64(0.9), np.float64(0.99))},
        {"eps": np.float64(1e-8)},
        {"weight_decay": np.float64(0.1)},
        {"schedule": lambda step: np.float64(0.5)},
    ],
    ids=lambda options: next(iter(options)),
)
def test_adam_takes_numpy_numbers(options) -> None:
    model = classifier("float32").to("fake")
    _, gradients = model.loss_and_gradients(IDS, LABELS)
    nf.Adam(model.parameters(), **options).step(gradients)
    assert model.dtype == "float32"


def test_clipping_takes_a_number_of_numpy() -> None:
    model = classifier("float32").to("fake")
    _, gradients = model.loss_and_gradients(IDS, LABELS)
    assert optim.clip_by_global_norm(gradients, np.float64(0.1)).dtype == "float32"


def test_settings_take_numbers_of_numpy() -> None:
    model = classifier("float32", dropout=np.float64(0.1), norm_eps=np.float64(1e-5)).to("fake")
    loss, _ = model.loss_and_gradients(IDS, LABELS, label_smoothing=np.float64(0.1), seed=0)
    assert np.isfinite(float(loss))
