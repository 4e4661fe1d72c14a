"""Losses as objects, as a model hands them labels."""

import numpy as np
import pytest

import npformer as nf
from npformer.engine import EngineContext
from npformer.models.losses import MeanSquaredError, SoftmaxCrossEntropy


@pytest.fixture
def tokens(small_model, token_batch):
    """A model that labels each token, with ids (8, 6), labels and a mask."""
    ids, _, mask = token_batch
    return small_model(pooling="none"), ids, np.arange(48).reshape(8, 6) % 3, mask


@pytest.mark.parametrize("dtype", ["float32", "float64", "bool"])
@pytest.mark.parametrize("masked", [True, False])
def test_labels_of_tokens_that_are_no_whole_numbers_are_refused(tokens, dtype, masked):
    model, ids, labels, mask = tokens
    labels = labels.astype(dtype)
    mask = mask if masked else None
    for use in (model.loss_and_gradients, lambda *some: nf.fit(model, some, progress=False)):
        with pytest.raises(TypeError, match=f"y has dtype {dtype}; expected whole numbers"):
            use(ids, labels, mask)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_labels_of_padding_count_nowhere_whatever_they_are(tokens, dtype):
    model, ids, labels, mask = tokens
    loss, gradients = model.loss_and_gradients(ids, np.where(mask, labels, -1), mask)
    other = np.where(mask, labels, 99).astype(dtype)
    other_before = other.copy()
    again, gradients_again = model.loss_and_gradients(ids, other, mask)
    assert again == loss
    np.testing.assert_array_equal(gradients_again.flat, gradients.flat)
    np.testing.assert_array_equal(other, other_before)
    evaluation = nf.evaluate(model, (ids, other, mask))
    assert (evaluation.labels, evaluation.loss) == (mask.sum(), pytest.approx(loss, rel=1e-12))


@pytest.mark.parametrize(
    ("changes", "bias", "expected"),
    [
        ({}, [20.0, 0.0, 0.0], np.log1p(2.0 * np.exp(-20.0))),
        ({"n_classes": 2, "output": "sigmoid"}, [-20.0], np.log1p(np.exp(-20.0))),
    ],
)
def test_a_loss_of_nearly_0_keeps_its_digits(small_model, token_batch, changes, bias, expected):
    """In float32, 1 + e^-20 is 1 and its logarithm 0."""
    model = small_model(dtype="float32", **changes)
    model.parameters()["classify.weight"][...] = 0.0
    model.parameters()["classify.bias"][...] = bias
    evaluation = nf.evaluate(model, (token_batch[0], np.zeros(8, dtype="int64")))
    assert evaluation.loss == pytest.approx(expected, rel=1e-6)


def test_a_given_loss_checks_the_targets_in_place_of_the_models_own(small_model, token_batch, rng):
    ids, labels, mask = token_batch
    model = small_model()
    y = rng.normal(size=(8, 3))
    loss, _ = model.loss_and_gradients(ids, y, mask, loss=MeanSquaredError())
    assert loss == pytest.approx(((model(ids, mask) - y) ** 2).mean(), rel=1e-12)
    assert nf.evaluate(model, (ids, y, mask), loss=MeanSquaredError()).loss == pytest.approx(loss)
    with pytest.raises(TypeError, match="y has dtype int64; expected float32 or float64"):
        model.loss_and_gradients(ids, labels, mask, loss=MeanSquaredError())


def test_parts_of_a_batch_weigh_as_much_as_they_have_targets_of_the_given_loss(tokens, small_model):
    _, ids, labels, mask = tokens
    model = small_model(pooling="none", output="mean_squared_error")  # which counts samples
    arguments = {"x": ids, "y": labels, "mask": mask, "loss": SoftmaxCrossEntropy()}
    loss, gradients = model.loss_and_gradients(**arguments)
    loss_in_parts, sums = model.loss_and_gradients(**arguments, micro_batch=1)
    assert loss_in_parts == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(sums.flat, gradients.flat, rtol=0, atol=1e-12)


def test_a_kernel_that_knows_no_weights_is_passed_over(rng, monkeypatch):
    from npformer.engine import fast_losses

    kernel = (lambda *arguments, **options: pytest.fail("the kernel was called"), None)
    kernels = {"softmax_cross_entropy": kernel}
    monkeypatch.setattr(fast_losses, "kernels_of", lambda backend: kernels)
    logits = rng.normal(size=(5, 3))
    labels = np.arange(5) % 3
    weights = rng.random(5)
    fast = fast_losses.fast_loss(SoftmaxCrossEntropy(0.1), "numpy", EngineContext())
    assert type(fast) is fast_losses.FastSoftmaxCrossEntropy
    plain, plain_cache = SoftmaxCrossEntropy(0.1).forward(logits, labels, weights)
    value, cache = fast.forward(logits, labels, weights)
    assert value == plain
    expected = SoftmaxCrossEntropy(0.1).backward(0.5, plain_cache)
    np.testing.assert_array_equal(fast.backward(0.5, cache), expected)
    of_classes = SoftmaxCrossEntropy(class_weight=[1.0, 2.0, 3.0])
    assert fast_losses.fast_loss(of_classes, "numpy", EngineContext()) is of_classes
