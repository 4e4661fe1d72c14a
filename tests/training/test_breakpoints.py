"""With kernels off, a breakpoint in each public function that a model uses stops in a training."""

import numpy as np
import pytest

import npformer as nf
from benchmarks.shape import run_by
from npformer import functional
from npformer.optim.adam import adam_update

PAIRS = [
    "embedding",
    "linear",
    "softmax",
    "scaled_dot_product_attention",
    "layer_norm",
    "gelu",
    "dropout",
    "mean_pooling",
    "softmax_cross_entropy",
]

FUNCTIONS = {name: getattr(functional, name) for name in PAIRS}
FUNCTIONS |= {f"{name}_backward": getattr(functional, f"{name}_backward") for name in PAIRS}
FUNCTIONS["adam_update"] = adam_update


@pytest.fixture(scope="module")
def codes():
    """Return the code of all functions that one step of `fit` runs."""
    config = nf.EncoderConfig(
        d_model=8,
        n_layers=1,
        n_heads=2,
        d_ff=16,
        max_len=6,
        mixer="attention",
        activation="gelu",
        dropout=0.1,
    )
    model = nf.SequenceClassifier(config, n_classes=3, vocab_size=5, pooling="mean", seed=0)
    rng = np.random.default_rng(0)
    ids, labels = rng.integers(0, 5, (8, 6)), rng.integers(0, 3, 8)
    with nf.use_kernels(False):
        calls = run_by(
            lambda: nf.fit(model, (ids, labels), epochs=1, batch_size=8, seed=0, progress=False)
        )
    return set(calls.deepest)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_runs_in_a_training(codes, name):
    assert FUNCTIONS[name].__code__ in codes


def test_what_the_model_does_not_use_does_not_run(codes):
    assert functional.rms_norm.__code__ not in codes
