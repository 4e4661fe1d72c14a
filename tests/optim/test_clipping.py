"""The global norm and clipping."""

import numpy as np
import pytest

import npformer as nf
from npformer import layers as L
from npformer.optim import global_norm
from tests.optim.test_adam import make_chain, random_gradients


def test_the_global_norm_is_the_root_of_all_squares():
    assert global_norm({"a": np.array([3.0, 0.0]), "b": np.array([[4.0], [12.0]])}) == 13.0


def test_clipping_scales_all_by_one_factor_and_returns_the_norm_before():
    gradients = {"a": np.array([3.0, 0.0]), "b": np.array([4.0])}
    norm = nf.clip_by_global_norm(gradients, 1.0)
    assert norm == 5.0
    np.testing.assert_allclose(gradients["a"], [0.6, 0.0], rtol=1e-6)
    np.testing.assert_allclose(gradients["b"], [0.8], rtol=1e-6)


@pytest.mark.parametrize(("values", "norm"), [([0.3, 0.4], 0.5), ([0.0, 0.0], 0.0)])
def test_clipping_leaves_short_gradients_as_they_are(values, norm):
    gradients = {"a": np.array(values)}
    assert nf.clip_by_global_norm(gradients, 1.0) == norm
    np.testing.assert_array_equal(gradients["a"], values)


def test_clipping_a_flat_buffer_is_clipping_name_by_name(rng):
    gradients = random_gradients(make_chain(5), rng)
    by_name = {name: g.copy() for name, g in gradients.items()}
    norms = [nf.clip_by_global_norm(mapping, 0.5) for mapping in (gradients, by_name)]
    assert norms[0] == pytest.approx(norms[1], rel=1e-14)
    for name, g in gradients.items():
        np.testing.assert_allclose(g, by_name[name], rtol=1e-13)


# Large and small ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "n",
    [
        1,
        3,
        100_000,
    ],
)
@pytest.mark.parametrize(
    "size",
    [
        1e-45,
        1e-38,
        1e-25,
        3e-22,
        1e-15,
        1e10,
        1e19,
        1e25,
        3e32,
    ],
)
def test_the_norm_neither_overflows_nor_vanishes_in_float32(n, size):
    g = np.random.default_rng(n).uniform(-size, size, n).astype("float32")
    g[0] = size
    halves = {"a": g[: n // 2], "b": g[n // 2 :]}
    expected = np.linalg.norm(g.astype("float64"))
    for gradients in (halves, {"all": g.reshape(1, -1)}):
        norm = global_norm(gradients)
        assert norm.dtype == "float32"
        assert float(norm) == pytest.approx(expected, rel=1e-5, abs=1e-45)
    nf.clip_by_global_norm(halves, 2.0)
    if min(2.0 / (expected + 1e-6), 1.0) < 1.0:
        assert np.linalg.norm(g.astype("float64")) == pytest.approx(2.0, rel=1e-5)
    else:
        assert np.linalg.norm(g.astype("float64")) == expected


def test_the_norm_holds_all_of_float64():
    assert global_norm({"a": np.array([3e200, 4e200])}) == pytest.approx(5e200)
    assert global_norm({"a": np.array([3e-200, 4e-200])}) == pytest.approx(5e-200)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([1.0, np.nan, np.inf], "holds NaN"),
        ([1.0, -np.inf, 1.0], "holds infinity"),
        ([3e38, 3e38, 1.0], r"reaches 3e\+38: the norm of all gradients is more than float32 can"),
    ],
)
@pytest.mark.parametrize(
    "flat",
    [
        False,
        True,
    ],
)
def test_a_norm_that_is_not_finite_is_refused_and_named(values, problem, flat):
    gradients = nf.Gradients(L.Linear(2, 3, seed=0).flatten())
    gradients["bias"][...] = values
    gradients["weight"][...] = 1.0
    before = gradients.flat.copy()
    mapping = gradients if flat else dict(gradients)
    with pytest.raises(nf.NonFiniteGradientError, match=f"gradient of bias {problem}") as caught:
        nf.clip_by_global_norm(mapping, 1.0)
    assert caught.value.parameter == "bias"
    np.testing.assert_array_equal(gradients.flat, before)
    norm = np.nan if "NaN" in problem else np.inf
    np.testing.assert_equal(float(global_norm(mapping)), norm)


# Wrong arguments ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("gradients", "error", "message"),
    [
        (None, TypeError, "gradients is None; expected a Mapping. Pass what loss_and_gradients"),
        ({}, ValueError, "gradients is empty; expected at least one array"),
        ({"w": np.ones(3, complex)}, TypeError, "the gradient of w has dtype complex128"),
        ({"v": {"w": np.ones(3)}}, TypeError, "the gradient of v is a dict"),
    ],
)
def test_wrong_gradients_are_refused_in_words(gradients, error, message):
    for call in (global_norm, lambda g: nf.clip_by_global_norm(g, 1e-3)):
        with pytest.raises(error, match=message):
            call(gradients)


def test_read_only_gradients_are_measured_and_not_clipped():
    gradients = {"v": np.ones(3), "w": np.broadcast_to(np.ones(1), 3)}
    assert float(global_norm(gradients)) == pytest.approx(6**0.5)
    with pytest.raises(ValueError, match="gradient of w is read-only; expected an array to change"):
        nf.clip_by_global_norm(gradients, 0.1)
    np.testing.assert_array_equal(gradients["v"], 1.0)


@pytest.mark.parametrize("max_norm", [0.0, -1.0, np.nan, np.inf, None, "1", [1.0], np.ones(2), 1j])
def test_a_wrong_max_norm_is_refused_in_words(max_norm):
    gradients = {"w": np.ones(3)}
    with pytest.raises(ValueError, match=r"max_norm is .*; expected a number above 0"):
        nf.clip_by_global_norm(gradients, max_norm)
    np.testing.assert_array_equal(gradients["w"], 1.0)


def test_arrays_without_entries_have_the_norm_0():
    gradients = {"a": np.zeros((0, 3)), "b": np.zeros(0)}
    assert nf.clip_by_global_norm(gradients, 1.0) == 0.0
    assert global_norm(gradients | {"c": np.array([2.0])}) == 2.0
