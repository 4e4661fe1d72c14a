"""Adam is copied, pickled, saved and put back, and goes on as if nothing had happened."""

import copy
import json
import math
import pickle

import numpy as np
import pytest

import npformer as nf
from npformer import layers as L
from npformer.core import Parameter, Parameters
from npformer.optim import cosine

IDS, LABELS = np.arange(12).reshape(3, 4) % 7, np.array([0, 1, 2])


def classifier(dtype="float64", seed=0, **changes):
    sizes = {"d_model": 8, "n_layers": 2, "n_heads": 2, "d_ff": 16, "max_len": 4} | changes
    return nf.SequenceClassifier(nf.EncoderConfig(**sizes), 3, vocab_size=7, seed=seed, dtype=dtype)


def train(model, optimizer, steps=3):
    for _ in range(steps):
        optimizer.step(model.loss_and_gradients(IDS, LABELS)[1])
    return model.parameters().flat.copy()


def pickled(x):
    return pickle.loads(pickle.dumps(x))


COPIED = pytest.mark.parametrize("copied", [copy.deepcopy, pickled])


# Copies -------------------------------------------------------------------------------------------
@COPIED
@pytest.mark.parametrize("model_first", [True, False])
@pytest.mark.parametrize("changes", [{}, {"share_layers": True}])
def test_model_and_optimizer_that_are_copied_together_go_on_together(copied, model_first, changes):
    model = classifier(**changes)
    optimizer = nf.Adam(model.parameters(), lr=0.01, schedule=cosine(9, warmup=2))
    train(model, optimizer)
    if model_first:
        other, its_optimizer = copied((model, optimizer))
    else:
        its_optimizer, other = copied((optimizer, model))
    before = model.parameters().flat.copy()
    after = train(other, its_optimizer)
    np.testing.assert_array_equal(model.parameters().flat, before)
    np.testing.assert_array_equal(train(model, optimizer), after)
    assert its_optimizer.steps == optimizer.steps == 6
    nf.fit(other, (IDS, LABELS), optimizer=its_optimizer, epochs=1, progress=False)


@COPIED
def test_an_optimizer_alone_is_copied_with_its_parameters(copied):
    model = classifier()
    optimizer = nf.Adam(model.parameters())
    train(model, optimizer)
    other = copied(optimizer)
    before, gradients = model.parameters().flat.copy(), model.loss_and_gradients(IDS, LABELS)[1]
    other.step(gradients)
    np.testing.assert_array_equal(model.parameters().flat, before)
    optimizer.step(gradients)
    np.testing.assert_array_equal(other.parameters.flat, model.parameters().flat)
    with pytest.raises(ValueError, match="optimizer's parameters are not this model's"):
        nf.fit(model, (IDS, LABELS), optimizer=other, epochs=1, progress=False)


@COPIED
@pytest.mark.parametrize("model_first", [True, False])
def test_gradients_that_are_copied_with_their_model_belong_to_the_copy(copied, model_first):
    model = classifier()
    gradients = model.loss_and_gradients(IDS, LABELS)[1]
    if model_first:
        other, its_gradients = copied((model, gradients))
    else:
        its_gradients, other = copied((gradients, model))
    for name, parameter in other.trainable().items():
        assert its_gradients.of(parameter) is its_gradients[name]
        np.testing.assert_array_equal(its_gradients[name], gradients[name])
    its_gradients.zero()
    assert gradients.flat.any()
    with pytest.raises(KeyError, match="no place for a parameter"):
        its_gradients.of(next(iter(model.trainable().values())))


# State --------------------------------------------------------------------------------------------
def in_layout(model, flat):
    return model.parameters() if flat else dict(model.parameters())


@pytest.mark.parametrize(
    "dtype",
    [
        "float32",
        "float64",
    ],
)
@pytest.mark.parametrize(
    "steps",
    [
        0,
        3,
    ],
)
@pytest.mark.parametrize(("flat", "flat_again"), [(1, 1), (1, 0), (0, 1), (0, 0)])
def test_a_training_goes_on_bit_for_bit_from_its_state(dtype, steps, flat, flat_again):
    model = classifier(dtype)
    optimizer = nf.Adam(
        in_layout(model, flat),
        lr=0.01,
        betas=(0.8, 0.95),
        eps=1e-7,
        weight_decay=0.1,
        schedule=cosine(9, warmup=2),
    )
    train(model, optimizer, steps)
    optimizer.lr = 0.003  # as a callback may
    values, arrays = optimizer.state()
    values, saved = json.loads(json.dumps(values)), model.parameters().flat.copy()
    after = train(model, optimizer)

    other = classifier(dtype, seed=1)
    other.parameters().flat[...] = saved
    again = nf.Adam(in_layout(other, flat_again), schedule=cosine(9, warmup=2))
    again.restore(values, arrays)
    assert again.state()[0] == values
    for name, array in again.state()[1].items():
        np.testing.assert_array_equal(array, arrays[name])
    np.testing.assert_array_equal(train(other, again), after)


def test_the_state_says_what_it_is():
    optimizer = nf.Adam(L.Linear(2, 3, seed=0).parameters(), schedule=cosine(50))
    g = {"weight": np.ones((2, 3), "float32"), "bias": np.full(3, 2.0, "float32")}
    optimizer.step(g)
    values, arrays = optimizer.state()
    assert values == {
        "lr": 1e-3,
        "betas": [0.9, 0.999],
        "eps": 1e-8,
        "weight_decay": 0.0,
        "layer_decay": 1.0,
        "no_decay": [],
        "steps": 1,
        "schedule": "cosine(total=50, warmup=0, final=0.0)",
    }
    assert set(arrays) == {"m.weight", "m.bias", "v.weight", "v.bias"}
    for name, x in g.items():
        np.testing.assert_allclose(arrays[f"m.{name}"], 0.1 * x, rtol=1e-6)
        np.testing.assert_allclose(arrays[f"v.{name}"], 0.001 * x * x, rtol=1e-6)
    copies = {name: array.copy() for name, array in arrays.items()}
    optimizer.step(g)  # the state is a copy, and so is what is restored from it
    optimizer.restore(values, arrays)
    optimizer.step(g)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, copies[name])


