"""Whole models of kernels. That they compute what the plain passes do, gradcheck's cases show."""

import sys
from unittest.mock import Mock

import numpy as np
import pytest

import npformer as nf
from npformer.engine.cpu import KERNELS
from npformer.engine.cpu.embedding import add_to_rows


@pytest.mark.parametrize("mixer", ["attention", "dense_synthesizer", "fourier"])
def test_vectors_whose_padding_is_nan(small_model, token_batch, rng, mixer):
    _, y, mask = token_batch
    x = rng.normal(size=(8, 6, 5))
    x[~mask] = np.nan
    model = small_model(n_features=5, mixer=mixer, padding="per_length")
    loss, gradients = model.loss_and_gradients(x, y, mask)
    with nf.use_kernels(False):
        plain, plain_gradients = model.loss_and_gradients(x, y, mask)
    assert loss == pytest.approx(plain, rel=1e-12)
    bound = 1e-12 * np.abs(plain_gradients.flat).max()
    np.testing.assert_allclose(gradients.flat, plain_gradients.flat, rtol=0, atol=bound)


ALWAYS = {"embedding", "feed_forward", "linear", "dropout"}
NORMS = {"post": {"residual_norm"}, "pre": {"layer_norm"}}
USED = {
    "attention": {"attention_heads"},
    "dense_synthesizer": {"dense_heads"},
    "fourier": {"fourier_mixing"},
    "identity": set(),
}


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("mixer", USED)
def test_a_model_is_made_of_these_kernels(small_model, token_batch, monkeypatch, mixer, norm):
    monkeypatch.setattr(sys.modules[add_to_rows.passes.__module__], "add_by_rows", lambda *_: False)
    kernels = {name: [Mock(wraps=kernel) for kernel in pair] for name, pair in KERNELS.items()}
    for name, pair in kernels.items():
        monkeypatch.setitem(KERNELS, name, tuple(pair))
    x, y, _ = token_batch
    small_model(mixer=mixer, norm=norm, dropout=0.3).loss_and_gradients(x, y, seed=0)
    for i in (0, 1):  # forward and backward
        called_kernels = {name for name, pair in kernels.items() if pair[i].called}
        assert called_kernels == USED[mixer] | ALWAYS | NORMS[norm]
