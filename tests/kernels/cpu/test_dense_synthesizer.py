"""The Dense Synthesizer as attention to keys that a whole batch shares."""

from dataclasses import replace

import numpy as np
import pytest

from npformer.engine import EngineContext
from npformer.engine.cpu import averaging, rows
from npformer.engine.cpu.dense_synthesizer import dense_heads
from tests.kernels.cpu import helpers
from tests.kernels.cpu.helpers import (
    MASKS,
    Case,
    assert_close,
    assert_parity,
    expected,
    forward,
    run,
)

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
            if not tiling:  # tiles know nothing of precision
                assert_close(run(case, "float32"), expected(case, "float32"), single)


@pytest.mark.parametrize("shape", [(1, 1, 1, 3, 3), (7, 3, 1, 64, 5), (3, 13, 1, 257, 17)])
def test_of_any_shape_in_pieces(piece, shape):
    assert_parity(helpers.dense_heads(*shape, mask="padded"))


def test_the_sizes_above_take_both_ways(monkeypatch):
    prepared = []
    prepare = averaging._prepare
    monkeypatch.setattr(
        averaging, "_prepare", lambda *a: [prepared.append(prepare(*a)), prepared[-1]][1]
    )
    for bias in (1.0, 1000.0):
        run(helpers.dense_heads(bias=bias))
    assert [heads.shift is None for heads in prepared] == [True, False]
    assert [heads.weight is None for heads in prepared] == [False, True]


@pytest.mark.parametrize(("causal", "bias"), [(True, 1.0), (False, 1000.0)])
def test_a_long_sequence_with_tiles_as_they_are(causal, bias):
    length = averaging.TILE + 77
    case = helpers.dense_heads(2, length, 1, 4, length + 5, "padded", causal, bias)
    assert_close(run(case), expected(case), 1e-12)


@pytest.mark.parametrize("first", [True, False])
def test_the_largest_scores_may_be_in_any_piece(monkeypatch, first):
    monkeypatch.setattr(rows, "PIECE", 40)
    case = helpers.dense_heads(4, 13, 1, 8)
    x, W1, b1, *others = (a.copy() for a in case.arrays)
    x[slice(1, None) if first else slice(None, -1)] = 0.0  # all but one sample
    case = replace(case, arrays=(100.0 * x, W1, 0.0 * b1, *others))
    assert_close(run(case, "float32"), expected(case, "float32"), 5e-4)


def test_columns_beyond_the_length_have_gradient_0(tiling):
    *_, dW2, db2, _, _ = run(helpers.dense_heads(length=13, max_len=17))
    assert np.abs(dW2[..., :13]).min() > 0.0
    assert np.abs(db2[..., :13]).min() > 0.0
    assert not dW2[..., 13:].any()
    assert not db2[..., 13:].any()


@pytest.mark.parametrize("mask", ["padded", "in front", "one token"])
@pytest.mark.parametrize("batch", [1, 3])
def test_padding_may_hold_anything(tiling, mask, batch):
    case = helpers.dense_heads(batch, mask=mask)
    x, *maps = case.arrays
    clean = expected(case)[0]
    for junk in (np.nan, 1e30):
        junked = np.where(case.mask[..., None], x, junk)
        with np.errstate(invalid="ignore", over="ignore"):
            y, _ = forward(case, (junked, *maps), case.context())
        np.testing.assert_allclose(y[case.mask], clean[case.mask], rtol=0, atol=1e-12)


@pytest.mark.parametrize("batch", [1, 3])
def test_biases_of_padding_may_be_the_largest(tiling, batch):
    """A row maximum is taken over what a query sees, or all that it sees vanishes beside it."""
    case = helpers.dense_heads(batch, mask="one token")
    x, W1, b1, W2, b2, *value = case.arrays
    b2 = np.where(case.mask.any(axis=0), 0.0, 800.0)[None, :]  # [1, length]
    b2 = np.pad(np.repeat(b2, 2, axis=0), ((0, 0), (0, 4)))  # two heads, 17 columns
    assert_parity(Case(case.name, (x, W1, b1, W2, b2, *value), case.others, case.mask))


def test_what_does_not_fit_is_refused():
    x, *maps = helpers.dense_heads(3, 4, max_len=4).arrays
    with pytest.raises(ValueError, match="x has length 5; expected at most 4"):
        dense_heads(np.concatenate([x, x[:, :1]], axis=1), *maps, False, EngineContext())
    with pytest.raises(ValueError, match="x has shape"):
        dense_heads(x[..., 1:], *maps, False, EngineContext())
    with pytest.raises(ValueError, match="mask has shape"):
        dense_heads(x, *maps, False, EngineContext(mask=np.ones((3, 5), bool)))


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_another_dtype_is_refused_and_not_cast(dtype):
    x, *maps = helpers.dense_heads(3, 4).arrays
    with pytest.raises(TypeError, match=f"{dtype}.*; expected"):
        dense_heads(x.astype(dtype), *maps, False, EngineContext())
