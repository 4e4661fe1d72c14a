"""A cause is named where the numbers show it, and a coincidence is not taken for one."""

import numpy as np
import pytest

from npformer.learn.museum import BUGS
from npformer.proof.across_patterns import locate
from npformer.proof.evidence import Evidence
from npformer.proof.gradcheck import gradcheck
from npformer.proof.patterns import name_pattern
from npformer.proof.report import GradcheckError
from tests.proof.foreign.test_trials_inputs import trials_of

X = np.random.default_rng(0).normal(size=(4, 6))


def report_of(target, *inputs):
    """Return the report of what is wrong."""
    with pytest.raises(GradcheckError) as caught:
        gradcheck(target, *inputs)
    return caught.value.report


class HalfOfSquare:
    """A square without the 2 in its gradient."""

    def forward(self, x):
        self.x = x
        return x * x

    def backward(self, dy):
        return dy * self.x


class MeanOverBatch:
    """A linear layer with its gradient divided by the number of samples."""

    def __init__(self, n_in, n_out):
        self.W = np.random.default_rng(1).normal(size=(n_in, n_out))

    def forward(self, x):
        self.x = x
        return x @ self.W

    def backward(self, dy):
        rows, drows = (array.reshape(-1, array.shape[-1]) for array in (self.x, dy))
        self.dW = rows.T @ drows / len(dy)
        return dy @ self.W.T


class UnscaledDropout:
    """Dropout whose backward pass lacks 1 / (1 - p)."""

    def __init__(self, p=0.5):
        self.p = p

    def forward(self, x):
        self.mask = np.random.default_rng(2).random(x.shape) >= self.p
        return x * self.mask / (1.0 - self.p)

    def backward(self, dy):
        return dy * self.mask


@pytest.mark.parametrize(
    ("kind", "patterns"),
    [
        (
            HalfOfSquare,
            ["backward is 1/2 of the derivative; not a size of x: it is so at each shape"] * 2,
        ),
        (
            MeanOverBatch,
            [
                "backward is 1/2 of the derivative; 2 is the batch size, or it is a plain 2, as "
                "of a square: other sizes tell",
                "backward is 1/4 of the derivative; 4 is the batch size",
            ],
        ),
        (
            UnscaledDropout,
            [
                "backward is 1/2 of the derivative; that is 1 - p for p = 0.5, so 1 / (1 - p) is "
                "missing"
            ]
            * 2,
        ),
    ],
)
def test_the_cause_of_a_factor_holds_at_each_shape(kind, patterns):
    (trial,) = trials_of(kind)
    reports = [report for _, report in trial.reports if hasattr(report, "tensors")]
    assert [report.wrong_tensors()[0].pattern for report in reports] == patterns


def test_a_factor_of_two_at_one_shape_may_be_a_size():
    named = name_pattern("x", 2.0 * X, X, Evidence(inputs={"x": X}))
    assert "2 is the root of 4, the batch size, or it is a plain 2" in named


def relu_without_its_mask(weight):
    def forward(x):
        return np.maximum(x, 0.0) * weight, None

    return forward, lambda dy, cache: dy * weight


def test_a_mask_that_is_left_out_is_named():
    weight = np.random.default_rng(3).normal(size=X.shape)
    (tensor,) = report_of(relu_without_its_mask(weight), X).wrong_tensors()
    assert tensor.kind == "mask left out"


def test_an_error_where_there_is_a_derivative_is_no_mask():
    weight = np.random.default_rng(3).normal(size=X.shape)
    forward, backward = relu_without_its_mask(weight)
    noise = np.random.default_rng(4).normal(size=X.shape)
    (tensor,) = report_of((forward, lambda dy, cache: backward(dy, cache) * noise), X).tensors
    assert tensor.kind == ""


def test_a_target_that_is_found_by_its_value_is_named():
    logits = np.round(2.0 * X) / 2.0
    logits[0, :2] = 0.5
    labels = np.array([0, 1, 2, 3])

    def loss(logits, labels):
        p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        right = logits[np.arange(4), labels]
        value = -np.log(p[np.arange(4), labels]).mean()
        return value, (p - (logits == right[:, None])) / 4.0

    (tensor,) = report_of(loss, logits, labels).wrong_tensors()
    assert tensor.kind == "target by value"


class UpdatesFirst:
    """A linear layer that reads its weights after it has updated them."""

    def __init__(self):
        self.W = np.random.default_rng(5).normal(size=(3, 6))

    def forward(self, x):
        self.x = x
        return self.W @ x

    def backward(self, dy, lr):
        self.W -= lr * dy @ self.x.T
        return self.W.T @ dy


def test_weights_that_are_read_after_their_update_are_named():
    report = report_of(UpdatesFirst(), np.random.default_rng(6).normal(size=(6, 1)))
    assert report.wrong_tensors()[0].kind == "updated weights"


def test_the_bias_of_keys_explains_what_is_lost():
    words = name_pattern("attention.key.bias", np.ones(4), np.zeros(4))
    assert "the gradients of these scores have to add up to 0" in words


def test_another_bias_without_a_derivative_says_nothing_of_keys():
    words = name_pattern("attention.query.bias", np.ones(4), np.zeros(4))
    assert words == "not zero, though y does not depend on it"


def test_the_layer_that_all_wrong_parameters_belong_to_is_named():
    names = ["x", "query.weight", "query.bias", "key.weight", "key.bias", "value.weight"]
    place = locate(names, ["x", "key.weight", "key.bias"])
    assert place == (
        "beside x, the gradients of key alone are wrong: look at the path that leads to it"
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("DropoutThatRemembers", "mask left out"),
        ("cross_entropy_that_looks_for_its_target", "target by value"),
        ("attention_that_masks_its_keys_twice", "nonzero"),
        ("cross_entropy_with_an_epsilon", "epsilon"),
        ("GELUThatKeepsItsResult", "saved output"),
    ],
)
def test_the_kind_of_a_bug_of_the_museum_is_named(name, kind):
    report = BUGS[name].report()
    assert kind in {tensor.kind for tensor in report.tensors}


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("AttentionThatMergesByReshape", "as far as output.weight, and wrong from value.bias on"),
        (
            "BlockThatForgetsItsResidual",
            "as far as feed_forward.expand.weight, and wrong from mixer_norm.beta on",
        ),
        ("attention_that_masks_its_keys_twice", "the gradients of key alone are wrong"),
    ],
)
def test_where_an_error_comes_in_is_said_behind_a_key_bias_without_derivative(name, place):
    assert any(place in note for note in BUGS[name].report().notes)


def test_terms_with_a_wrong_weight_are_told_from_right_ones():
    x = np.random.default_rng(8).normal(size=(5, 4))
    W = np.random.default_rng(9).normal(size=(4, 8))
    jacobian = np.einsum("bi,oj->iobj", x, np.eye(8)).reshape(4, 8, 5, 8)
    dy = np.random.default_rng(10).normal(size=(5, 8))
    numeric = x.T @ dy
    analytic = x.T @ (dy * np.where(np.arange(5) == 3, 0.5, 1.0)[:, None])
    evidence = Evidence(inputs={"W": W}, dy=dy, jacobian=jacobian)
    words = name_pattern("W", analytic, numeric, evidence)
    assert words == "the terms of sample 3 (axis 0 of y) are multiplied by 0.5"
