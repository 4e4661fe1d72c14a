"""The referee itself: what it must catch, and what it must not."""

from functools import partial

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer import layers as L
from npformer.core import Gradients, Layer
from npformer.proof.gradcheck import GradcheckError, gradcheck


@pytest.fixture
def xWb(rng):
    return rng.normal(size=(6, 5)), rng.normal(size=(5, 4)), rng.normal(size=4)


def refused(target, *inputs, **options):
    """Return the report of a check that must fail."""
    with pytest.raises(GradcheckError) as caught:
        gradcheck(target, *inputs, **options)
    return caught.value.report


def wrong_tensors(report):
    return [t.name for t in report.tensors if not t.error <= report.tolerance]


# What it accepts ----------------------------------------------------------------------------------


def test_accepts_a_right_pair(xWb):
    report = gradcheck(F.linear, *xWb)
    assert report.passed
    assert report.error < 1e-8
    assert [t.name for t in report.tensors] == ["x", "W", "b"]


def test_accepts_a_right_layer(rng):
    report = gradcheck(L.LayerNorm(6, dtype="float64"), rng.normal(size=(3, 6)))
    assert report.passed
    assert [t.name for t in report.tensors] == ["x", "gamma", "beta"]


def test_accepts_a_pass_that_hands_its_input_on(rng):
    assert gradcheck(L.EveryToken(), rng.normal(size=(2, 3))).passed
    assert gradcheck(L.FirstToken(), rng.normal(size=(2, 3, 4))).passed


def test_accepts_several_outputs(rng):
    config = nf.EncoderConfig(d_model=4, n_layers=1, n_heads=2, d_ff=4, max_len=4)
    for pooler in (True, False):
        encoder = nf.TextEncoder(config, 5, pooler=pooler, dtype="float64")
        report = gradcheck(encoder, rng.integers(0, 5, (2, 3)))
        assert [t.name for t in report.tensors] == list(encoder.parameters())


def test_accepts_a_partial_function(xWb):
    forward = partial(F.conv1d, padding="valid")
    x, W, b = xWb
    report = gradcheck((forward, F.conv1d_backward), x[None], W[None], b)
    assert "conv1d" in report.title


def test_large_inputs_pass_though_steps_are_rounded(rng):
    def double(x):
        return 2.0 * x, None

    report = gradcheck((double, lambda dy, cache: 2.0 * dy), 1e4 * rng.normal(size=(100, 100)))
    assert report.error < 1e-8


def softmax(x):
    e = np.exp(x - x.max())
    y = e / e.sum()
    return y, y


def softmax_backward(dy, y):
    return y * (dy - (dy * y).sum())


@pytest.mark.parametrize("size", [0.0, 1e8, 1.2e9, 1e12])
def test_inputs_so_large_that_a_step_is_lost_excuse_no_wrong_gradient(size):
    def sign_flipped(dy, y):
        return -softmax_backward(dy, y)

    refused((softmax, sign_flipped), np.arange(8.0) + size)


@pytest.mark.parametrize("size", [0.0, 1e8, 1.2e9])
def test_the_right_gradient_of_large_inputs_passes(size):
    assert gradcheck((softmax, softmax_backward), np.arange(8.0) + size).passed


def test_entries_that_are_not_finite_are_their_own_matter():
    assert gradcheck((softmax, softmax_backward), np.array([0.0, -np.inf, 1.0])).passed


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
    def forward(x):
        return (float(x[0]), float(x[1])), None

    def backward(dy, cache):
        return np.array([part.item() for part in dy])

    assert gradcheck((forward, backward), np.array([1.0, 2.0])).passed


def test_a_function_of_some_numbers_only_is_checked_where_it_is_defined():
    def log(x):
        if (x <= 0.0).any():
            raise ValueError("no logarithm")
        return np.log(x), x.copy()

    x = np.array([2.0, 0.5, 0.3, 0.05])
    assert gradcheck((log, lambda dy, x: dy / x), x).passed


class Rooted(Layer):
    """y = sqrt(weight) x, at one place only."""

    def __init__(self, weight):
        self.weight = nf.Parameter(np.array([weight]))

    def forward(self, x, context):
        if self.weight.value[0] != 4.0:
            raise ValueError("another place")
        return 2.0 * x, None


def test_parameters_are_put_back_after_an_error():
    layer = Rooted(4.0)
    layer.backward = lambda dy, cache, gradients: 2.0 * dy
    with pytest.raises(ValueError, match="another place"):
        gradcheck(layer, np.ones(3))
    assert layer.weight.value[0] == 4.0


def test_what_overflows_on_complex_numbers_alone_is_judged_by_differences():
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


