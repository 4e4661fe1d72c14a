"""The referee looks at kernels: what is broken in one, it sees."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import npformer as nf
from npformer import Encoder, EncoderConfig, GradcheckError, gradcheck
from npformer import layers as L
from npformer.engine.cpu import KERNELS
from npformer.engine.cpu.embedding import add_to_rows
from npformer.mixers import Attention, DenseSynthesizer, Fourier
from npformer.proof.complex_step import ComplexArray
from tests.kernels.cpu.helpers import CASES, DIFFERENTIABLE

BLOCK = EncoderConfig(d_model=6, n_heads=2, d_ff=4, max_len=5, mixer="identity")
BLOCK_WITH_DROPOUT = replace(BLOCK, dropout=0.3, activation="gelu")
IDS = np.array([[0, 1, 1], [3, 0, 2]])


def vectors(*shape):
    return np.random.default_rng(1).normal(size=shape)


def randomise(layer):
    """Give every parameter values that are neither 0 nor 1."""
    rng = np.random.default_rng(2)
    for value in layer.parameters().values():
        value[...] = 0.5 * rng.normal(size=value.shape)
    return layer


MASK = np.arange(5) < np.array([5, 3])[:, None]
LAYERS = {
    "linear": (lambda: L.Linear(4, 3, seed=0, dtype="float64"), vectors(2, 5, 4), {}),
    "layer_norm": (lambda: L.LayerNorm(4, dtype="float64"), vectors(2, 5, 4), {}),
    "rms_norm": (lambda: L.RMSNorm(4, dtype="float64"), vectors(2, 5, 4), {}),
    "gated_feed_forward": (
        lambda: L.GatedFeedForward(4, 7, seed=0, dtype="float64"),
        vectors(2, 5, 4),
        {},
    ),
    "embedding": (lambda: L.Embedding(4, 3, seed=0, dtype="float64"), IDS, {}),
    "dropout": (lambda: L.Dropout(0.3), vectors(2, 5, 4), {"training": True}),
    "feed_forward": (
        lambda: L.PositionwiseFeedForward(4, 7, "gelu", seed=0, dtype="float64"),
        vectors(2, 5, 4),
        {},
    ),
    "fourier_mixing": (lambda: Fourier(), vectors(2, 5, 4), {}),
    "residual_norm": (
        lambda: Encoder(BLOCK_WITH_DROPOUT, dtype="float64").blocks[0],
        vectors(2, 5, 6),
        {"training": True},
    ),
    "attention_heads": (
        lambda: Attention(6, 2, causal=True, seed=0, dtype="float64"),
        vectors(2, 5, 6),
        {"mask": MASK},
    ),
    "dense_heads": (
        lambda: DenseSynthesizer(6, 2, 5, causal=True, seed=0, dtype="float64"),
        vectors(2, 5, 6),
        {"mask": MASK},
    ),
}
"""For each kernel a layer that is made of it: maker, input, options of `gradcheck`."""

GRADIENTS = {case.name: len(case.arrays) for case in (CASES[name] for name in LAYERS)}
ZERO_BY_NATURE = ("attention_heads", 4)  # of the keys' bias: the softmax does not see a shift


def check(name, max_entries=2, directions=1):
    make, x, options = LAYERS[name]
    return gradcheck(
        randomise(make()), x, max_entries=max_entries, directions=directions, **options
    )


def test_every_kernel_has_a_layer():
    losses = {"softmax_cross_entropy"}  # judged beside its pair, in test_losses
    assert set(LAYERS) == DIFFERENTIABLE - losses


@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_kernels_pass_before_both_referees(name):
    """Differences and complex steps judge the pairs, and those judge the kernels."""
    report = check(name, max_entries=40, directions=2)
    assert report.error < 1e-7
    assert report.complex_error is not None
    assert report.complex_error < 1e-11
    double, single = report.twins
    assert (double.dtype, single.dtype) == ("float64", "float32")
    assert double.error < 1e-11
    assert single.passed


def test_complex_steps_go_without_kernels_behind_ids_too():
    """What follows a table has to see complex numbers that it may not drop."""
    array_types = set()

    class Noted(L.Embedding):
        def forward(self, x, context):
            y, cache = super().forward(x, context)
            array_types.add(type(y))
            return y, cache

    gradcheck(Noted(4, 3, seed=0, dtype="float64"), IDS)
    assert array_types == {np.ndarray, ComplexArray}


@pytest.mark.parametrize(
    ("name", "i"),
    [(n, i) for n, k in GRADIENTS.items() for i in range(k) if (n, i) != ZERO_BY_NATURE],
)
def test_a_gradient_that_is_off_by_a_thousandth_is_caught(monkeypatch, name, i):
    forward, backward = KERNELS[name]

    def broken_backward(dy, cache, **options):
        gradients = backward(dy, cache, **options)
        if not isinstance(gradients, tuple):
            return 1.001 * gradients
        return tuple(1.001 * g if j == i else g for j, g in enumerate(gradients))

    monkeypatch.setitem(KERNELS, name, (forward, broken_backward))
    monkeypatch.setattr(sys.modules[add_to_rows.passes.__module__], "add_by_rows", lambda *_: False)
    with pytest.raises(GradcheckError):
        check(name)


@pytest.mark.parametrize("name", LAYERS)
def test_a_result_that_is_off_by_a_thousandth_is_caught(monkeypatch, name):
    forward, backward = KERNELS[name]

    def broken_forward(*arguments, **options):
        y, cache = forward(*arguments, **options)
        return 1.001 * y, cache

    monkeypatch.setitem(KERNELS, name, (broken_forward, backward))
    with pytest.raises(GradcheckError):
        check(name)
    with nf.use_kernels(False):
        check(name)
