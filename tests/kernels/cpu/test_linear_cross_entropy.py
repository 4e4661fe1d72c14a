"""The loss of logits that are a linear map, beside the pairs that one kernel replaces."""

import numpy as np
import pytest

from npformer import functional as F
from npformer.engine import EngineContext, Workspace
from npformer.engine.cpu import linear_cross_entropy as kernel
from npformer.proof.central_difference import central_difference
from tests.kernels.cpu.helpers import DOUBLE, SINGLE, assert_close, assert_same
from tests.kernels.cpu.test_memory import peak_of, trace_memory

D_IN, N_CLASSES, DLOSS = 5, 11, 0.25


@pytest.fixture(params=[(768, 1 << 20), (4, 30), (1, 1)], ids=["whole", "blocks of 4", "single"])
def _blocks(request, monkeypatch):
    """Set the rows of a block, and the entries of dW that are added at a time."""
    monkeypatch.setattr(kernel, "ROWS", request.param[0])
    monkeypatch.setattr(kernel, "PRODUCT", request.param[1])


blocks = pytest.mark.usefixtures("_blocks")
smoothings = pytest.mark.parametrize("smoothing", [0.0, 0.1])
biases = pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
layouts = pytest.mark.parametrize("transposed", [False, True], ids=["map", "transposed table"])


def arrays(dtype="float64", shape=(3, 7), bias=True, transposed=False):
    """Return x, W and b; W is the transpose of a table if `transposed`."""
    rng = np.random.default_rng(0)
    x, b = rng.normal(size=(*shape, D_IN)).astype(dtype), rng.normal(size=N_CLASSES).astype(dtype)
    W = rng.normal(size=(D_IN, N_CLASSES)).astype(dtype)
    return x, np.asfortranarray(W) if transposed else W, b if bias else None


def labels_of(shape=(3, 7)):
    """Return labels; every third is none."""
    labels = np.random.default_rng(1).integers(0, N_CLASSES, shape)
    labels.flat[1::3] = F.NO_LABEL
    return labels


def run(x, W, b, labels, smoothing=0.0, **options):
    """Return the loss and the gradients of x, W and, if there is one, b."""
    dW, db = np.zeros_like(W), None if b is None else np.zeros_like(b)
    context = EngineContext(**options)
    loss, dx = kernel.linear_cross_entropy(
        x, W, b, labels, smoothing, DLOSS, dW, db, context=context
    )
    return [loss, dx, dW] if b is None else [loss, dx, dW, db]


def run_pairs(x, W, b, labels, smoothing=0.0):
    """Return what `run` returns, by the functional pairs."""
    logits, linear_cache = F.linear(x, W, b)
    loss, loss_cache = F.softmax_cross_entropy(logits, labels, smoothing)
    dlogits = F.softmax_cross_entropy_backward(DLOSS, loss_cache)
    return [loss, *F.linear_backward(dlogits, linear_cache)]


@blocks
@smoothings
@biases
@layouts
@pytest.mark.parametrize(("dtype", "bound"), [("float64", DOUBLE), ("float32", SINGLE)])
def test_loss_and_gradients_are_those_of_the_pairs(smoothing, bias, transposed, dtype, bound):
    case_arrays = arrays(dtype, bias=bias, transposed=transposed)
    assert_close(
        run(*case_arrays, labels_of(), smoothing),
        run_pairs(*case_arrays, labels_of(), smoothing),
        bound,
    )


@blocks
@pytest.mark.parametrize("shape", [(1,), (9,), (2, 3, 4), (0, 5)])
def test_rows_of_any_shape(shape):
    ours = run(*arrays(shape=shape), labels_of(shape))
    assert_close(ours, run_pairs(*arrays(shape=shape), labels_of(shape)), DOUBLE)


@blocks
@layouts
@pytest.mark.parametrize("threads", [2, 3])
def test_threads_that_share_a_call_change_no_number(transposed, threads):
    x, W, b = arrays(transposed=transposed)
    ours = run(x, W, b, labels_of(), threads=threads)
    assert_close(ours, run_pairs(x, W, b, labels_of()), DOUBLE)


@blocks
def test_lent_memory_changes_no_bit(monkeypatch):
    monkeypatch.setattr("npformer.engine.workspace.SMALL", 64)
    workspace, alone = Workspace(), run(*arrays(), labels_of())
    for _ in range(3):
        assert_same(run(*arrays(), labels_of(), workspace=workspace), alone)
    assert workspace.n_bytes > 0