def test_changes_neither_inputs_nor_parameters(rng):
    layer, x = L.Linear(5, 4, seed=0, dtype="float64"), rng.normal(size=(3, 5))
    before = x.copy(), layer.parameters()["weight"].copy()
    gradcheck(layer, x)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(layer.parameters()["weight"], before[1])


def test_a_gradient_that_is_0_by_nature_passes(rng):
    # The softmax does not see a shift of all scores, so attention's key bias has no gradient.
    query, key, value = (rng.normal(size=(3, 4)) for _ in range(3))

    def forward(key_bias, value):
        return F.scaled_dot_product_attention(query, key + key_bias, value)

    def backward(dy, cache):
        _, dkey, dvalue = F.scaled_dot_product_attention_backward(dy, cache)
        return dkey.sum(axis=0), dvalue

    report = gradcheck((forward, backward), rng.normal(size=4), value)
    assert report.passed
    assert abs(report.tensors[0].analytic) < 1e-12


# What it catches ----------------------------------------------------------------------------------


def test_catches_a_backward_pass_scaled_by_a_per_cent(xWb):
    def backward(dy, cache):
        dx, dW, db = F.linear_backward(dy, cache)
        return dx, 1.01 * dW, db

    assert wrong_tensors(refused((F.linear, backward), *xWb)) == ["W"]


def test_catches_one_that_divides_by_the_batch_size(rng):
    def backward(dy, cache):
        return F.softmax_backward(dy, cache) / len(dy)

    assert not refused((F.softmax, backward), rng.normal(size=(2, 4))).passed


def test_catches_a_layer_norm_that_forgets_gamma(rng):
    def backward(dy, cache):
        normalised, inverse_std, gamma = cache
        _, dgamma, dbeta = F.layer_norm_backward(dy, cache)
        dx, _, _ = F.layer_norm_backward(dy, (normalised, inverse_std, np.ones_like(gamma)))
        return dx, dgamma, dbeta

    x, gamma, beta = rng.normal(size=(3, 6)), 1.0 + rng.normal(size=6), rng.normal(size=6)
    assert wrong_tensors(refused((F.layer_norm, backward), x, gamma, beta)) == ["x"]


def test_catches_one_that_changes_its_dy(rng):
    def backward(dy, cache):
        dy *= cache > 0.0
        return dy

    report = refused((F.relu, backward), rng.normal(size=(3, 4)))
    assert "the backward pass changed its dy" in report.broken_rules


def test_catches_one_that_changes_its_cache(rng):
    def backward(dy, cache):
        cache *= cache
        return dy * (1.0 - cache)  # right the first time

    report = refused((F.tanh, backward), rng.normal(size=(3, 4)))
    assert any("called twice gave two results" in rule for rule in report.broken_rules)


def test_catches_one_that_changes_its_input(rng):
    def forward(x):
        np.maximum(x, 0.0, out=x)
        return x.copy(), x > 0.0

    def backward(dy, cache):
        return dy * cache

    report = refused((forward, backward), rng.normal(size=(3, 4)))
    assert "a pass changed an input or a parameter" in report.broken_rules


class KeepsItsMask(L.Dropout):
    """Dropout whose mask lives in the layer: the second use overwrites the first one's."""

    def forward(self, x, context):
        y, self.kept = super().forward(x, context)
        return y, None

    def backward(self, dy, cache, gradients):
        return super().backward(dy, self.kept, gradients)


def test_catches_one_dropout_used_twice_whose_mask_is_in_the_layer(rng):
    shared = KeepsItsMask(0.5)
    x = rng.normal(size=(4, 6))
    assert not refused(L.Sequential(shared, L.Tanh(), shared), x, training=True).passed


class KeepsItsInput(L.Linear):
    """A linear layer that remembers x itself instead of putting it into the cache."""

    def forward(self, x, context):
        y, self.cache = super().forward(x.copy(), context)
        return y, None

    def backward(self, dy, cache, gradients):
        return super().backward(dy, self.cache, gradients)


def test_catches_activations_kept_in_a_layer(rng):
    report = refused(KeepsItsInput(5, 4, seed=0, dtype="float64"), rng.normal(size=(3, 5)))
    assert any("second forward pass spoilt" in rule for rule in report.broken_rules)


class ForgetsItsBias(L.Linear):
    def backward(self, dy, cache, gradients):
        dx, dW, _ = F.linear_backward(dy, cache)
        gradients.add(self.weight, dW)
        return dx


def test_catches_a_parameter_without_its_gradient(rng):
    report = refused(ForgetsItsBias(5, 4, seed=0, dtype="float64"), rng.normal(size=(3, 5)))
    assert wrong_tensors(report) == ["bias"]


