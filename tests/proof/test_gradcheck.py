import re
from functools import partial

import numpy as np
import pytest

from npformer import functional as F
from npformer import layers as L
from npformer.core import Layer
from npformer.proof.gradcheck import gradcheck
from npformer.proof.report import GradcheckError
from npformer.proof.twincheck import twin_report


@pytest.fixture
def xWb(rng):
    return rng.normal(size=(6, 5)), rng.normal(size=(5, 4)), rng.normal(size=4)


def refused(target, *inputs, **options):
    with pytest.raises(GradcheckError) as caught:
        gradcheck(target, *inputs, **options)
    return caught.value.report


def linear_but(change):
    return F.linear, lambda dy, cache: change(*F.linear_backward(dy, cache))


def test_accepts_a_partial_function(xWb):
    forward = partial(F.conv1d, padding="valid")
    x, W, b = xWb
    report = gradcheck((forward, F.conv1d_backward), x[None], W[None], b)
    assert "conv1d" in report.title


def test_accepts_inputs_whose_steps_are_rounded(rng):
    double = (lambda x: (2.0 * x, None)), (lambda dy, _: 2.0 * dy)
    assert gradcheck(double, 1e4 * rng.normal(size=(100, 100))).error < 1e-8


def softmax(x):
    e = np.exp(x - x.max())
    y = e / e.sum()
    return y, y


def softmax_backward(dy, y):
    return y * (dy - (dy * y).sum())


@pytest.mark.parametrize("size", [0.0, 1e8, 1.2e9, 1e12])
def test_catches_a_wrong_gradient_of_inputs_so_large_that_a_step_is_lost(size):
    flipped = softmax, lambda dy, y: -softmax_backward(dy, y)
    refused(flipped, np.arange(8.0) + size)


@pytest.mark.parametrize(
    "x", [np.arange(8.0) + size for size in (0.0, 1e8, 1.2e9)] + [np.array([0.0, -np.inf, 1.0])]
)
def test_accepts_a_right_gradient_of_large_and_infinite_inputs(x):
    assert gradcheck((softmax, softmax_backward), x).passed


def test_a_steep_corner_beside_a_curved_slope_passes():
    steep, first = 1.2e5, np.array([True, False])

    def forward(x):
        curved = np.log(np.where(first, 1.0, x))
        return np.where(first, steep * np.maximum(x, 0.0), curved), x.copy()

    def backward(dy, x):
        return dy * np.array([steep, 1.0 / x[1]])

    report = gradcheck((forward, backward), np.array([0.0, 2.5e-4]))
    assert report.tensors[0].no_derivative == 1


def test_outputs_may_be_plain_numbers():
    passes = (lambda x: ((float(x[0]), float(x[1])), None)), (lambda dy, _: np.array(dy, float))
    assert gradcheck(passes, np.array([1.0, 2.0])).passed


def test_a_function_is_checked_where_it_is_defined():
    def log(x):
        if (x <= 0.0).any():
            raise ValueError("no logarithm")
        return np.log(x), x.copy()

    x = np.array([2.0, 0.5, 0.3, 0.05])
    assert gradcheck((log, lambda dy, x: dy / x), x).passed


def test_a_function_that_overflows_only_on_complex_numbers_is_checked_by_differences():
    def swish(x):
        gate = 1.0 / (1.0 + np.exp(-x))
        return x * gate, (x.copy(), gate)

    def swish_backward(dy, cache):
        x, gate = cache
        return dy * gate * (1.0 + x * (1.0 - gate))

    with np.errstate(over="ignore"):
        report = gradcheck((swish, swish_backward), np.array([-1000.0, 1.0]))
    assert report.complex_error is None
    assert report.not_analytic == "its result is not finite on complex numbers"


@pytest.mark.parametrize("factor", [1.01, np.nan])
def test_catches_one_wrong_tensor_of_several(xWb, factor):
    report = refused(linear_but(lambda dx, dW, db: (dx, factor * dW, db)), *xWb)
    assert [t.name for t in report.tensors if not t.error <= report.tolerance] == ["W"]
    assert np.isnan(report.error) == np.isnan(factor)
    assert not report.passed


