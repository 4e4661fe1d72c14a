"""gradcheck names terms of a norm that are missing, penalties, and means over other counts."""

import numpy as np
import pytest

from npformer.proof.gradcheck import gradcheck
from npformer.proof.report import GradcheckError

X = np.random.default_rng(0).normal(size=(3, 5, 7))


def pattern_of(target, *inputs, **options):
    with pytest.raises(GradcheckError) as caught:
        gradcheck(target, *inputs, **options)
    (pattern,) = {tensor.pattern for tensor in caught.value.report.tensors if tensor.pattern}
    return pattern


def normalize(x):
    std = np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    return (x - x.mean(axis=-1, keepdims=True)) / std, std


def norm(x):
    z, std = normalize(x)
    return z, (z, std)


def norm_backward_with(mean, deviation):
    def backward(dy, cache):
        z, std = cache
        dx = dy - mean * dy.mean(axis=-1, keepdims=True)
        dx = dx - deviation * z * (dy * z).mean(axis=-1, keepdims=True)
        return dx / std

    return backward


@pytest.mark.parametrize(
    ("mean", "deviation", "words"),
    [
        (0.0, 1.0, "its mean over axis 2 is not subtracted"),
        (1.0, 0.0, "a multiple of x - mean in each row is too much"),
        (0.0, 0.0, "the terms of the row's mean and deviation are missing"),
    ],
)
def test_a_missing_term_of_a_norm_is_named(mean, deviation, words):
    assert words in pattern_of((norm, norm_backward_with(mean, deviation)), X)


def test_a_norm_with_both_terms_passes():
    assert gradcheck((norm, norm_backward_with(1.0, 1.0)), X).passed


def test_a_missing_term_of_an_rms_norm_is_named():
    def rms_norm(x):
        rms = np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)
        return x / rms, rms

    words = "the term of the row's root mean square is missing"
    assert words in pattern_of((rms_norm, lambda dy, rms: dy / rms), X)


def test_a_penalty_counted_twice_is_named():
    def loss(W):
        return float((np.cos(W) + 0.1 * W * W).sum()), -np.sin(W) + 0.4 * W

    assert "0.2 times W itself is too much, as of a penalty on its square" in pattern_of(loss, X[0])


@pytest.mark.parametrize(("factor", "written"), [(0.7, "7/10 of"), (1.0 / 0.7, "10/7 times")])
def test_a_mean_over_another_count_of_labels_is_named(factor, written):
    labels = np.array([1, 0, 2, 0, 3, 4, 0, 2, 1, 1])

    def loss(x, labels):
        keeps = (labels != 0)[:, None]
        return float((keeps * x**2).sum() / keeps.sum()), factor * 2.0 * keeps * x / keeps.sum()

    x = np.random.default_rng(2).normal(size=(10, 6))
    words = f"backward is {written} the derivative; 7 of the 10 ids are not 0, so two means"
    assert words in pattern_of(loss, x, labels)
