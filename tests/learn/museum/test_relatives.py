"""Invariants notice relatives of the museum's bugs, and pass right things in other forms."""

import math

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer.core import Context
from npformer.learn.museum import BUGS, INVARIANTS
from npformer.learn.museum.attention_by import AttentionBy
from npformer.learn.museum.gradient_tests import check_at_drawn_values
from npformer.learn.museum.losses import LABELS, SURE_OF_A_MISTAKE
from npformer.learn.museum.probes import N_HEADS, TOKENS, WIDTH
from npformer.optim.adam import adam_update
from npformer.proof.cases.case import SEEDED, draw


class AdamWithACorrectedRate(nf.Adam):
    """The form of section 2 of the paper: right, but for the weight of epsilon."""

    def _update(self, buffers, lr):
        beta1, beta2 = self.betas
        corrected = lr * math.sqrt(1.0 - beta2**self.steps) / (1.0 - beta1**self.steps)
        for name, theta, g in buffers:
            m, v = self._moments.of(name, theta)
            m += (1.0 - beta1) * (g - m)
            v += (1.0 - beta2) * (g * g - v)
            theta -= corrected * m / (np.sqrt(v) + self.eps)


class AdamThatCorrectsMAlone(nf.Adam):
    def _update(self, buffers, lr):
        beta1, beta2 = self.betas
        for name, theta, g in buffers:
            m, v = self._moments.of(name, theta)
            m += (1.0 - beta1) * (g - m)
            v += (1.0 - beta2) * (g * g - v)
            theta -= lr * (m / (1.0 - beta1**self.steps)) / (np.sqrt(v) + self.eps)


class AdamOneStepBehind(nf.Adam):
    def _update(self, buffers, lr):
        for name, theta, g in buffers:
            m, v = self._moments.of(name, theta)
            t = max(self.steps - 1, 1)
            adam_update(theta, g, m, v, t=t, lr=lr, betas=self.betas, eps=self.eps)


class AdamOfKnownNames(nf.Adam):
    """It goes through the gradients, and leaves out those of unknown parameters."""

    def step(self, gradients):
        self.steps += 1
        for name in gradients.keys() & self.parameters.keys():
            self.parameters[name] -= self.lr * gradients[name]


def dropout_of(factor):
    """Return a dropout that multiplies what it keeps by a function of the rate."""

    class DropoutByAFactor(nf.layers.Dropout):
        def forward(self, x, context):
            kept = context.dropout_generator().random(x.shape) >= self.rate
            return x * kept * factor(self.rate), None

    return DropoutByAFactor(0.5)


def norm_over(axes):
    """Return a layer norm with the mean and the variance over some axes."""

    class LayerNormOverAxes(nf.layers.LayerNorm):
        def forward(self, x, context):
            mean = x.mean(axis=axes, keepdims=True)
            return (x - mean) / np.sqrt(x.var(axis=axes, keepdims=True) + self.eps), None

    return LayerNormOverAxes(6, dtype="float64")


def attention_scaled_by(scale, n_heads=N_HEADS):
    """Return an attention whose scores are multiplied by a number."""

    def attend(query, key, value, mask=None, causal=False):
        scaled = query * (scale * math.sqrt(query.shape[-1]))
        return F.scaled_dot_product_attention(scaled, key, value, mask, causal)

    return AttentionBy(WIDTH, n_heads, attend=(attend, None), **SEEDED)


def cross_entropy_of(loss_factor=1.0, gradient_factor=1.0, shift=0):
    """Return cross entropy times a factor in each pass, and with labels shifted in the second."""

    def forward(logits, labels):
        loss, _ = F.softmax_cross_entropy(logits, labels)
        shifted = (labels + shift) % logits.shape[-1]
        return loss * loss_factor, F.softmax_cross_entropy(logits, shifted)[1]

    def backward(dloss, cache):
        return F.softmax_cross_entropy_backward(dloss, cache) * gradient_factor

    return forward, backward


def check_dx_alone(pair):
    x, W1, W2 = draw(3, 4), draw(4, 5, seed=1), draw(5, 4, seed=2)
    nf.gradcheck((lambda x: pair[0](x, W1, W2), lambda dy, cache: pair[1](dy, cache)[0]), x)


def check_shapes(pair):
    arrays = draw(3, 4), draw(4, 5), draw(5, 4)
    y, cache = pair[0](*arrays)
    assert [g.shape for g in pair[1](y, cache)] == [array.shape for array in arrays]


def check_and_print(pair):
    try:
        check_at_drawn_values(pair)
    except AssertionError as error:
        print("the gradient may be wrong:", error)


def check_that_always_fails(pair):
    raise AssertionError("right code fails, too")


