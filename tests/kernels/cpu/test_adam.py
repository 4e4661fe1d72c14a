"""Adam in pieces."""

from unittest.mock import Mock

import numpy as np
import pytest

import npformer as nf
from npformer import optim
from npformer.engine import cpu
from npformer.engine.cpu import adam, rows

WHOLE = rows.CHUNK
SIZES = [(40, n) for n in (1, 39, 40, 41, 121)] + [(WHOLE, WHOLE + n) for n in (-1, 0, 1, WHOLE)]
"""Of a piece, and of the parameters."""


def several_steps(update, size, dtype, weight_decay, steps=5):
    """Return parameter and moments after some steps of different gradients."""
    rng = np.random.default_rng(size)
    theta, m, v = rng.normal(size=size).astype(dtype), *np.zeros((2, size), dtype)
    for t in range(1, steps + 1):
        g = (10.0 ** rng.uniform(-6, 2, size) * rng.normal(size=size)).astype(dtype)
        g[rng.random(size) < 0.1] = 0.0
        original_g = g.copy()
        update(
            theta, g, m, v, betas=(0.9, 0.999), t=t, lr=1e-2, eps=1e-8, weight_decay=weight_decay
        )
        np.testing.assert_array_equal(g, original_g)
    return theta, m, v


@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-14), ("float32", 1e-6)])
@pytest.mark.parametrize(("chunk_size", "size"), SIZES)
def test_steps_are_those_of_the_plain_update(
    monkeypatch, chunk_size, size, dtype, bound, weight_decay
):
    monkeypatch.setattr(rows, "CHUNK", chunk_size)
    ours = several_steps(adam.adam_update_kernel, size, dtype, weight_decay)
    plain = several_steps(optim.adam_update, size, dtype, weight_decay)
    for one, other in zip(ours, plain, strict=True):
        assert one.dtype == dtype
        np.testing.assert_allclose(one, other, rtol=bound, atol=bound)


def test_only_the_entries_of_views_are_updated():
    wide = np.ones((4, 200))
    theta, g, m, v = (row[::2] for row in wide)
    wide[2:] = 0.0
    adam.adam_update_kernel(theta, g, m, v, t=2, lr=0.1, betas=(0.5, 0.5), eps=1e-8)
    np.testing.assert_allclose(theta, 1.0 - 0.1 * (0.5 / 0.75) / (0.5 / 0.75) ** 0.5)
    np.testing.assert_array_equal(wide[:2, 1::2], 1.0)
    np.testing.assert_array_equal(wide[2:, 1::2], 0.0)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_a_model_takes_the_same_steps_in_both(small_model, token_batch, weight_decay, monkeypatch):
    update = Mock(wraps=adam.adam_update_kernel)
    monkeypatch.setitem(cpu.UPDATES, "adam_update", update)
    weights = []
    for enabled in (True, False):
        model = small_model()
        optimizer = nf.Adam(model.parameters(), lr=1e-2, weight_decay=weight_decay)
        with nf.use_kernels(enabled):
            for _ in range(4):
                optimizer.step(model.loss_and_gradients(*token_batch)[1])
        weights.append(model.parameters().flat.copy())
    np.testing.assert_allclose(*weights, rtol=0, atol=1e-10)
    assert update.call_count == 4