def test_the_name_of_a_function_of_ones_own_is_the_same_in_every_process():
    def mine(step):
        return 1.0

    names = [nf.Adam({"w": np.ones(2)}, schedule=s).state()[0]["schedule"] for s in (mine, mine)]
    assert names[0] == names[1]
    assert "mine" in names[0]
    assert " at 0x" not in names[0]


OUTSIDE = object()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("steps", -1, "steps is -1; expected a whole number of at least 0"),
        ("steps", 1.5, r"steps is 1\.5; expected a whole number"),
        ("steps", None, "steps is None; expected a whole number"),
        ("steps", OUTSIDE, "the optimizer's values are .*; expected .*'steps'"),
        ("no_decay", OUTSIDE, "the optimizer's values are .*; expected .*'no_decay'"),
        ("more", 1, "the optimizer's values are .*'more'.*; expected"),
        ("lr", "0.1", r"lr is '0\.1'; expected 0 or more"),
        ("lr", math.nan, "lr is nan; expected 0 or more"),
        ("eps", 0.0, r"eps is 0\.0; expected a number above 0"),
        ("betas", [0.9], r"betas is \[0\.9\]; expected two numbers"),
        ("betas", [0.9, "1"], "betas is '1'; expected a number from 0"),
        ("weight_decay", -1.0, r"weight_decay is -1\.0; expected 0 or more"),
        ("m.bias", OUTSIDE, r"not those of these parameters: m\.bias is missing"),
        ("m.gamma", np.zeros(3), r"not those of these parameters: m\.gamma is unknown"),
        ("m.bias", np.zeros(4), r"m\.bias has shape \(4,\) and dtype float64, expected \(3,\)"),
        ("v.bias", np.zeros(3, "float32"), r"v\.bias has shape \(3,\) and dtype float32, expected"),
        ("v.bias", [0.0, 0.0, 0.0], "expected a mapping of names to NumPy arrays"),
        (
            "m.bias",
            np.array([0.0, math.nan, 0.0]),
            r"m\.bias holds NaN, infinity or a negative square",
        ),
        (
            "v.bias",
            np.array([0.0, math.inf, 0.0]),
            r"v\.bias holds NaN, infinity or a negative square",
        ),
        (
            "v.bias",
            np.array([0.0, -1e-9, 0.0]),
            r"v\.bias holds NaN, infinity or a negative square",
        ),
    ],
)
def test_a_state_that_does_not_fit_is_refused_in_words_and_changes_nothing(name, value, message):
    optimizer = nf.Adam(L.Linear(2, 3, seed=0, dtype="float64").parameters())
    optimizer.step({"weight": np.ones((2, 3)), "bias": np.ones(3)})
    values, arrays = optimizer.state()
    broken = values | {"lr": 0.5, "steps": 7}, {n: x + 1.0 for n, x in arrays.items()}
    mapping = broken[1] if "." in name else broken[0]
    mapping.pop(name, None)
    if value is not OUTSIDE:
        mapping[name] = value
    with pytest.raises(ValueError, match=message):
        optimizer.restore(*broken)
    assert optimizer.state()[0] == values
    for key, array in optimizer.state()[1].items():
        np.testing.assert_array_equal(array, arrays[key])


@pytest.mark.parametrize("broken", [(None, {}), ([], {}), ({}, {}), (1, None)])
def test_a_state_of_another_kind_is_refused_in_words(broken):
    optimizer = nf.Adam({"w": np.ones(2)})
    with pytest.raises(ValueError, match="the optimizer's values are"):
        optimizer.restore(*broken)
    with pytest.raises(ValueError, match="expected a mapping of names to NumPy arrays"):
        optimizer.restore(optimizer.state()[0], None)


# Where they lie -----------------------------------------------------------------------------------
@pytest.mark.parametrize("flat_first", [True, False])
def test_moments_follow_parameters_that_are_laid_out_anew(flat_first):
    results = []
    for changing in (False, True):
        layers = [L.Linear(3, 5, seed=0, dtype="float64"), L.Linear(5, 3, seed=1, dtype="float64")]
        chain = L.Sequential(*layers)
        if flat_first or not changing:
            chain.flatten()
        optimizer = nf.Adam(chain.parameters(), lr=0.01)
        generator = np.random.default_rng(0)
        for step in range(6):
            if changing and step == 3:
                if flat_first:
                    layers[1].flatten()
                else:
                    chain.flatten()
            gradients = {n: generator.normal(size=x.shape) for n, x in chain.parameters().items()}
            optimizer.step(gradients)
        results.append({name: x.copy() for name, x in chain.parameters().items()})
    for name, x in results[0].items():
        np.testing.assert_array_equal(results[1][name], x)


def test_parameters_split_what_they_gather():
    subclassed = type("Own", (Parameter,), {})(np.ones(2, "f"))
    parameters = Parameters({**L.Linear(3, 5, seed=0).trainable(), "own": subclassed})
    arrays = {name: np.arange(x.size, dtype="f").reshape(x.shape) for name, x in parameters.items()}
    split = parameters.split(parameters.gather(arrays))
    assert list(split) == list(parameters.named.values())
    for array, x in zip(split.values(), arrays.values(), strict=True):
        np.testing.assert_array_equal(array, x)
