"""One file with NumPy alone computes what npformer computes, and learns the digits."""

import ast

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import npformer as nf
from tests.examples.conftest import EXAMPLES, example, pairs

whole = example("whole_encoder")
TEXT = (EXAMPLES / "whole_encoder.py").read_text("utf-8")

D, D_FF, H = 16, 24, 4


@pytest.fixture
def weights():
    """A small encoder whose norms and biases do something."""
    rng = np.random.default_rng(0)
    w = whole.make_weights(rng, d=D, d_ff=D_FF)
    for arrays in w.values():
        for array in arrays:
            array += 0.1 * rng.normal(size=array.shape)
    return w


@pytest.fixture
def batch():
    (x, labels), _ = whole.digits()
    return x[:6], labels[:6]


def name_in_npformer(name):
    """Return a layer's name: "block 1 expand" -> "encoder.blocks.1.feed_forward.expand"."""
    if not name.startswith("block "):
        return {"embed": "embed.tokens", "positions": "embed.positions"}.get(name, name)
    _, number, part = name.split(" ")
    within = {"expand": "feed_forward.", "contract": "feed_forward."}
    within |= dict.fromkeys(("query", "key", "value", "output"), "mixer.")
    return f"encoder.blocks.{number}.{within.get(part, '')}{part}"


def test_the_same_weights_give_the_loss_and_the_gradients_of_npformer(weights, batch):
    x, labels = batch
    sizes = {"d_model": D, "n_layers": 2, "n_heads": H, "d_ff": D_FF, "max_len": 8}
    config = nf.EncoderConfig(**sizes, positions="learned", activation="gelu_tanh")
    model = nf.SequenceClassifier(
        config, n_classes=10, n_features=8, pooling="flatten", dtype="float64"
    )
    parameters = model.parameters()
    for full, array in pairs(weights, parameters, name_in_npformer):
        parameters[full][...] = array
    loss, g = whole.loss_and_gradients(weights, x, labels, H)
    with nf.use_kernels(False):
        loss_of_model, gradients = model.loss_and_gradients(x, labels)
    np.testing.assert_allclose(loss, loss_of_model, rtol=1e-12)
    largest = max(abs(gradients[name]).max() for name in gradients)
    for full, array in pairs(g, gradients, name_in_npformer):
        np.testing.assert_allclose(
            array, gradients[full], rtol=0, atol=1e-12 * largest, err_msg=full
        )


def test_its_gradient_check_passes(weights, batch):
    assert whole.check_gradients(weights, *batch, H) < 1e-8


@pytest.mark.parametrize(
    "pair", ["linear", "layer_norm", "gelu", "attention"], ids=lambda pair: f"{pair}_backward"
)
def test_its_gradient_check_notices_a_wrong_backward_pass(weights, batch, pair, monkeypatch):
    right = getattr(whole, f"{pair}_backward")

    def wrong(dy, cache):
        gradients = right(dy, cache)
        return gradients * 1.01 if pair == "gelu" else (gradients[0] * 1.01, *gradients[1:])

    monkeypatch.setattr(whole, f"{pair}_backward", wrong)
    assert whole.check_gradients(weights, *batch, H) > 1e-6


def test_the_split_is_that_of_the_package():
    dataset = nf.data.digits("stratified", dtype="float64")
    (x, labels), (x_test, labels_test) = whole.digits()
    np.testing.assert_array_equal(x_test, dataset.test[0])
    np.testing.assert_array_equal(labels_test, dataset.test[1])
    assert len(x) == len(labels) == len(dataset.train[0]) + len(dataset.validation[0])
    assert sorted(map(bytes, x)) == sorted(
        map(bytes, np.concatenate([dataset.train[0], dataset.validation[0]]))
    )


@pytest.mark.slow
def test_it_learns_the_digits(capsys):
    with threadpool_limits(limits=1, user_api="blas"):  # threads gain nothing in small products
        weights = whole.train()
    lines = capsys.readouterr().out.splitlines()
    assert float(lines[0].removeprefix("largest error of a gradient: ")) < 1e-8
    assert [line[:8] for line in lines[1:-1]] == [f"epoch {n:2}" for n in range(1, len(lines) - 1)]
    _, test = whole.digits()
    assert lines[-1] == f"test accuracy {whole.accuracy(weights, *test, 4):.4f}"
    assert float(lines[-1].split()[-1]) >= 0.97


def test_it_is_one_sitting_and_imports_numpy_alone():
    assert len(TEXT.splitlines()) <= 250
    imported = set()
    for node in ast.walk(ast.parse(TEXT)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module)
    assert imported == {"numpy", "pathlib"}  # pathlib finds the file of the digits
