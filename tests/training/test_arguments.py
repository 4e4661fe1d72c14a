"""What fit and evaluate refuse, in words, before the first step."""

import inspect
import math

import numpy as np
import pytest

import npformer as nf
from npformer.optim import Adam
from tests.training.common import assert_same_weights, fit


def X(*shape):
    return np.zeros(shape)


def Y(n):
    return np.zeros(n, dtype="int64")


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (X(3, 4, 2), TypeError, r"data is an ndarray; expected \(x, y\) or \(x, y, mask\)"),
        ((X(3, 4, 2),), TypeError, r"data is a tuple of 1; expected \(x, y\)"),
        ({"x": 1}, TypeError, r"data is a dict; expected \(x, y\)"),
        ((X(3, 4, 2), Y(4)), ValueError, "y in data has 4 samples and x has 3"),
        ((X(3, 4, 2), Y(3), X(2, 4) == 0), ValueError, "mask in data has 2 samples and x has 3"),
        ((X(3, 4, 2).tolist(), Y(3)), TypeError, "x in data is a list; expected a NumPy array"),
        ((X(3, 4, 2), [0, 1, 2]), TypeError, "y in data is a list; expected a NumPy array"),
        ((None, Y(3)), TypeError, "x in data is None; expected a NumPy array"),
        ((X(3, 4, 2), None), TypeError, "y in data is None; expected a NumPy array"),
        ((X(0, 4, 2), Y(0)), ValueError, "data has no samples; expected at least 1"),
        ((X(3, 4, 3), Y(3)), ValueError, r"data, x has shape \(3, 4, 3\); expected"),
        ((X(3, 4, 2), X(3)), TypeError, "data, y has dtype float64; expected whole numbers"),
        ((X(3, 4, 2), Y(3) - 1), ValueError, "data, y holds -1; expected whole numbers from 0"),
        ((X(3, 4, 2), Y(3), X(3, 4)), TypeError, "data, mask has dtype float64; expected a bool"),
    ],
)
@pytest.mark.parametrize(
    "where",
    [
        "data",
        "validation",
    ],
)
def test_bad_data_is_refused_in_words(make, data, bad, error, message, where):
    samples = {"data": data, "validation": data} | {where: bad}
    with pytest.raises(error, match=message.replace("data", where, 1)):
        fit(make(), samples["data"], validation=samples["validation"])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"epochs": 0}, ValueError, "epochs is 0; expected a whole number of at least 1"),
        ({"epochs": 2.0}, ValueError, "epochs is 2.0; expected a whole number"),
        ({"batch_size": 0}, ValueError, "batch_size is 0; expected a whole number"),
        ({"check_every": 0}, ValueError, "check_every is 0; expected a whole number"),
        ({"on_interrupt": "ask"}, ValueError, "on_interrupt is 'ask'; expected one of 'raise'"),
        ({"patience": 3}, ValueError, "patience is 3 and there is no validation data"),
        ({"patience": 0}, ValueError, "patience is 0; expected a whole number of at least 1"),
        ({"clip_norm": 0.0}, ValueError, "clip_norm is 0.0; expected a number above 0"),
        ({"micro_batch": "a"}, ValueError, "micro_batch is 'a'; expected a whole number"),
        ({"weight_decay": "a"}, ValueError, "weight_decay is 'a'; expected 0 or more"),
        ({"schedule": 3}, TypeError, "schedule is 3; expected a function of the step"),
        ({"optimizer": 3}, TypeError, "optimizer is an int; expected an Optimizer"),
        ({"clip_norm": math.inf}, ValueError, "clip_norm is inf; expected a number above 0"),
        ({"lr": 0.0}, ValueError, "lr is 0.0; expected a number above 0"),
        ({"label_smoothing": 1.0}, ValueError, "label_smoothing is 1.0; expected a number from 0"),
        ({"seed": None}, TypeError, "seed is None; expected a whole number"),
        ({"workers": 0}, ValueError, "workers is 0; expected a whole number"),
        ({"masks": "gpu"}, ValueError, "masks is 'gpu'; expected one of 'host', 'device'"),
    ],
)
def test_a_bad_option_is_refused_in_words(make, data, options, error, message):
    with pytest.raises(error, match=message):
        fit(make(), data, **options)