@blocks
@smoothings
@pytest.mark.parametrize("index", [0, 1, 2], ids=["x", "W", "b"])
def test_gradients_are_central_differences(smoothing, index):
    x, W, b = arrays()
    array = (x, W, b)[index]
    gradient = run(x, W, b, labels_of(), smoothing)[1 + index]
    u = np.random.default_rng(2).normal(size=array.shape)
    slopes = central_difference(lambda: run(x, W, b, labels_of(), smoothing)[0], array, u)
    assert (gradient * u).sum() == pytest.approx(DLOSS * slopes.central, rel=1e-7)


@blocks
@layouts
def test_gradients_are_added_to_those_before(transposed):
    x, W, b = arrays(transposed=transposed)
    _, _, dW, db = run(x, W, b, labels_of())
    dW_before, db_before = np.ones_like(W), np.full_like(b, 2.0)
    kernel.linear_cross_entropy(
        x, W, b, labels_of(), 0.0, DLOSS, dW_before, db_before, context=EngineContext()
    )
    assert_close([dW_before, db_before], [dW + 1.0, db + 2.0], DOUBLE)


@blocks
@pytest.mark.parametrize("index", [0, 1], ids=["W", "b"])
def test_a_gradient_can_be_left_out(index):
    x, W, b = arrays()
    loss, dx, *expected = run(x, W, b, labels_of())
    gradients = [np.zeros_like(W), np.zeros_like(b)]
    gradients[index], expected[index] = None, np.zeros(())
    results = kernel.linear_cross_entropy(
        x, W, b, labels_of(), 0.0, DLOSS, *gradients, context=EngineContext()
    )
    gradients[index] = np.zeros(())
    assert_same([*results, *gradients], [loss, dx, *expected])


@blocks
def test_no_argument_changes():
    case_arrays = arrays()
    for array in case_arrays:
        array.flags.writeable = False
    labels = labels_of()
    labels.flags.writeable = False
    run(*case_arrays, labels)
    assert_same([*case_arrays, labels], [*arrays(), labels_of()])


@blocks
@smoothings
def test_without_any_label_everything_is_0(smoothing):
    for result in run(*arrays(), np.full((3, 7), F.NO_LABEL), smoothing):
        np.testing.assert_array_equal(result, 0.0)


@blocks
@pytest.mark.parametrize("label", [0, F.NO_LABEL])
def test_nan_in_a_row_shows_as_with_the_pairs(label):
    x, W, b = arrays()
    labels = labels_of()
    x[1, 2], labels[1, 2] = np.nan, label
    ours, theirs = run(x, W, b, labels), run_pairs(x, W, b, labels)
    assert np.isnan(ours[0]) == (label == 0)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "labels",
    [labels_of()[:, :2], labels_of() + 20, labels_of() - 2, labels_of() + 0.5],
    ids=["too few", "too large", "too small", "no whole numbers"],
)
def test_labels_that_do_not_fit_are_refused_as_by_the_pair(labels):
    with pytest.raises((TypeError, ValueError)) as by_pairs:
        run_pairs(*arrays(), labels)
    with pytest.raises(by_pairs.type) as by_kernel:
        run(*arrays(), labels)
    assert str(by_kernel.value) == str(by_pairs.value)


def test_an_input_that_does_not_fit_is_refused_as_by_the_pair():
    x, W, b = arrays()
    with pytest.raises(ValueError, match="x has shape") as by_pairs:
        F.linear(x[..., 1:], W, b)
    with pytest.raises(ValueError, match="x has shape") as by_kernel:
        run(x[..., 1:], W, b, labels_of())
    assert str(by_kernel.value) == str(by_pairs.value)


def test_memory_grows_with_the_rows_of_a_block():
    n_rows, n_classes = 4096, 1000
    rng = np.random.default_rng(0)
    x, W = (rng.normal(size=size).astype("float32") for size in ((n_rows, 8), (8, n_classes)))
    labels, dW = rng.integers(0, n_classes, n_rows), np.zeros_like(W)

    def step():
        kernel.linear_cross_entropy(x, W, None, labels, 0.0, 1.0, dW, None, context=EngineContext())

    step()
    with trace_memory():
        peak = peak_of(step)
    assert peak < 4 * 1.5 * kernel.ROWS * n_classes
    assert n_rows > 2 * kernel.ROWS, "there are to be several blocks"
