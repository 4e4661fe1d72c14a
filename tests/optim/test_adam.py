"""Adam: its steps, what it refuses, its copies and its state."""

import pickle

import numpy as np
import pytest

import npformer as nf
from npformer import layers as L
from npformer.optim import adam_update, constant


def make_chain(width):
    linear = L.Linear(3, width, seed=0, dtype="float64")
    return L.Sequential(linear, L.LayerNorm(width, dtype="float64")).flatten()


@pytest.fixture
def chain():
    return make_chain(5)


def random_gradients(layer, rng):
    gradients = nf.Gradients(layer)
    for view in gradients.values():
        view[...] = rng.normal(size=view.shape)
    return gradients


# Steps --------------------------------------------------------------------------------------------
def test_follows_the_algorithm_step_by_step(rng):
    lr, beta1, beta2, eps = 0.02, 0.8, 0.95, 1e-3
    theta, m, v = rng.normal(size=5), np.zeros(5), np.zeros(5)
    updated = {"w": theta.copy()}
    optimizer = nf.Adam(updated, lr=lr, betas=(beta1, beta2), eps=eps)
    for t in range(1, 6):
        g = rng.normal(size=5)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        theta = theta - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)
        optimizer.step({"w": g})
        np.testing.assert_allclose(updated["w"], theta, rtol=1e-12)


def test_updating_the_flat_buffer_is_updating_name_by_name(chain, rng):
    by_name = {name: array.copy() for name, array in chain.parameters().items()}
    flat_optimizer = nf.Adam(chain.parameters(), weight_decay=0.1)
    name_optimizer = nf.Adam(by_name, weight_decay=0.1)
    for _ in range(4):
        gradients = random_gradients(chain, rng)
        flat_optimizer.step(gradients)
        name_optimizer.step({name: g.copy() for name, g in gradients.items()})
    for name, array in chain.parameters().items():
        np.testing.assert_array_equal(array, by_name[name])


def test_neither_gradients_nor_the_gaps_between_parameters_change(chain, rng):
    gradients = random_gradients(chain, rng)
    before = gradients.flat.copy()
    nf.Adam(chain.parameters(), weight_decay=0.1).step(gradients)
    np.testing.assert_array_equal(gradients.flat, before)
    flat = chain.parameters().flat
    assert (flat != 0.0).sum() == sum((array != 0.0).sum() for array in chain.parameters().values())


def test_weight_decay_shrinks_apart_from_the_gradient():
    theta = {"w": np.array([2.0, -3.0])}
    nf.Adam(theta, lr=0.1, weight_decay=0.5).step({"w": np.zeros(2)})
    np.testing.assert_allclose(theta["w"], [2.0 * 0.95, -3.0 * 0.95], rtol=1e-14)


def test_the_schedule_scales_each_step_counted_from_1():
    steps, theta = [], {"w": np.zeros(1)}

    def schedule(step):
        steps.append(step)
        return 0.5

    optimizer = nf.Adam(theta, lr=0.1, schedule=schedule)
    optimizer.step({"w": np.ones(1)})
    optimizer.step({"w": np.ones(1)})
    assert steps == [1, 2]
    assert optimizer.current_lr() == 0.05
    np.testing.assert_allclose(theta["w"], -0.1, rtol=1e-6)


def test_gradients_of_the_same_names_and_other_shapes_are_refused(chain):
    gradients = nf.Gradients(make_chain(6))
    gradients.flat[...] = 1.0
    before = chain.parameters().flat.copy()
    assert list(gradients) == list(chain.parameters())
    with pytest.raises(ValueError, match=r"has shape \(3, 6\) .* expected \(3, 5\)"):
        nf.Adam(chain.parameters()).step(gradients)
    np.testing.assert_array_equal(chain.parameters().flat, before)


# Large gradients ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "enabled",
    [
        True,
        False,
    ],
)
@pytest.mark.parametrize(
    "shape",
    [
        (4,),
        (2, 2),
    ],
)
@pytest.mark.parametrize(
    "size",
    [
        1e18,
        2e19,
        5e20,
    ],
)
def test_gradients_up_to_5e20_move_float32_as_they_move_float64(enabled, shape, size):
    rng = np.random.default_rng(0)
    start, theta, wide = rng.normal(size=shape), {}, {}
    theta["w"], wide["w"] = start.astype("float32"), start.copy()
    narrow, reference = (nf.Adam(parameters, lr=0.1) for parameters in (theta, wide))
    with nf.use_kernels(enabled):
        for step in range(4):
            g = rng.uniform(0.5, 1.0, shape) * (size if step == 0 else 1e-3 * size)
            narrow.step({"w": g.astype("float32")})
            reference.step({"w": g})
    np.testing.assert_allclose(theta["w"], wide["w"], rtol=0, atol=1e-6)
    assert (np.abs(theta["w"] - start) > 0.1).all()


