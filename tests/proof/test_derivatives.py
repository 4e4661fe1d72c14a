"""Central differences and complex steps by themselves: what each sees, and what it leaves."""

import math
import threading
from functools import partial

import numpy as np
import pytest
import scipy.fft

from npformer import functional as F
from npformer import layers as L
from npformer.proof.central_difference import STEP, Slopes, central_difference
from npformer.proof.complex_step import NotAnalytic, _complex_world, complex_copy, derivative
from npformer.proof.gradcheck import gradcheck
from npformer.proof.report import COMPLEX_TOLERANCE, TOLERANCE

from .test_gradcheck import refused


@pytest.mark.parametrize(
    ("f", "slope"), [(np.sin, np.cos), (np.exp, np.exp), (lambda x: x**3, lambda x: 3 * x**2)]
)
def test_derivatives_along_a_direction(rng, f, slope):
    x, u, v = rng.normal(size=(3, 4, 2))
    start = x.copy()
    slopes = central_difference(lambda: f(x), x, u, v)
    assert slopes.central == pytest.approx((slope(start) * u * v).sum(), rel=1e-8)
    np.testing.assert_array_equal(x, start)
    assert central_difference(lambda: f(x), x, u, v, y=f(x)) == slopes


@pytest.mark.parametrize("h", [STEP, 0.25])
def test_slopes_on_the_two_sides_of_a_corner(h):
    x = np.zeros(1)
    assert central_difference(lambda: np.maximum(x, 0.0), x, 1.0, h=h) == Slopes(0.0, 1.0)


def test_the_array_is_restored_after_an_error():
    x = np.ones(2)

    def f():
        if x[0] > 1.0:
            raise ZeroDivisionError
        return x

    with pytest.raises(ZeroDivisionError):
        central_difference(f, x, np.array([1.0, 0.0]))
    np.testing.assert_array_equal(x, 1.0)


def function(forward):
    """Return (forward, backward), where differences serve as the backward pass."""

    def keep(x):
        return forward(x), x.copy()

    def backward(dy, x):
        x, dx = x.astype("float64"), np.zeros(x.shape)  # differences of float32 hold no digit
        for i in np.ndindex(x.shape):
            u = np.zeros(x.shape)
            u[i] = 1e-6
            dx[i] = ((forward(x + u) - forward(x - u)) * dy).sum() / 2e-6
        return dx

    return keep, backward


@pytest.mark.parametrize(
    ("f", "df"),
    [
        (np.tanh, lambda x: 1.0 / np.cosh(x) ** 2),
        (np.exp, np.exp),
        (np.abs, np.sign),
        (lambda x: np.maximum(x, 0.5), lambda x: 1.0 * (x > 0.5)),
        (lambda x: np.minimum(x, -x), lambda x: -np.sign(x)),
        (lambda x: np.where(x < 0.0, x * x, 3.0 * x), lambda x: np.where(x < 0.0, 2.0 * x, 3.0)),
    ],
    ids=["tanh", "exp", "abs", "maximum", "minimum", "where"],
)
def test_the_derivative_of_one_number_is_known(f, df):
    for value in (-2.0, -0.3, 0.7, 4.0):
        x = complex_copy(np.array([value]))
        slope = derivative(lambda x=x: (f(x), None), x, np.ones(1))
        np.testing.assert_allclose(slope, df(np.array([value])), rtol=1e-15)


@pytest.mark.parametrize("transform", [scipy.fft.fft2, np.fft.fft2], ids=["scipy", "numpy"])
def test_the_parts_of_a_fourier_transform_are_functions_of_real_numbers(rng, transform):
    x, u = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    for component in ("real", "imag"):
        array = complex_copy(x)

        def run(array=array, component=component):
            return getattr(transform(array), component), None

        derivatives = derivative(run, array, u)
        np.testing.assert_allclose(derivatives, getattr(transform(u), component), atol=1e-14)


def test_a_transform_keeps_its_arguments_there_and_back(rng):
    x, u = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))

    def twice(x):  # of other lengths, along another axis: if they are forgotten, this is x
        return scipy.fft.irfft(scipy.fft.rfft(x, 6, axis=0), 8, axis=0)

    array = complex_copy(x)
    derivatives = derivative(lambda: (twice(array), None), array, u)
    np.testing.assert_allclose(derivatives, twice(u), atol=1e-14)


