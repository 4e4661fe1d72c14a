"""One file with NumPy alone computes what npformer computes, and learns the digits."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import npformer as nf
from tests.examples import conftest as common
from tests.examples.conftest import EXAMPLES, example

encoder = example("whole_encoder")
TEXT = (EXAMPLES / "whole_encoder.py").read_text("utf-8")

D, D_FF, H = 16, 24, 4


@pytest.fixture
def weights():
    """A small encoder whose norms and biases do something."""
    rng = np.random.default_rng(0)
    return common.moved(encoder.make_weights(rng, d=D, d_ff=D_FF), rng, 0.1)


@pytest.fixture
def batch():
    (x, labels), _ = encoder.digits()
    return x[:6], labels[:6]


def name_in_npformer(name):
    """Return a layer's name: "block 1 expand" -> "encoder.blocks.1.feed_forward.expand"."""
    if not name.startswith("block "):
        return {"embed": "embed.tokens", "positions": "embed.positions"}.get(name, name)
    _, number, layer = name.split(" ")
    within = {"expand": "feed_forward.", "contract": "feed_forward."}
    within |= dict.fromkeys(("query", "key", "value", "output"), "mixer.")
    return f"encoder.blocks.{number}.{within.get(layer, '')}{layer}"


def test_the_same_weights_give_the_gradients_of_npformer(weights, batch):
    x, labels = batch
    config = nf.EncoderConfig(
        d_model=D,
        n_layers=2,
        n_heads=H,
        d_ff=D_FF,
        max_len=8,
        positions="learned",
        activation="gelu_tanh",
    )
    model = nf.SequenceClassifier(
        config, n_classes=10, n_features=8, pooling="flatten", dtype="float64"
    )
    common.add_weights(model, weights, name_in_npformer)
    loss, g = encoder.loss_and_gradients(weights, x, labels, H)
    common.assert_agree(loss, g, model, (x, labels), name_in_npformer)


@pytest.mark.parametrize("pair", ["linear", "layer_norm", "gelu", "attention"])
def test_its_gradient_check_notices_a_wrong_backward_pass(weights, batch, pair, monkeypatch):
    common.assert_check_notices(pair, encoder, weights, batch, H, monkeypatch)


def test_the_split_is_that_of_the_package():
    dataset = nf.data.digits("stratified", dtype="float64")
    (x, labels), (x_test, labels_test) = encoder.digits()
    np.testing.assert_array_equal(x_test, dataset.test[0])
    np.testing.assert_array_equal(labels_test, dataset.test[1])
    assert len(x) == len(labels) == len(dataset.train[0]) + len(dataset.validation[0])
    images = np.concatenate([dataset.train[0], dataset.validation[0]])
    assert sorted(map(bytes, x)) == sorted(map(bytes, images))


@pytest.mark.slow
def test_it_learns_the_digits(capsys):
    with threadpool_limits(limits=1, user_api="blas"):  # threads gain nothing in small products
        weights = encoder.train()
    lines = capsys.readouterr().out.splitlines()
    assert float(lines[0].removeprefix("largest error of a gradient: ")) < 1e-8
    assert [line[:8] for line in lines[1:-1]] == [f"epoch {n:2}" for n in range(1, len(lines) - 1)]
    _, test = encoder.digits()
    assert lines[-1] == f"test accuracy {encoder.accuracy(weights, *test, 4):.4f}"
    assert float(lines[-1].split()[-1]) >= 0.97


def test_it_can_be_read_in_one_sitting():
    assert len(TEXT.splitlines()) <= 255


def test_it_imports_numpy_alone():
    """Two modules of Python find the file of the digits, and limit the threads."""
    assert common.imported_by(TEXT) == {"numpy", "os", "pathlib"}