@pytest.mark.parametrize(
    "flat",
    [
        True,
        False,
    ],
)
@pytest.mark.parametrize(
    "enabled",
    [
        True,
        False,
    ],
)
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (np.nan, "holds NaN"),
        (np.inf, "holds infinity"),
        (-np.inf, "holds infinity"),
        (1e30, r"reaches 1e\+30: its square is more than float32 can hold"),
        (7e20, r"reaches 7e\+20: its square is more"),
    ],
)
def test_a_gradient_not_finite_is_named_before_anything_changes(flat, enabled, value, problem):
    layer = L.Sequential(L.Linear(3, 5, seed=0), L.LayerNorm(5)).flatten()
    parameters, gradients = layer.parameters(), random_gradients(layer, np.random.default_rng(0))
    optimizer = nf.Adam(parameters if flat else dict(parameters))
    with nf.use_kernels(enabled):
        optimizer.step(gradients if flat else dict(gradients))
        before, (values, arrays) = parameters.flat.copy(), optimizer.state()
        gradients["chain.1.gamma"][2] = gradients["chain.1.beta"][1] = value
        wrong = rf"the gradient of chain\.1\.gamma {problem}"
        with pytest.raises(nf.NonFiniteGradientError, match=wrong) as caught:
            optimizer.step(gradients if flat else dict(gradients))
    assert caught.value.parameter == pickle.loads(pickle.dumps(caught.value)).parameter
    np.testing.assert_array_equal(parameters.flat, before)
    assert optimizer.state()[0] == values
    for name, array in optimizer.state()[1].items():
        np.testing.assert_array_equal(array, arrays[name])


def test_many_gradients_whose_squares_together_overflow_are_no_error():
    theta = {"w": np.zeros(1000, "float32")}
    nf.Adam(theta, lr=0.1).step({"w": np.full(1000, 1e19, "float32")})
    np.testing.assert_allclose(theta["w"], -0.1, rtol=1e-5)


# What is refused ----------------------------------------------------------------------------------
ONES = np.ones(3)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"parameters": {"w": [1.0]}}, TypeError, "parameter w is a list; expected an array"),
        ({"parameters": {"w": None}}, TypeError, "parameter w is None; expected an array"),
        ({"parameters": {"w": 1.0}}, TypeError, "parameter w is a float; expected an array"),
        ({"parameters": {"w": np.float32(1)}}, TypeError, "parameter w is a NumPy number"),
        ({"parameters": {"w": np.ones(3, int)}}, TypeError, "parameter w has dtype int64"),
        ({"parameters": {"w": np.ones(3, "float16")}}, TypeError, "w has dtype float16"),
        ({"parameters": {"w": np.broadcast_to(ONES, (2, 3))}}, ValueError, "w is read-only"),
        ({"betas": (0.9, 0.99, 0.999)}, ValueError, r"betas is \(0\.9, 0\.99, 0\.999\); .* two"),
        ({"betas": (0.9,)}, ValueError, r"betas is \(0\.9,\); expected two numbers"),
        ({"betas": 0.9}, ValueError, r"betas is 0\.9; expected two numbers"),
        ({"betas": ONES[:2]}, ValueError, "betas is an ndarray; expected two numbers"),
        ({"betas": ("0.9", 0.99)}, ValueError, "betas is '0.9'; expected a number from 0"),
        ({"betas": (0.9, -0.1)}, ValueError, r"betas is -0\.1; expected a number from 0"),
        ({"lr": "0.1"}, ValueError, "lr is '0.1'; expected a number above 0"),
        ({"lr": None}, ValueError, "lr is None; expected a number above 0"),
        ({"lr": np.inf}, ValueError, "lr is inf; expected a number above 0"),
        ({"eps": None}, ValueError, "eps is None; expected a number above 0"),
        ({"weight_decay": "0"}, ValueError, "weight_decay is '0'; expected 0 or more"),
    ],
)
def test_wrong_settings_are_refused_in_words(change, error, message):
    with pytest.raises(error, match=message):
        nf.Adam(**({"parameters": {"w": ONES.copy()}} | change))