class KeepsItsInput(L.Linear):
    def forward(self, x, context):
        y, self.cache = super().forward(x.copy(), context)
        return y, None

    def backward(self, dy, cache, gradients):
        return super().backward(dy, self.cache, gradients)


def test_catches_a_missing_gradient_of_a_pair(xWb):
    message = r"returned a tuple of 2; expected \(dx, dW, db\), in this order"
    with pytest.raises(TypeError, match=message):
        gradcheck(linear_but(lambda dx, dW, db: (dx, dW)), *xWb)


@pytest.mark.parametrize("factor", [1.2, 1.0 + 1e-8])
def test_catches_a_single_wrong_entry_in_a_big_tensor_and_finds_it(rng, factor):
    """Differences see the large error, the complex step the small one, too."""

    def backward(dy, cache):
        dx, dW = F.linear_backward(dy, cache)
        dW[7, 3] *= factor
        return dx, dW

    x, W = rng.normal(size=(20, 12)), rng.normal(size=(12, 12))
    report = refused((F.linear, backward), x, W)
    (wrong,) = [t for t in report.tensors if t.complex_error > 1e-10]
    assert (wrong.name, wrong.where) == ("W", (7, 3))
    assert (wrong.error > report.tolerance) == (factor == 1.2)
    if factor == 1.2:
        assert wrong.analytic == pytest.approx(1.2 * wrong.numeric)


def test_catches_nan_in_the_forward_pass():
    # Without epsilon, a constant row divides 0 by 0.
    with np.errstate(invalid="ignore", divide="ignore"):
        report = refused(F.layer_norm, np.ones((1, 4)), np.ones(4), np.zeros(4), eps=0.0)
    assert "the forward pass gave NaN or infinity" in report.broken_rules


@pytest.mark.parametrize("complex_tolerance", [1e-10, None])
def test_catches_nan_in_the_backward_pass_alone(rng, complex_tolerance):
    pair = F.tanh, lambda dy, cache: np.full_like(dy, np.nan)
    report = refused(pair, rng.normal(size=3), complex_tolerance=complex_tolerance)
    assert not report.error <= report.tolerance
    assert "<-- wrong" in str(report)


class WrongInFloat32(L.Linear):
    def backward(self, dy, cache, gradients):
        dx = super().backward(dy, cache, gradients)
        return 1.01 * dx if dx.dtype == np.float32 else dx


class TakesDyForContiguous(Layer):
    """y = 2 x; its gradient reads the memory of dy as if it had no gaps."""

    def forward(self, x, context):
        return 2.0 * x, None

    def backward(self, dy, cache, gradients):
        memory = np.lib.stride_tricks.as_strided(dy, (dy.size,), (dy.itemsize,), writeable=False)
        return 2.0 * memory.reshape(dy.shape)


class TakesDyInOrder(TakesDyForContiguous):
    """Reads the memory of dy in C's order, whatever its order is."""

    def backward(self, dy, cache, gradients):
        return 2.0 * dy.ravel(order="K").reshape(dy.shape)


class WritesIntoDy(TakesDyForContiguous):
    def backward(self, dy, cache, gradients):
        dy *= 2.0
        dx = dy.copy()
        dy /= 2.0
        return dx


@pytest.mark.parametrize(
    ("layer", "rules"),
    [
        (WrongInFloat32(4, 3, seed=0, dtype="float64"), ["in float32 x differs by 1.0e-02 from"]),
        (
            TakesDyForContiguous(),
            ["for a dy with gaps between its entries, .* another", "for a dy in Fortran order"],
        ),
        (TakesDyInOrder(), ["for a dy in Fortran order, the backward pass gives another"]),
        (WritesIntoDy(), ["for a dy that is read-only, the backward pass raises ValueError"]),
    ],
)
def test_catches_what_is_wrong_for_another_dtype_or_layout_alone(rng, layer, rules):
    broken_rules = refused(layer, rng.normal(size=(3, 4))).broken_rules
    assert len(broken_rules) == len(rules)
    for rule, pattern in zip(broken_rules, rules, strict=True):
        assert re.search(pattern, rule)


