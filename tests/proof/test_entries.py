"""A report keeps what was compared, entry by entry."""

import pickle

import numpy as np

from npformer import functional as F
from npformer import layers as L
from npformer.proof.entries import STEPS
from npformer.proof.gradcheck import gradcheck
from npformer.proof.report import GradcheckError


def entries_of(target, *inputs, name="x"):
    """Return the entries of one tensor, whether or not the check passes."""
    try:
        report = gradcheck(target, *inputs)
    except GradcheckError as error:
        report = error.report
    return next(tensor.entries for tensor in report.tensors if tensor.name == name)


def cube(x):
    return x**3, x.copy()


CUBE = cube, lambda dy, x: 3.0 * dy * x**2
X = np.random.default_rng(0).normal(size=(4, 3))


def test_all_entries_of_a_small_tensor_are_kept():
    entries = entries_of(CUBE, X)
    np.testing.assert_allclose(entries.derivative, entries.gradient, rtol=1e-6)
    np.testing.assert_allclose(entries.exact, entries.gradient, rtol=1e-13)
    assert entries.error.max() < 1e-8


def test_a_large_tensor_has_its_directions():
    entries = entries_of(CUBE, np.random.default_rng(0).normal(size=(40, 5)))
    assert np.isnan(entries.derivative).all()
    analytic, numeric = entries.along_directions
    np.testing.assert_allclose(analytic, numeric, rtol=1e-6)


def test_a_large_tensor_that_is_wrong_has_its_entries():
    halved = cube, lambda dy, x: 1.5 * dy * x**2
    entries = entries_of(halved, np.random.default_rng(0).normal(size=(40, 5)))
    np.testing.assert_allclose(entries.derivative, 2.0 * entries.gradient, rtol=1e-5, atol=1e-8)


def test_corners_are_marked():
    x = np.array([-1.0, 0.0, 0.0, 2.0])
    entries = entries_of(F.relu, x)
    assert entries.corners.tolist() == [False, True, True, False]


def test_zeros_are_marked():
    entries = entries_of(F.relu, np.array([-1.0, 3.0, 2.0]))
    assert entries.zeros.tolist() == [True, False, False]


def test_errors_by_step_have_the_shape_of_a_v():
    errors = entries_of(CUBE, X).errors_by_step(0)
    assert errors.shape == (len(STEPS), 2)
    lowest = int(errors[:, 0].argmin())
    assert 2 <= lowest <= 7
    assert errors[0, 0] > 1e3 * errors[lowest, 0] < 1e3 * errors[-1, 0]


def test_errors_against_a_wrong_gradient_have_no_v():
    errors = entries_of((cube, lambda dy, x: 6.0 * dy * x**2), X).errors_by_step(0)
    assert errors[2:9, 1].min() > 0.5 * errors[2:9, 1].max()
    assert errors[:, 0].min() < 1e-7


def test_errors_by_step_are_those_of_the_values_that_were_checked():
    layer = L.Linear(3, 2, seed=0, dtype="float64")
    entries = entries_of(layer, X, name="weight")
    before = entries.errors_by_step(0)
    layer.weight.value[...] += 5.0
    np.testing.assert_array_equal(entries.errors_by_step(0), before)


def test_the_values_of_today_stay_when_steps_are_taken():
    layer = L.Linear(3, 2, seed=0, dtype="float64")
    entries = entries_of(layer, X, name="weight")
    layer.weight.value[...] = 7.0
    entries.errors_by_step(0)
    assert (layer.weight.value == 7.0).all()


def test_the_entries_to_step_hold_the_wrong_one():
    def backward(dy, x):
        dx = 3.0 * dy * x**2
        dx[2, 1] += 0.5
        return dx

    entries = entries_of((cube, backward), X)
    assert entries.entries_to_step()[0] == 7


def test_a_large_tensor_has_entries_to_step():
    entries = entries_of(CUBE, np.random.default_rng(0).normal(size=(40, 5)))
    largest, middle = entries.entries_to_step()
    assert np.abs(entries.gradient).argmax() == largest != middle


def test_stored_entries_have_no_steps():
    entries = pickle.loads(pickle.dumps(entries_of(CUBE, X)))
    assert np.isnan(entries.errors_by_step(0)).all()


def test_reports_of_the_same_check_are_equal():
    assert gradcheck(CUBE, X) == gradcheck(CUBE, X)
