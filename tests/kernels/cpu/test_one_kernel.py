"""What holds for a layer norm, a feed-forward network, or an embedding alone."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer.engine import EngineContext
from npformer.engine.cpu.activations import ACTIVATIONS
from npformer.engine.cpu.embedding import add_to_rows, embedding, embedding_backward
from npformer.engine.cpu.norms import layer_norm, norm_backward
from tests.kernels import helpers
from tests.kernels.cpu.helpers import assert_close, expected, forward, run


# Layer norm ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [helpers.layer_norm, helpers.residual_norm])
@pytest.mark.parametrize("mean", [0.0, 1e4, 1e6, -1e6])
def test_a_large_mean_costs_no_digits(make, mean):
    case = make((101, 257))
    # Multiples of 1/16, so that float32 has the sums of a residual connection as they are.
    rows = [np.round(16.0 * a) / 16.0 for a in case.arrays[:-2]]
    case = replace(case, arrays=(mean + rows[0], *rows[1:], *case.arrays[-2:]), training=False)
    for ours, exact in zip(run(case, "float32"), expected(case, "float32"), strict=True):
        np.testing.assert_allclose(ours, exact, rtol=0, atol=3e-6 * max(np.abs(exact).max(), 1.0))


CONSTANTS = 0.1, -7.0 / 3.0, 12345.678, 1e6 / 3.0, 1e30 / 7.0
widths_of_rows = pytest.mark.parametrize("d", [1, 2, 3, 7, 64, 257, 768, 4097])


def norm_of_constant_rows(constant, d):
    """Return beta, and the output and the cache of a layer norm of constant rows."""
    gamma, beta = (a.astype("float32") for a in helpers.normals((d,), (d,)))
    x = np.full((3, d), constant, "float32")
    y, cache = layer_norm(x, gamma, beta, 1e-12, context=EngineContext())
    return beta, y, cache


@widths_of_rows
def test_the_norm_of_a_constant_row_is_beta(d):
    for constant in CONSTANTS:
        beta, y, _ = norm_of_constant_rows(constant, d)
        np.testing.assert_array_equal(y, np.broadcast_to(beta, y.shape))


@widths_of_rows
def test_a_constant_row_has_finite_gradients(d):
    for constant in CONSTANTS:
        _, y, cache = norm_of_constant_rows(constant, d)
        assert all(np.isfinite(g).all() for g in norm_backward(y, cache))


# The feed-forward network -------------------------------------------------------------------------
each_activation = pytest.mark.parametrize("activation", sorted(nf.layers.ACTIVATIONS))


def test_there_is_a_kernel_for_each_activation():
    assert set(ACTIVATIONS) == set(nf.layers.ACTIVATIONS)


@each_activation
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_without_a_backward_pass_y_is_right_in_pieces(activation, chunk_size, dtype):
    case = helpers.feed_forward((2, 7, 16), 23, activation)
    y, _ = forward(case, tuple(a.astype(dtype) for a in case.arrays), case.context(keep=False))
    assert_close([y], expected(case, dtype)[:1], 1e-12 if dtype == "float64" else 5e-6)


@each_activation
def test_huge_activations_give_no_warning(activation):
    """x^12 overflows in float32 long before x does."""
    ours = run(helpers.feed_forward((5, 16), 23, activation, 1e9), "float32")
    assert all(np.isfinite(a).all() for a in ours)


# The embedding ------------------------------------------------------------------------------------
def test_ids_of_any_layout(rng):
    ids = rng.integers(0, 5, (6, 8))[::2, ::-1]
    table, dy = rng.normal(size=(5, 3)), rng.normal(size=(3, 8, 3))
    ids.flags.writeable = table.flags.writeable = False
    y, cache = embedding(ids, table, context=EngineContext())
    np.testing.assert_array_equal(y, table[ids])
    expected = F.embedding_backward(dy, F.embedding(ids, table)[1])
    np.testing.assert_allclose(embedding_backward(dy, cache), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 40, 300])
def test_rows_get_the_bits_of_the_whole_tables_gradient(rng, monkeypatch, n, dtype):
    ids, dy = rng.integers(0, 60, (3, n))[::-1], rng.normal(size=(3, n, 5)).astype(dtype)
    _, cache = embedding(ids, np.ones((60, 5), dtype), context=EngineContext())
    dtable = embedding_backward(dy, cache)
    for few in (0, 1 << 30):
        monkeypatch.setattr(sys.modules[embedding.__module__], "FEW", few)
        total = np.zeros((60, 5), dtype)
        add_to_rows(total, ids.reshape(-1), dy.reshape(-1, 5))
        np.testing.assert_array_equal(total, dtable)


def test_the_gradient_is_an_array_of_its_own(rng):
    dy = rng.normal(size=(5, 3))
    _, cache = embedding(np.arange(5), np.ones((5, 3)), context=EngineContext())
    dtable = embedding_backward(dy, cache)
    assert type(dtable) is np.ndarray
    assert not np.shares_memory(dtable, dy)
    np.testing.assert_array_equal(dtable, dy)


WAYS = {"whole table": (1 << 30, 0), "sums of rows": (0, 0), "row by row": (0, 1 << 30)}
"""Of an embedding's gradient: `ROWS` and `FEW`."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scale", [True, False])
def test_a_layer_adds_to_the_rows_that_were_looked_up(rng, monkeypatch, way, scale):
    module = sys.modules[embedding.__module__]
    for name, value in zip(("ROWS", "FEW"), WAYS[way], strict=True):
        assert 0 < getattr(module, name) < 1 << 30
        monkeypatch.setattr(module, name, value)
    layer = nf.layers.Embedding(11, 3, scale=scale, seed=0, dtype="float64")
    ids, dy = rng.integers(0, 11, (5, 7)), rng.normal(size=(5, 7, 3))
    fast_gradients, plain_gradients = nf.Gradients(layer), nf.Gradients(layer)
    for _ in range(2):  # what is there stays
        for of, gradients in ((nf.fast(layer), fast_gradients), (layer, plain_gradients)):
            of.backward(dy, of.forward(ids, nf.Context())[1], gradients)
    np.testing.assert_allclose(fast_gradients.flat, plain_gradients.flat, rtol=0, atol=1e-13)
    layer.weight.trainable = False
    twin = nf.fast(layer)
    twin.backward(dy, twin.forward(ids, nf.Context())[1], nf.Gradients(layer))