@pytest.mark.parametrize(
    ("gradients", "error", "message"),
    [
        (None, TypeError, "gradients is None; expected a Mapping. Pass what loss_and_gradients"),
        ({}, ValueError, "gradients is empty; expected at least one array"),
        ([ONES], TypeError, "gradients is a list; expected a Mapping"),
        (ONES, TypeError, "gradients is an ndarray; expected a Mapping"),
        ({"v": ONES}, ValueError, "do not fit the parameters: w is missing.* from one model"),
        ({"w": ONES, "v": ONES, "u": ONES}, ValueError, "u is unknown"),
        ({"v": ONES, "w": None}, TypeError, "the gradient of w is None; expected an array"),
        ({"v": ONES, "w": [1.0, 1.0, 1.0]}, TypeError, "the gradient of w is a list"),
        ({"v": ONES, "w": 1.0}, TypeError, "the gradient of w is a float"),
        ({"v": ONES, "w": ONES.astype(int)}, TypeError, "the gradient of w has dtype int64"),
        (
            {"v": ONES, "w": ONES.astype("f")},
            ValueError,
            "w has .* dtype float32, expected .*float64",
        ),
        ({"v": ONES, "w": np.ones((3, 1))}, ValueError, r"w has shape \(3, 1\) .*expected \(3,\)"),
        ({"v": ONES, "w": np.float64(1.0)}, TypeError, "the gradient of w is a NumPy number"),
    ],
)
def test_wrong_gradients_are_refused_in_words_and_change_nothing(gradients, error, message):
    theta = {"v": ONES.copy(), "w": ONES.copy()}
    optimizer = nf.Adam(theta)
    with pytest.raises(error, match=message):
        optimizer.step(gradients)
    np.testing.assert_array_equal([theta["v"], theta["w"]], 1.0)
    assert optimizer.steps == 0


@pytest.mark.parametrize("lr", [-1.0, np.nan, None, "0.1"])
def test_a_learning_rate_that_a_callback_sets_wrong_is_refused(lr):
    optimizer = nf.Adam({"w": ONES.copy()})
    optimizer.lr = lr
    with pytest.raises(ValueError, match=r"lr is .*; expected 0 or more"):
        optimizer.step({"w": ONES})
    assert optimizer.steps == 0


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"g": np.ones((3, 3))}, ValueError, r"theta, g, m and v have the shapes .*\(3, 3\)"),
        ({"v": np.ones(1)}, ValueError, "theta, g, m and v have the shapes"),
        ({"v": None}, TypeError, "v is None; expected an array"),
        ({"g": np.ones(3, int)}, TypeError, "g has dtype int64"),
        ({"m": np.ones(3, "float32")}, TypeError, "m has dtype float32"),
        ({"theta": [1.0]}, TypeError, "theta is a list; expected an array"),
    ],
)
def test_the_update_refuses_arrays_that_do_not_fit(wrong, error, message):
    arrays = {name: np.ones(3) for name in ("theta", "g", "m", "v")} | wrong
    with pytest.raises(error, match=message):
        adam_update(**arrays, t=1, lr=0.1, betas=(0.9, 0.99), eps=1e-8)


def test_defaults_are_those_of_the_paper():
    optimizer = nf.Adam({"w": ONES.copy()})
    defaults = (optimizer.lr, optimizer.betas, optimizer.eps, optimizer.weight_decay)
    assert defaults == (1e-3, (0.9, 0.999), 1e-8, 0.0)
    assert optimizer.schedule == constant()


def test_a_gradient_that_only_the_earlier_ones_make_too_large():
    """Half of each square: 2.4e38 first, 3.6e38 then; float32 ends at 3.4e38."""
    x = np.ones(3, dtype="float32")
    optimizer = nf.Adam({"x": x}, betas=(0.9, 0.5))
    g = {"x": np.array([2.2e19, 0.0, 0.0], dtype="float32")}
    optimizer.step(g)
    before = x.copy(), optimizer.state()[1]["v.x"]
    with pytest.raises(nf.NonFiniteGradientError, match=r"the gradient of x reaches 2\.2e"):
        optimizer.step(g)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(optimizer.state()[1]["v.x"], before[1])
    assert optimizer.steps == 1