def test_catches_a_gradient_too_few_for_a_pair(xWb):
    with pytest.raises(
        TypeError, match="returned 2 gradients; expected 3, one for each of x, W, b"
    ):
        gradcheck((F.linear, lambda dy, cache: F.linear_backward(dy, cache)[:2]), *xWb)


def test_catches_a_single_wrong_entry_in_a_big_tensor_and_finds_it(rng):
    def backward(dy, cache):
        dx, dW = F.linear_backward(dy, cache)
        dW[7, 3] *= 1.2
        return dx, dW

    x, W = rng.normal(size=(20, 12)), rng.normal(size=(12, 12))
    report = refused((F.linear, backward), x, W)
    (wrong,) = [t for t in report.tensors if t.error > report.tolerance]
    assert (wrong.name, wrong.where) == ("W", (7, 3))
    assert wrong.analytic == pytest.approx(1.2 * wrong.numeric)


def test_catches_a_gradient_of_the_wrong_shape(xWb):
    def backward(dy, cache):
        dx, dW, db = F.linear_backward(dy, cache)
        return dx, dW.T, db

    report = refused((F.linear, backward), *xWb)
    assert "the gradient of W has shape (4, 5), not (5, 4)" in report.broken_rules


def test_catches_nan_in_the_forward_pass():
    # Without epsilon, a constant row divides 0 by 0.
    with np.errstate(invalid="ignore", divide="ignore"):
        report = refused(F.layer_norm, np.ones((1, 4)), np.ones(4), np.zeros(4), eps=0.0)
    assert "the forward pass gave NaN or infinity" in report.broken_rules


def test_catches_nan_in_the_backward_pass_alone(rng):
    report = refused((F.tanh, lambda dy, cache: np.full_like(dy, np.nan)), rng.normal(size=3))
    assert not report.error <= report.tolerance
    assert "<-- wrong" in str(report)


def test_catches_nan_in_one_of_several_tensors(xWb):
    def backward(dy, cache):
        dx, dW, db = F.linear_backward(dy, cache)
        return dx, np.full_like(dW, np.nan), db

    report = refused((F.linear, backward), *xWb)
    assert wrong_tensors(report) == ["W"]
    assert np.isnan(report.error)
    assert not report.passed


def test_catches_a_backward_pass_without_a_return(xWb):
    report = refused((F.tanh, lambda dy, cache: None), xWb[0])
    assert "the backward pass returned None as the gradient of x" in report.broken_rules

    def backward(dy, cache):
        dx, dW, _ = F.linear_backward(dy, cache)
        return dx, dW, None

    report = refused((F.linear, backward), *xWb)
    assert "the backward pass returned None as the gradient of b" in report.broken_rules


class DrawsInEvaluation(Layer):
    def __init__(self):
        self.generator = np.random.default_rng(0)

    def forward(self, x, context):
        return F.dropout(x, 0.5, self.generator)

    def backward(self, dy, cache, gradients):
        return F.dropout_backward(dy, cache)


def test_catches_randomness_that_was_not_passed_in(rng):
    report = refused(DrawsInEvaluation(), rng.normal(size=(4, 4)))
    assert "the forward pass called twice gave two results" in report.broken_rules


# Corners ------------------------------------------------------------------------------------------


def test_a_corner_is_recognised_and_reported():
    report = gradcheck(F.relu, np.array([-1.0, 0.0, 2.0, 0.0]))
    assert report.passed
    assert report.tensors[0].no_derivative == 2
    assert "2 without a derivative" in str(report)


def test_any_slope_between_the_two_sides_of_a_corner_will_do():
    def one_at_0(dy, y):
        return dy * (y >= 0.0) * 1.0

    def relu(x):
        return np.maximum(x, 0.0), x.copy()

    assert gradcheck((relu, one_at_0), np.array([-1.0, 0.0, 2.0])).tensors[0].no_derivative == 1


def test_a_wrong_gradient_at_a_corner_is_not_excused():
    def relu(x):
        return np.maximum(x, 0.0), x.copy()

    def too_steep_at_0(dy, x):
        return dy * np.where(x == 0.0, 1.5, x > 0.0)

    report = refused((relu, too_steep_at_0), np.array([-1.0, 0.0, 2.0]))
    assert report.tensors[0].where == (1,)
    assert report.tensors[0].no_derivative == 0


def test_a_wrong_gradient_beside_a_corner_is_not_excused():
    def half_slope(dy, y):
        return 0.5 * dy * (y > 0.0)

    report = refused((F.relu, half_slope), np.array([0.0, 2.0]))
    assert report.tensors[0].where == (1,)