def test_catches_a_backward_pass_that_rounds_to_float32(rng):
    def backward(dy, cache):
        return tuple(g.astype("float32").astype("float64") for g in F.linear_backward(dy, cache))

    report = refused((F.linear, backward), rng.normal(size=(6, 5)), rng.normal(size=(5, 4)))
    assert report.error < TOLERANCE
    assert 1e-9 < report.complex_error < 1e-6
    assert str(report).count("<-- wrong") == 2


def test_catches_a_constant_that_was_cut_after_eight_digits(rng):
    def backward(dy, cache):
        _, x, phi = cache
        du = 0.79788456 * (1.0 + 3.0 * 0.044715 * (x * x))
        return dy * (phi + x * (phi * (1.0 - phi)) * (2.0 * du))

    pair = partial(F.gelu, approximate="tanh"), backward
    report = refused(pair, rng.normal(size=(3, 4)))
    assert report.error < TOLERANCE
    assert report.complex_error > COMPLEX_TOLERANCE


@pytest.mark.parametrize(
    ("forward", "why"),
    [
        (lambda x: x.real * 2.0, "a real or an imaginary part is not analytic"),
        (lambda x: (x * x.conj()) + 0.0, "conjugate is not analytic"),
        (lambda x: x * np.sign(x), "sign is not analytic"),
        (lambda x: np.array([math.sin(v) for v in x.flat]), "does not run on complex numbers"),
        (lambda x: x.astype("float64") * 3.0, "does not run on complex numbers"),
        (lambda x: np.asarray(x, dtype="float64") ** 2, "does not run on complex numbers"),
        (lambda x: np.arctan2(x, 2.0), "does not run on complex numbers"),
        (lambda x: np.abs(np.asarray(x)), "its result is real"),
        (lambda x: x + np.abs(np.asarray(x)), "computes something else with complex numbers"),
    ],
)
def test_a_function_that_is_not_analytic_is_checked_by_differences(rng, forward, why):
    report = gradcheck(function(forward), rng.normal(size=(5,)))
    assert report.passed
    assert report.complex_error is None
    assert why in report.not_analytic
    assert f"no complex step: {report.not_analytic}" in str(report)
    assert str(report).splitlines()[2].split()[6] == "-"
    skipped = gradcheck(F.tanh, rng.normal(size=4), complex_tolerance=None)
    assert (skipped.passed, skipped.complex_error) == (True, None)


def test_the_step_is_taken_back_even_if_the_function_fails():
    x = complex_copy(np.ones(3))
    with pytest.raises(NotAnalytic, match="does not run"):
        derivative(lambda: 1 / 0, x, np.ones(3))
    np.testing.assert_array_equal(np.asarray(x), np.ones(3) + 0j)


def test_complex_numbers_are_refused_before_and_after(rng):
    x = rng.normal(size=(2, 3)) + 0j
    for _ in range(2):
        with pytest.raises(TypeError, match="x has dtype complex128; expected float32 or float64"):
            F.tanh(x)
        gradcheck(F.tanh, rng.normal(size=3))


def test_complex_numbers_are_refused_in_another_thread_meanwhile(rng):
    refusals = []

    def elsewhere():
        try:
            F.tanh(np.ones(3) + 0j)
        except TypeError as error:
            refusals.append(error)

    with _complex_world():
        F.tanh(np.ones(3) + 0j)
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert len(refusals) == 1


def test_inputs_and_parameters_are_restored(rng):
    layer = L.PositionwiseFeedForward(4, 6, "gelu", seed=0, dtype="float64").flatten()
    views, flat = dict(layer.parameters()), layer.parameters().flat
    x, before = rng.normal(size=(2, 4)), flat.copy()
    x_before = x.copy()
    gradcheck(layer, x)
    np.testing.assert_array_equal(x, x_before)
    assert layer.parameters().flat is flat
    np.testing.assert_array_equal(flat, before)
    flat += 1.0  # views from before still belong to it
    for name, view in layer.parameters().items():
        np.testing.assert_array_equal(views[name], view)
        assert view.dtype == np.float64
