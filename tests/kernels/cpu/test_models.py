"""Whole models: the same loss and gradients with kernels and without."""

from unittest.mock import Mock

import numpy as np
import pytest

import npformer as nf
from npformer.engine import fast_layers
from npformer.engine.cpu import KERNELS
from npformer.engine.cpu.embedding import add_to_rows
from npformer.layers import ACTIVATIONS


def assert_equal_on_and_off(model, batch, bound=1e-12, **options):
    loss, gradients = model.loss_and_gradients(*batch, **options)
    with nf.use_kernels(False):
        plain, plain_gradients = model.loss_and_gradients(*batch, **options)
    assert loss == pytest.approx(plain, rel=bound)
    largest = np.abs(plain_gradients.flat).max()
    for name, gradient in plain_gradients.items():
        np.testing.assert_allclose(
            gradients[name], gradient, rtol=0, atol=bound * largest, err_msg=name
        )
    inputs = (batch[0], batch[2], *([options["types"]] if "types" in options else []))
    logits = model(*inputs)
    with nf.use_kernels(False):
        np.testing.assert_allclose(logits, model(*inputs), rtol=0, atol=10 * bound)


@pytest.mark.parametrize("masked", [True, False], ids=["padded", "full"])
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("mixer", nf.MIXERS)
def test_every_mixer(small_model, token_batch, mixer, norm, masked):
    x, y, mask = token_batch
    model = small_model(mixer=mixer, norm=norm, padding="per_length", max_len=9)
    assert_equal_on_and_off(model, (x, y, mask if masked else None))


@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("n_heads", [1, 4])
@pytest.mark.parametrize("mixer", ["attention", "dense_synthesizer"])
def test_every_number_of_heads(small_model, token_batch, mixer, n_heads, causal):
    assert_equal_on_and_off(small_model(mixer=mixer, n_heads=n_heads, causal=causal), token_batch)


@pytest.mark.parametrize("ffn", ["linear", "conv1d"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_and_both_networks(small_model, token_batch, activation, ffn):
    assert_equal_on_and_off(small_model(activation=activation, ffn=ffn), token_batch)


@pytest.mark.parametrize(
    "changes",
    [
        {"memory": "blocks"},
        {"share_layers": True, "positions": "learned"},
        {"embedding_norm": True, "embedding_projection": True, "norm_eps": 1e-12},
        {"scale_embeddings": False, "positions": "none"},
        {"ffn": "none"},
        {"ffn": "none", "norm": "pre", "dropout": 0.3},
        {"pooling": "first"},
        {"pooling": "flatten"},
        {"pooling": "pooler"},
        {"n_classes": 2, "output": "sigmoid"},
        *(
            {"dropout": 0.3, "norm": norm, "mixer": mixer, "padding": "per_length"}
            for norm in ("post", "pre")
            for mixer in ("attention", "fourier")
        ),
        {"mixer": ["fourier", "attention"], "padding": "zero"},
    ],
    ids=str,
)
def test_every_part_of_a_configuration(small_model, token_batch, changes):
    x, y, mask = token_batch
    model = small_model(**changes)
    labels = np.minimum(y, model.n_classes - 1)
    assert_equal_on_and_off(model, (x, labels, mask), seed=0, label_smoothing=0.1)


def test_a_label_for_each_token_and_token_types(small_model, token_batch, rng):
    x, _, mask = token_batch
    y, types = rng.integers(-1, 3, x.shape), rng.integers(0, 2, x.shape)
    model = small_model(pooling="none", n_token_types=2)
    assert_equal_on_and_off(model, (x, y, mask), types=types)


@pytest.mark.parametrize("mixer", ["attention", "dense_synthesizer", "fourier"])
def test_vectors_whose_padding_is_nan(small_model, token_batch, rng, mixer):
    _, y, mask = token_batch
    x = rng.normal(size=(8, 6, 5))
    x[~mask] = np.nan
    model = small_model(n_features=5, mixer=mixer, padding="per_length")
    assert_equal_on_and_off(model, (x, y, mask))


@pytest.mark.parametrize("mixer", ["attention", "dense_synthesizer", "fourier"])
def test_float32_is_near(small_model, token_batch, mixer):
    model = small_model(dtype="float32", mixer=mixer, padding="per_length")
    assert_equal_on_and_off(model, token_batch, bound=1e-5)


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
    monkeypatch.setattr(fast_layers, "ROWS", 1 << 30)  # always the gradient of the whole table
    monkeypatch.setitem(add_to_rows.__globals__, "FEW", 0)
    kernels = {name: [Mock(wraps=kernel) for kernel in pair] for name, pair in KERNELS.items()}
    for name, pair in kernels.items():
        monkeypatch.setitem(KERNELS, name, tuple(pair))
    x, y, _ = token_batch
    small_model(mixer=mixer, norm=norm, dropout=0.3).loss_and_gradients(x, y, seed=0)
    for i in (0, 1):  # forward and backward
        used = {name for name, pair in kernels.items() if pair[i].called}
        assert used == USED[mixer] | ALWAYS | NORMS[norm]