@pytest.mark.parametrize("wrong", [0.5, 0.99, 1.01, -1.0])
def test_a_wrong_gradient_of_a_smooth_function_is_no_corner(rng, wrong):
    def backward(dy, cache):
        return wrong * F.gelu_backward(dy, cache)

    report = refused((F.gelu, backward), rng.normal(size=(3, 4)))
    assert report.tensors[0].no_derivative == 0


def test_a_jump_hides_no_wrong_gradient_elsewhere():
    def fraction(x):
        return x - np.floor(x), None

    def a_per_cent_off(dy, cache):
        return 1.01 * dy

    report = refused((fraction, a_per_cent_off), np.array([0.0, 0.3, 0.6]))
    assert report.tensors[0].where in ((1,), (2,))
    assert report.tensors[0].no_derivative == 1
    assert gradcheck((fraction, lambda dy, cache: dy), np.array([0.0, 0.3, 0.6])).passed


def test_a_corner_nearby_spoils_nothing():
    x = np.array([1e-6, -1e-6, 3e-7, 1.0])  # closer to 0 than the first step
    report = gradcheck(F.relu, x)
    assert report.error < 1e-8
    assert report.tensors[0].no_derivative == 0


# What it asks for ---------------------------------------------------------------------------------


def test_refuses_float32_inputs(xWb):
    with pytest.raises(TypeError, match=r"x has dtype float32; expected float64.*x\.astype"):
        gradcheck(F.linear, *(a.astype("float32") for a in xWb))


def test_refuses_float32_parameters(rng):
    with pytest.raises(TypeError, match="weight has dtype float32; expected float64"):
        gradcheck(L.Linear(5, 4, seed=0), rng.normal(size=(3, 5)))


def test_refuses_a_function_without_a_backward_pass_beside_it(rng):
    with pytest.raises(
        TypeError, match=r"split_heads has no split_heads_backward.*expected a pair"
    ):
        gradcheck(F.split_heads, rng.normal(size=(1, 2, 4)), 2)


@pytest.mark.parametrize("unused", [{"tolerence": 1e-12}, {"wrt": ["x"]}])
def test_refuses_for_a_layer_what_only_functions_take(rng, unused):
    (name,) = unused
    with pytest.raises(TypeError, match=f"got {name}; expected nothing that only functions take"):
        gradcheck(L.LayerNorm(6, dtype="float64"), rng.normal(size=(3, 6)), **unused)


def test_refuses_to_pass_when_there_is_nothing_to_compare():
    with pytest.raises(TypeError, match="FirstToken was given no float64 array and has no param"):
        gradcheck(L.FirstToken(), np.arange(24).reshape(2, 3, 4))
    with pytest.raises(TypeError, match="relu was given no float64 array"):
        gradcheck(F.relu, np.arange(3))


@pytest.mark.parametrize(("option", "value"), [("directions", 0), ("max_entries", -1)])
def test_refuses_to_look_at_nothing(rng, option, value):
    with pytest.raises(ValueError, match=f"{option} is {value}; expected a whole number"):
        gradcheck(F.relu, rng.normal(size=100), **{option: value})


def test_types_reach_the_layer(rng):
    config = nf.EncoderConfig(d_model=4, n_layers=1, n_heads=2, d_ff=4, max_len=4, n_token_types=2)
    model = nf.SequenceClassifier(config, 2, vocab_size=5, dtype="float64")
    seen = []
    forward = model.embed.forward

    def noted(x, context):
        seen.append(context.types)
        return forward(x, context)

    model.embed.forward = noted
    types = np.array([[0, 1, 1]])
    assert gradcheck(model, np.array([[1, 2, 3]]), types=types).passed
    assert all(given is types for given in seen)


def test_refuses_two_inputs_for_a_layer(rng):
    with pytest.raises(TypeError, match="got 2 inputs; expected one, x, for a layer"):
        gradcheck(L.Tanh(), rng.normal(size=3), rng.normal(size=3))


# What it says -------------------------------------------------------------------------------------


def test_the_report_names_the_tensor_the_entry_and_both_values(xWb):
    def backward(dy, cache):
        dx, dW, db = F.linear_backward(dy, cache)
        db[2] = 123.0
        return dx, dW, db

    with pytest.raises(GradcheckError) as caught:
        gradcheck((F.linear, backward), *xWb)
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


def test_token_ids_have_no_gradient_and_are_left_alone():
    layer = L.Embedding(5, 4, seed=0, dtype="float64")
    report = gradcheck(layer, np.array([[1, 2, 1]]))
    assert [t.name for t in report.tensors] == ["weight"]


def test_unused_gradients_object_is_untouched(rng):
    layer = L.Linear(5, 4, seed=0, dtype="float64")
    gradients = Gradients(layer)
    gradcheck(layer, rng.normal(size=(3, 5)))
    assert not gradients.flat.any()