def test_what_rounding_alone_explains_in_float32_passes(rng):
    x = 1e5 + rng.normal(size=(3, 4))  # numbers of float32 are .008 apart there
    centred = (lambda x: (x - x.mean(), None), lambda dy, _: dy - dy.mean())
    assert gradcheck(centred, x).passed


class DrawsInEvaluation(Layer):
    def __init__(self):
        self.generator = np.random.default_rng(0)

    def forward(self, x, context):
        return F.dropout(x, 0.5, self.generator)

    def backward(self, dy, cache, gradients):
        return F.dropout_backward(dy, cache)


def changes_its_dy(dy, cache):
    dy *= cache > 0.0
    return dy


def changes_its_cache(dy, y):
    y *= y
    return dy * (1.0 - y)  # right the first time


def changes_its_input(x):
    np.maximum(x, 0.0, out=x)
    return x.copy(), x > 0.0


class CalledOtherwise(L.GELU):
    def __call__(self, x, mask=None):
        return super().__call__(x, mask) * 1.5


class Refuses(L.GELU):
    def __call__(self, x, mask=None):
        raise ValueError("no")


LINEAR = (6, 5), (5, 4), (4,)


@pytest.mark.parametrize(
    ("target", "shapes", "rule"),
    [
        ((F.relu, changes_its_dy), [(3, 4)], "the backward pass changed its dy"),
        ((F.tanh, changes_its_cache), [(3, 4)], "called twice gave two results: it changes its ca"),
        ((changes_its_input, np.multiply), [(3, 4)], "a pass changed an input or a parameter"),
        (KeepsItsInput(5, 4, seed=0, dtype="float64"), [(3, 5)], "second forward pass spoilt"),
        (DrawsInEvaluation(), [(4, 4)], "the forward pass called twice gave two results"),
        (CalledOtherwise(), [(4, 4)], "called as a user calls it, it does not give what forward"),
        (Refuses(), [(4, 4)], "called as a user calls it, it raises ValueError: no"),
        (linear_but(lambda dx, dW, db: (dx, dW.T, db)), LINEAR, "W has shape (4, 5), not (5, 4)"),
        (linear_but(lambda x, W, _: (x, W, None)), LINEAR, "returned None as the gradient of b"),
        ((F.tanh, lambda dy, cache: None), [(6, 5)], "returned None as the gradient of x"),
    ],
)
def test_catches_a_broken_rule(rng, target, shapes, rule):
    report = refused(target, *(rng.normal(size=shape) for shape in shapes))
    assert any(rule in broken for broken in report.broken_rules)


@pytest.mark.parametrize("wrong", [np.full(3, np.nan), np.array([1.0, 1.1, 1.0]), np.ones(2)])
def test_catches_a_twin_that_differs_in_one_tensor(wrong):
    truth = {"x": np.ones(3), "weight": np.ones(3), "y": np.ones(3)}
    report = twin_report("float64", {**truth, "weight": wrong}, truth)
    assert (report.passed, report.tensor) == (False, "weight")
    assert twin_report("float64", truth, truth).passed


def test_a_corner_is_recognised_and_reported():
    report = gradcheck(F.relu, np.array([-1.0, 0.0, 2.0, 0.0]))
    assert report.passed
    assert report.tensors[0].no_derivative == 2
    assert report.complex_error < 1e-13
    assert "2 without a derivative" in str(report)


@pytest.mark.parametrize(("at_0", "beside"), [(1.0, 1.0), (1.5, 1.0), (0.0, 0.5)])
def test_at_a_corner_any_slope_between_its_two_sides_passes_and_no_other(at_0, beside):
    pair = (
        lambda x: (np.maximum(x, 0.0), x.copy()),
        lambda dy, x: dy * np.where(x == 0.0, at_0, beside * (x > 0.0)),
    )
    x = np.array([-1.0, 0.0, 2.0])
    if (at_0, beside) == (1.0, 1.0):
        assert gradcheck(pair, x).tensors[0].no_derivative == 1
    else:
        (tensor,) = refused(pair, x).tensors
        assert (tensor.where, tensor.no_derivative) == ((1 if at_0 else 2,), 0 if at_0 else 1)


