import numpy as np
import pytest

import npformer as nf
from npformer import functional as F

from .helpers import assert_close, leaf, normals, torch

N, C = 9, 4
LABELS = np.array([0, 3, 1, 1, 2, 0, 3, 3, 1])
SOME = np.where(np.arange(N) % 4 == 2, -1, LABELS)
CLASSES = np.array([0.5, 3.0, 1.25, 0.1])
SAMPLES = np.array([1.0, 0.0, 2.5, 0.3, 1.0, 7.0, 0.0, 0.1, 1.0])


def assert_same(loss, backward, cache, expected, leaves):
    assert_close(loss, expected)
    assert_close(backward(0.37, cache), torch.autograd.grad(0.37 * expected, leaves)[0])


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("labels", [LABELS, SOME], ids=["all", "some"])
@pytest.mark.parametrize("shape", [(N,), (3, 3)], ids=str)
def test_class_weights_are_those_of_cross_entropy_loss(shape, labels, smoothing):
    (logits,) = normals((N, C))
    theirs = leaf(logits)
    options = {"ignore_index": -1, "label_smoothing": smoothing}
    criterion = torch.nn.CrossEntropyLoss(torch.tensor(CLASSES), **options)
    expected = criterion(theirs, torch.tensor(labels))
    options = {"label_smoothing": smoothing, "class_weights": CLASSES}
    ours = logits.reshape(*shape, C)
    loss, cache = F.softmax_cross_entropy(ours, labels.reshape(shape), **options)
    assert_close(loss, expected)
    dlogits = F.softmax_cross_entropy_backward(1.0, cache).reshape(N, C)
    assert_close(dlogits, torch.autograd.grad(expected, theirs)[0])


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("classes", [None, CLASSES], ids=["samples", "samples and classes"])
def test_sample_weights_make_a_weighted_mean_of_cross_entropies(classes, smoothing):
    (logits,) = normals((N, C))
    theirs = leaf(logits)
    labels = torch.tensor(LABELS)
    w = None if classes is None else torch.tensor(classes)
    losses = torch.nn.functional.cross_entropy(
        theirs, labels, w, reduction="none", label_smoothing=smoothing
    )
    s = torch.tensor(SAMPLES)
    counts = s if w is None else s * w[labels]
    expected = (s * losses).sum() / counts.sum()
    loss, cache = F.softmax_cross_entropy(logits, LABELS, smoothing, SAMPLES, classes)
    assert_same(loss, F.softmax_cross_entropy_backward, cache, expected, theirs)


def test_sample_weights_of_two_classes_with_one_logit():
    (z,) = normals((N, 1))
    targets = (LABELS > 1).astype("float64")[:, None]
    theirs = leaf(z)
    weight = torch.tensor(SAMPLES[:, None])
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        theirs, torch.tensor(targets), weight, reduction="sum"
    )
    expected = expected / weight.sum()
    loss, cache = F.binary_cross_entropy_with_logits(z, targets, SAMPLES[:, None])
    assert_same(loss, F.binary_cross_entropy_with_logits_backward, cache, expected, theirs)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("samples", [None, SAMPLES], ids=["classes", "samples and classes"])
def test_one_logit_with_class_weights_is_two_logits_of_which_one_is_0(samples, smoothing):
    """PyTorch smooths no labels of a single logit; a softmax of (0, z) is the same."""
    (z,) = normals((N, 1))
    labels = (LABELS > 1).astype("int64")
    w = np.array([0.2, 3.0])
    theirs = leaf(z)
    two_logits = torch.cat((torch.zeros_like(theirs), theirs), dim=1)
    losses = torch.nn.functional.cross_entropy(
        two_logits,
        torch.tensor(labels),
        torch.tensor(w),
        reduction="none",
        label_smoothing=smoothing,
    )
    s = torch.tensor(np.ones(N) if samples is None else samples)
    expected = (s * losses).sum() / (s * torch.tensor(w[labels])).sum()
    targets = labels[:, None] * (1.0 - smoothing) + 0.5 * smoothing
    weights = None if samples is None else samples[:, None]
    loss, cache = F.binary_cross_entropy_with_logits(z, targets, weights, w)
    assert_same(loss, F.binary_cross_entropy_with_logits_backward, cache, expected, theirs)


def test_weights_of_rows_in_the_mean_squared_error():
    prediction, target = normals((N, 2, 3), (N, 2, 3))
    weights = np.abs(normals((N, 2))[0])
    weights[3] = 0.0
    theirs = leaf(prediction)
    s = torch.tensor(weights)[..., None]
    expected = (s * (theirs - torch.tensor(target)) ** 2).sum() / (s.sum() * 3)
    loss, cache = F.mean_squared_error(prediction, target, weights)
    assert_same(loss, F.mean_squared_error_backward, cache, expected, theirs)


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("micro_batch", [None, 2])
@pytest.mark.parametrize("per_token", [False, True])
def test_a_models_weighted_step_is_pytorchs(small_model, rng, workers, micro_batch, per_token):
    """However the batch is shared; the gradient of the last bias is that of the logits, summed."""
    model = small_model(pooling="none" if per_token else "mean")
    ids = rng.integers(0, 7, (10, 6))
    shape = (10, 6) if per_token else (10,)
    labels = rng.integers(0, 3, shape)
    weights = rng.random(shape)
    weights[:4] = 0.0
    if per_token:
        labels[:, 4:] = -1
    theirs = leaf(model(ids).reshape(-1, 3))
    w = torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64)
    y, s = torch.tensor(labels.ravel()), torch.tensor(weights.ravel())
    options = {"ignore_index": -1, "reduction": "none", "label_smoothing": 0.1}
    losses = torch.nn.functional.cross_entropy(theirs, y, w, **options)
    counts = torch.where(y >= 0, s * w[y.clamp(min=0)], 0.0)
    expected = (s * losses).sum() / counts.sum()
    options = {"sample_weight": weights, "workers": workers, "micro_batch": micro_batch}
    options["loss"] = nf.losses.SoftmaxCrossEntropy(0.1, [0.5, 2.0, 1.0])
    loss, gradients = model.loss_and_gradients(ids, labels, **options)
    assert loss == pytest.approx(float(expected.detach()), rel=1e-12)
    of_logits = torch.autograd.grad(expected, theirs)[0].sum(dim=0)
    assert_close(gradients["classify.bias"], of_logits)
