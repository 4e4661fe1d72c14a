"""Gradcheck finds the wrong ones of others' layers, and lets the right ones pass."""

import warnings
from copy import deepcopy

import numpy as np
import pytest

import npformer as nf
from tests.proof.layers_of_others.right import RIGHT
from tests.proof.layers_of_others.wrong import WRONG

MISSED = "2e-7 too much, in real numbers alone"
"""It is less than central differences can tell, and this forward pass has no complex form."""


def check(layer, *inputs, options):
    """Check a layer whose parameters have moved; a shape stands for normal numbers."""
    if isinstance(layer, nf.Layer):
        rng = np.random.default_rng(1)
        for parameter in layer.named_parameters().values():
            parameter.value[...] += 0.5 * rng.normal(size=parameter.shape)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=x) if isinstance(x, tuple) else x.copy() for x in inputs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert nf.gradcheck(layer, *arrays, **deepcopy(options)).passed


@pytest.mark.parametrize("name", [*RIGHT, MISSED])
def test_a_right_layer_passes(name):
    *case, options = (RIGHT | WRONG)[name]
    check(*case, options=options)


@pytest.mark.parametrize("name", [name for name in WRONG if name != MISSED])
def test_a_wrong_layer_is_found(name):
    *case, options = WRONG[name]
    with pytest.raises((nf.GradcheckError, IndexError)):  # one empties its cache
        check(*case, options=options)