@pytest.mark.parametrize("wrong", [0.5, 0.99, 1.01, -1.0])
def test_does_not_take_a_wrong_gradient_of_a_smooth_function_for_a_corner(rng, wrong):
    scaled = F.gelu, lambda dy, cache: wrong * F.gelu_backward(dy, cache)
    report = refused(scaled, rng.normal(size=(3, 4)))
    assert report.tensors[0].no_derivative == 0


def test_a_jump_hides_no_wrong_gradient_elsewhere():
    fraction, x = (lambda x: (x - np.floor(x), None)), np.array([0.0, 0.3, 0.6])
    report = refused((fraction, lambda dy, cache: 1.01 * dy), x)
    assert report.tensors[0].where in ((1,), (2,))
    assert report.tensors[0].no_derivative == 1
    assert gradcheck((fraction, lambda dy, cache: dy), x).passed


def test_a_corner_near_the_point_does_not_matter():
    x = np.array([1e-6, -1e-6, 3e-7, 1.0])  # closer to 0 than the first step
    report = gradcheck(F.relu, x)
    assert report.error < 1e-8
    assert report.tensors[0].no_derivative == 0


ONES, IDS = np.ones((1, 2, 6)), np.arange(24).reshape(2, 3, 4)
NORM = L.LayerNorm(6, dtype="float64")


@pytest.mark.parametrize(
    ("target", "inputs", "options", "message"),
    [
        (F.relu, [ONES.astype("float32")], {}, r"x has dtype float32; expected float64.*x\.astype"),
        (L.Linear(6, 4, seed=0), [ONES], {}, "weight has dtype float32; expected float64"),
        (F.split_heads, [ONES, 2], {}, "split_heads has no split_heads_backward.*expected a pair"),
        (NORM, [ONES], {"tolerence": 1e-12}, "got tolerence; expected nothing that only functions"),
        (NORM, [ONES], {"wrt": ["x"]}, "got wrt; expected nothing that only functions take"),
        (NORM, [ONES, ONES], {}, "got 2 inputs; .* LayerNorm has one input. .* n_inputs = 2"),
        (L.FirstToken(), [IDS], {}, "FirstToken was given no float64 array and has no param"),
        (F.relu, [IDS], {}, "relu was given no float64 array"),
    ],
)
def test_refuses(target, inputs, options, message):
    with pytest.raises(TypeError, match=message):
        gradcheck(target, *inputs, **options)


@pytest.mark.parametrize(("option", "value"), [("directions", 0), ("max_entries", -1)])
def test_refuses_to_check_nothing(rng, option, value):
    with pytest.raises(ValueError, match=f"{option} is {value}; expected a whole number"):
        gradcheck(F.relu, rng.normal(size=100), **{option: value})


def test_the_report_names_the_tensor_the_entry_and_both_values(xWb):
    pair = linear_but(lambda dx, dW, db: (dx, dW, np.where(np.arange(4) == 2, 123.0, db)))
    with pytest.raises(GradcheckError) as caught:
        gradcheck(pair, *xWb)
    text = str(caught.value)
    assert "gradcheck of linear: FAILED, tolerance 1e-06" in text
    (line,) = [line for line in text.splitlines() if "<-- wrong" in line]
    for word in ("b ", "(4,)", "all 4 entries", "[2]", "123"):
        assert word in line


def test_the_report_of_a_layer_covers_every_parameter(rng):
    layer = L.PositionwiseFeedForward(4, 30, "gelu", seed=0, dtype="float64")
    report = gradcheck(layer, rng.normal(size=(2, 3, 4)))
    assert {t.name for t in report.tensors} == {"x", *layer.parameters()}
    assert {t.checked for t in report.tensors if t.name.endswith("weight")} == {"8 directions"}


def test_a_transposed_gradient_fails_where_x_is_drawn_with_the_seed_of_v():
    """With v = x it is x^T x, which is symmetric."""
    x, W = np.random.default_rng(0).normal(size=(6, 4)), np.eye(4)
    transposed = linear_but(lambda dx, dW: (dx, dW.T))
    report = refused(transposed, x, W)
    assert report.tensors[1].kind == "transposed"