WRONG = {
    "Adam that corrects m alone": ("each_step_of_adam_is_lr_long", AdamThatCorrectsMAlone),
    "Adam whose t is one behind": ("each_step_of_adam_is_lr_long", AdamOneStepBehind),
    "Adam of known names": ("a_missing_gradient_is_refused", AdamOfKnownNames),
    "dropout without a scale": ("dropout_keeps_the_mean", dropout_of(lambda rate: 1.0)),
    "dropout scaled by the root": (
        "dropout_keeps_the_mean",
        dropout_of(lambda rate: (1.0 - rate) ** -0.5),
    ),
    "batch norm": ("a_norm_is_of_one_token", norm_over(0)),
    "norm over all tokens": ("a_norm_is_of_one_token", norm_over((-2, -1))),
    "scores by d_head": ("scores_have_variance_1", attention_scaled_by(N_HEADS / WIDTH)),
    "scores by the model's width": ("scores_have_variance_1", attention_scaled_by(WIDTH**-0.5)),
    "sum and mean": ("a_loss_and_its_gradient_share_a_count", cross_entropy_of(loss_factor=6.0)),
    "mean and sum": (
        "a_loss_and_its_gradient_share_a_count",
        cross_entropy_of(gradient_factor=6.0),
    ),
    "gradient up the hill": ("a_gradient_is_p_minus_target", cross_entropy_of(gradient_factor=-1)),
    "gradient of the next class": ("a_gradient_is_p_minus_target", cross_entropy_of(shift=1)),
    "loss in bits": (
        "a_sure_mistake_costs_what_its_logits_differ_by",
        cross_entropy_of(loss_factor=1.0 / math.log(2.0)),
    ),
    "test of dx alone": ("a_test_fails_where_a_gradient_is_wrong", check_dx_alone),
    "test of shapes": ("a_test_fails_where_a_gradient_is_wrong", check_shapes),
    "test that prints": ("a_test_fails_where_a_gradient_is_wrong", check_and_print),
    "test that always fails": ("a_test_fails_where_a_gradient_is_wrong", check_that_always_fails),
}
"""What is wrong -> the invariant that notices it, and the wrong thing."""

RIGHT = {
    "Adam with a corrected rate": ("each_step_of_adam_is_lr_long", AdamWithACorrectedRate),
    "its first step": ("adams_first_step_has_size_lr", AdamWithACorrectedRate),
    "dropout": ("dropout_keeps_the_mean", dropout_of(lambda rate: 1.0 / (1.0 - rate))),
    "dropout of tokens": ("dropout_keeps_the_mean", nf.layers.TokenDropout(0.5)),
    "norm of a token": ("a_norm_is_of_one_token", norm_over(-1)),
    "scores by the root": ("scores_have_variance_1", attention_scaled_by((N_HEADS / WIDTH) ** 0.5)),
    "loss and gradient as sums": (
        "a_loss_and_its_gradient_share_a_count",
        cross_entropy_of(loss_factor=6.0, gradient_factor=6.0),
    ),
}
"""What is right in another form -> an invariant, and the thing."""


@pytest.mark.parametrize(("invariant", "thing"), WRONG.values(), ids=WRONG)
def test_a_relative_of_a_bug_is_noticed(invariant, thing):
    with pytest.raises(AssertionError):
        INVARIANTS[invariant](thing)


@pytest.mark.parametrize(("invariant", "thing"), RIGHT.values(), ids=RIGHT)
def test_what_is_right_in_another_form_passes(invariant, thing):
    assert INVARIANTS[invariant](thing) is None  # it would have raised AssertionError


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("cross_entropy_with_an_epsilon", (draw(2, 3, 4), LABELS)),
        ("cross_entropy_that_looks_for_its_target", (SURE_OF_A_MISTAKE, LABELS)),
        ("cross_entropy_divided_by_the_batch", (draw(6, 4), LABELS.ravel())),
        ("embedding_that_assigns", (np.array([[3, 0], [1, 2]]), draw(5, 4))),
        ("embedding_that_averages", (np.array([[3, 0], [1, 2]]), draw(5, 4))),
    ],
)
def test_central_differences_at_usual_inputs_miss_what_the_bug_says(name, inputs):
    assert nf.gradcheck(BUGS[name].build(), *inputs, complex_tolerance=None).passed


def test_a_rate_of_one_half_hides_a_dropout_that_divides_by_it():
    bug = BUGS["DropoutDividedByItsRate"]
    dropouts = bug.build(), bug.right()
    contexts = [Context(training=True, generator=np.random.default_rng(0)) for _ in dropouts]
    y, expected = (
        dropout.forward(TOKENS, context)[0]
        for dropout, context in zip(dropouts, contexts, strict=True)
    )
    np.testing.assert_array_equal(y, expected)


def test_sizes_that_coincide_hide_a_norm_that_divides_by_them():
    norm = BUGS["LayerNormDividedByItsTokens"].build()
    assert nf.gradcheck(norm, draw(2, 4, 8)).passed
    with pytest.raises(nf.GradcheckError):
        nf.gradcheck(norm, draw(2, 5, 8))


def test_relu_hides_that_an_activation_keeps_its_result():
    def relu_that_keeps_its_result(x):
        y, _ = F.relu(x)
        return y, F.relu(y)[1]

    assert nf.gradcheck((relu_that_keeps_its_result, F.relu_backward), draw(3, 4)).passed
