"""The Dense Synthesizer as attention to keys that a whole batch shares."""

from dataclasses import replace

import numpy as np
import pytest

from tests.kernels import helpers
from tests.kernels.cpu.helpers import assert_close, assert_parity, expected, forward, run
from tests.kernels.helpers import MASKS

SIZES = [(1, 1, 1, 1, 1), (1, 7, 3, 1, 9), (3, 13, 1, 3, 13), (2, 12, 2, 16, 13)]
"""Batch, length, heads, features of a head, the longest length."""

BIASES = {"small": (1.0, 5e-6), "large": (30.0, 2e-5), "huge": (1000.0, 1e-3)}
"""Size of the bias of each key, and float32's error. exp(30 normals) is within `SAFE` only now and
then, exp(1000) is not even within float64."""


@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("mask", MASKS)
def test_of_any_shape_mask_tiling_and_bias(tiling, mask, causal):
    for sizes in SIZES:
        for bias, single in BIASES.values():
            case = helpers.dense_heads(*sizes, mask, causal, bias)
            assert_close(run(case), expected(case), 1e-12)
            if not tiling:  # tiles do not depend on the precision
                assert_close(run(case, "float32"), expected(case, "float32"), single)


@pytest.mark.parametrize(("bias", "weighs"), [(1.0, True), (1000.0, False)])
def test_only_a_large_bias_needs_row_maxima(bias, weighs):
    case = helpers.dense_heads(bias=bias)
    _, cache = forward(case, case.arrays, case.context())
    exponentials = cache[5][0]
    assert (exponentials.weight is not None, exponentials.shift is None) == (weighs, weighs)


def test_columns_beyond_the_length_have_gradient_0(tiling):
    *_, dW2, db2, _, _ = run(helpers.dense_heads(length=13, max_len=17))
    assert np.abs(dW2[..., :13]).min() > 0.0
    assert np.abs(db2[..., :13]).min() > 0.0
    assert not dW2[..., 13:].any()
    assert not db2[..., 13:].any()


@pytest.mark.parametrize("batch", [1, 3])
def test_biases_of_padding_may_be_the_largest(tiling, batch):
    """A row maximum is taken over what a query sees; otherwise all of it would vanish."""
    case = helpers.dense_heads(batch, mask="one token")
    x, W1, b1, W2, b2, *value = case.arrays
    b2 = np.where(case.mask.any(axis=0), 0.0, 800.0)[None, :]  # [1, length]
    b2 = np.pad(np.repeat(b2, 2, axis=0), ((0, 0), (0, 4)))  # two heads, 17 columns
    assert_parity(replace(case, arrays=(x, W1, b1, W2, b2, *value)))
