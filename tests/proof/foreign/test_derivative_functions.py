"""Pairs of functions in other people's styles: what the backward function takes."""

import numpy as np
import pytest

from npformer.proof.gradcheck import gradcheck
from npformer.proof.report import GradcheckError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 4))
W = RNG.normal(size=(4, 3))


def activated_forward(x, W, activation, slope=0.1):
    z = x @ W
    y = np.tanh(z) if activation == "tanh" else np.where(z > 0.0, z, slope * z)
    return y, (x, W, z)


def activated_backward(dy, cache, activation, slope=0.3):
    x, W, z = cache
    dz = dy * (1.0 - np.tanh(z) ** 2) if activation == "tanh" else dy * np.where(z > 0, 1.0, slope)
    return dz @ W.T, x.T @ dz


@pytest.mark.parametrize("options", [{"activation": "tanh"}, {"activation": "relu", "slope": 0.2}])
def test_a_backward_function_gets_the_options_of_forward_again(options):
    assert gradcheck(activated_forward, X, W, **options).passed


def test_a_default_that_only_backward_has_changed_is_an_error():
    with pytest.raises(GradcheckError):
        gradcheck(activated_forward, X, W, activation="relu")