@pytest.mark.parametrize("where", ["data", "validation"])
@pytest.mark.parametrize("fault", ["label", "padding"])
def test_a_fault_in_the_last_sample_is_found_before_the_first_step(make, rng, where, fault):
    changes = {"mixer": ["attention", "fourier"], "padding": "per_length"}
    model = make(**changes)
    x = rng.normal(size=(1030, 4, 2))
    y = rng.integers(0, 3, 1030)
    mask = np.arange(4) < rng.integers(1, 5, 1030)[:, None]
    wrong = y.copy()
    holed = mask.copy()
    wrong[-1] = 3
    holed[-1] = [True, False, True, False]
    if fault == "label":
        bad = (x, wrong, mask)
        message = "y holds 3; expected whole numbers from 0"
    else:
        bad = (x, y, holed)
        message = "mask keeps tokens after padding in row 1029"
    splits = {"data": (x, y, mask), "validation": (x, y, mask)} | {where: bad}
    with pytest.raises(ValueError, match=f"in {where}, {message}"):
        fit(model, splits["data"], validation=splits["validation"], batch_size=1030)
    assert_same_weights(model, make(**changes))


@pytest.mark.parametrize("wrong", [3, -2])
@pytest.mark.parametrize("masked", [True, False])
def test_a_wrong_label_of_the_last_token_is_found_before_the_first_step(make, rng, wrong, masked):
    model = make(pooling="none")
    mask = np.ones((40, 4), dtype=bool)
    mask[0, 2:] = False
    x = rng.normal(size=(40, 4, 2))
    y = rng.integers(-1, 3, (40, 4))
    y[-1, -1] = wrong
    data = (x, y, mask) if masked else (x, y)
    with pytest.raises(ValueError, match=f"in data, y holds {wrong}; expected whole numbers"):
        fit(model, data, batch_size=2)
    assert_same_weights(model, make(pooling="none"))


def test_evaluate_finds_a_wrong_label_wherever_it_is(make, data):
    data[1][-1] = 3
    with pytest.raises(ValueError, match="in data, y holds 3; expected whole numbers from 0 to 2"):
        nf.evaluate(make(), data)


@pytest.mark.parametrize(
    ("beside", "named"),
    [
        ({"lr": 1e-2}, "lr=0.01"),
        ({"weight_decay": 0.0}, r"weight_decay=0\.0"),
        ({"schedule": "cosine", "weight_decay": 0.1}, r"schedule='cosine' and weight_decay=0\.1"),
    ],
)
def test_settings_beside_an_optimizer_are_refused(make, data, beside, named):
    model = make()
    with pytest.raises(ValueError, match=f"optimizer is given together with {named};"):
        fit(model, data, optimizer=Adam(model.parameters(), lr=1e-2), **beside)
    assert_same_weights(model, make())


def test_an_optimizer_of_another_model_is_refused(make, data):
    model, other = make(), make()
    with pytest.raises(ValueError, match="optimizer's parameters are not this model's"):
        fit(model, data, optimizer=Adam(other.parameters()))
    for trained in (model, other):
        assert_same_weights(trained, make())


def test_a_tool_may_change_how_fit_is_described(make, data, monkeypatch):
    """Sphinx writes the source of each default into the signature."""
    plain = inspect.unwrap(nf.fit)
    described = inspect.signature(plain)
    stated = described.parameters.values()
    words = [p if p.default is p.empty else p.replace(default=repr(p.default)) for p in stated]
    changed = described.replace(parameters=words)
    monkeypatch.setattr(plain, "__signature__", changed, raising=False)
    assert nf.fit(make(), data, epochs=1, progress=False).train_loss
