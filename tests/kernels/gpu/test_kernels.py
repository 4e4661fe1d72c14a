"""Each kernel for CuPy arrays computes what its pairs in `npformer.functional` compute.

Run on the CPU, as C++: kernels are compiled from the same sources as on a GPU, and the functions
around them run as they are; only CuPy is emulated. What that cannot show is whether cuBLAS, cuFFT
and CuPy's sort do what NumPy's counterparts do: on a machine with a GPU all of this runs there too.
"""

import importlib
import math
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer.core import Padding
from npformer.engine import EngineContext, gpu
from tests import fake_device, normal_tails
from tests.kernels import helpers
from tests.kernels.gpu import emulated
from tests.kernels.gpu.helpers import (
    DTYPES,
    TRAIN,
    agree,
    asarray,
    assert_parity,
    download,
    move_case,
    run,
    same_in_any_order,
    upload,
)
from tests.kernels.helpers import Case, expected, normals
from tests.sampling import mark_others

pytestmark = pytest.mark.usefixtures("cupy")

embedding_module = importlib.import_module("npformer.engine.gpu.embedding")

WIDTHS = (1, 2, 31, 32, 33, 100, 257, 700, 2100)
"""Around a warp, around several, and more than a block takes at once."""

in_both_dtypes = pytest.mark.parametrize("dtype", DTYPES)


def test_every_kernel_has_a_reference() -> None:
    assert set(gpu.KERNELS) == set(helpers.REFERENCES) - {"gated_feed_forward", "rms_norm"}


def add_constant_row(case: Case) -> Case:
    case.arrays[0][0, 0] = 5.0
    return case


SHAPES = [
    *(add_constant_row(helpers.layer_norm((3, 2, n), 1e-3, mean=3.0)) for n in WIDTHS),
    *(helpers.residual_norm((3, 5, n), rate) for n in (1, 40, 300) for rate in (0.0, 0.4)),
    helpers.residual_norm((3, 5), 0.5, training=False),
    *(
        helpers.linear((rows, d_in), d_out, bias)
        for rows, d_in, d_out in [(1, 1, 1), (3, 5, 33), (40, 64, 7), (300, 3, 300)]
        for bias in (True, False)
    ),
    *(
        helpers.feed_forward((rows, 1, d_model), d_ff, activation, scale=2.0)
        for rows, d_model, d_ff in [(1, 1, 1), (7, 12, 33), (70, 30, 300)]
        for activation in helpers.ACTIVATIONS
    ),
    *(
        helpers.fourier_mixing(shape)
        for shape in [(1, 1, 1), (3, 5, 8), (2, 4, 7), (2, 1, 33), (1, 70, 300), (6, 10)]
    ),
    *(helpers.dropout((7, 100), rate) for rate in (0.0, 0.1, 0.5)),
]


@in_both_dtypes
@pytest.mark.parametrize("case", SHAPES, ids=lambda case: f"{case.name}-{case.arrays[0].shape}")
def test_of_any_shape(case, dtype) -> None:
    # The norm of a single entry is 0 but for rounding: the entry is its own mean.
    alone = case.name == "residual_norm" and case.arrays[0].shape[-1] == 1
    assert_parity(case, dtype, share=1.0 if alone else 0.0)


@pytest.mark.parametrize("mean", [0.0, 1e4, 1e6])
def test_layer_norm_of_a_large_mean_keeps_its_digits(mean) -> None:
    case = helpers.layer_norm((4, 300), mean=mean)
    y = run(case, "float32", keep=False)
    np.testing.assert_allclose(download(y), expected(case, "float32")[0], rtol=0, atol=3e-6)


@pytest.mark.parametrize("d", [1, 3, 257, 768])
def test_layer_norm_of_a_constant_row_is_beta(d) -> None:
    gamma, beta = normals((d,), (d,))
    for constant in (0.1, -7.0 / 3.0, 12345.678, 1e6 / 3.0):
        y = run(Case("layer_norm", (np.full((2, d), constant), gamma, beta), (1e-12,)), "float32")
        np.testing.assert_array_equal(download(y[0])[1], beta.astype("float32"))


@pytest.mark.parametrize("rows", [0, 1, 15, 16, 17, 500, 9000])
@pytest.mark.parametrize("width", [1, 33, 300])
def test_sums_over_rows(rows, width) -> None:
    (x,) = normals((2, rows, width))
    agree(same_in_any_order(lambda: gpu.sums.column_sums(upload(x))), x.sum(axis=1))


@pytest.mark.parametrize("case", [helpers.linear((4, 6), 6), helpers.feed_forward((4, 6), 6)])
def test_maps_get_the_same_gradients_without_the_inputs(case) -> None:
    there = move_case(case)
    y, cache = helpers.forward(there, there.arrays, TRAIN, gpu.KERNELS)
    backward, dy = gpu.KERNELS[case.name][1], upload(helpers.gradient_for(download(y)))
    _, *every = backward(dy, cache)
    dx, *parameter_gradients = backward(dy, cache, of_input=False)
    assert dx is None
    for one, other in zip(parameter_gradients, every, strict=True):
        np.testing.assert_array_equal(download(one), download(other))


@pytest.mark.parametrize("activation", helpers.ACTIVATIONS)
def test_an_activation_shows_nan(activation) -> None:
    one, zero = np.ones((1, 1)), np.zeros(1)
    arrays = np.array([[math.nan], [1.0]]), one, zero, one, zero
    y = run(Case("feed_forward", arrays, (activation,)), keep=False)
    np.testing.assert_array_equal(np.isnan(download(y)), [[True], [False]])


SIZES = [(1, 1, 1, 1), (3, 5, 2, 4), (2, 33, 4, 3), (2, 70, 1, 40), (1, 40, 2, 35)]
"""Batch, length, heads, features of a head."""

in_any_order_of_keys = pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
masked_or_not = pytest.mark.parametrize("mask", ["none", "padded"])


@in_both_dtypes
@in_any_order_of_keys
@masked_or_not
@pytest.mark.parametrize("sizes", SIZES)
def test_attention(sizes, mask, causal, dtype) -> None:
    case = helpers.attention_heads(*sizes, mask, causal, scale=1.2)
    computed_again = replace(case, others=(*case.others[:2], False))
    with fake_device.count() as counted:
        assert_parity(case, dtype, share=0.1)
        agree(run(computed_again, dtype), expected(case, dtype), dtype, share=0.1)
    assert counted.copies == []


@in_any_order_of_keys
@pytest.mark.parametrize("scores", [1, 40, 33 * 7, 33 * 33, 3 * 33 * 33])
def test_attention_in_pieces(causal, scores, monkeypatch) -> None:
    monkeypatch.setattr(gpu.attention, "SCORES", scores)
    case = helpers.attention_heads(3, 33, 2, 6, "padded", causal, store=False)
    with fake_device.count() as counted:
        agree(run(case), expected(case), share=0.1)
    assert counted.copies == []
    case = helpers.attention_heads(3, 33, 2, 6, "padded", causal)
    agree(run(case, keep=False), expected(case)[0])


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("size", [1e-30, 1e-22, 1e22, 1e30])
@pytest.mark.parametrize("offset", [-60.0, -43.0, 40.0, 60.0])
def test_attention_of_any_size_of_scores_and_gradients(offset, size, store) -> None:
    case = helpers.attention_heads(2, 9, 1, 4, "padded", store=store)
    x, *maps = (a.copy() for a in case.arrays)
    for i, sign in ((0, 1.0), (2, math.copysign(1.0, offset))):
        maps[i] *= 0.2
        maps[i][:, 0], maps[i + 1][0] = 0.0, sign * math.sqrt(2.0 * abs(offset))
    case = replace(case, arrays=(x, *maps))
    there, dy = move_case(case, "float32"), size * normals(x.shape)[0]
    y, cache = helpers.forward(there, there.arrays, there.context(), gpu.KERNELS)
    results = (y, *helpers.backward(there, upload(dy, "float32"), cache, gpu.KERNELS))
    # Scores of 60 are rounded by 4e-6 each. Gradients of biases are sums that cancel.
    exact = expected(case, "float32", dy)
    pairs = zip(results, exact, strict=True)
    errors = [np.abs(download(a) - b).max() / np.abs(b).max() for a, b in pairs]
    assert max(e for e, b in zip(errors, exact, strict=True) if b.ndim > 1) <= 3e-5


@pytest.mark.parametrize(("store", "is_stored"), [(None, False), (True, True), (False, False)])
def test_attention_keeps_no_weights_of_a_long_sequence(store, is_stored, monkeypatch) -> None:
    monkeypatch.setattr(gpu.attention, "LONG", 5)
    case = move_case(helpers.attention_heads(1, 5, 1, 4, store=store))
    _, saved = helpers.forward(case, case.arrays, TRAIN, gpu.KERNELS)
    assert any(getattr(array, "shape", None) == (1, 5, 5) for array in saved) is is_stored


def test_padding_may_hold_anything() -> None:
    case = helpers.attention_heads(3, 5, 2, 4, "padded")
    x = np.where(case.mask[..., None], case.arrays[0], np.nan)
    y = run(replace(case, arrays=(x, *case.arrays[1:])), keep=False)
    np.testing.assert_allclose(download(y)[case.mask], expected(case)[0][case.mask], rtol=1e-12)


@in_both_dtypes
@in_any_order_of_keys
@masked_or_not
@pytest.mark.parametrize("room", mark_others([3], [0, 3]))
@pytest.mark.parametrize("sizes", SIZES)
def test_dense_synthesizer(sizes, room, mask, causal, dtype) -> None:
    case = helpers.dense_heads(*sizes, sizes[1] + room, mask, causal)
    with fake_device.count() as counted:
        assert_parity(case, dtype, share=0.1)
    assert counted.copies == []


def cross_entropy(logits: np.ndarray, labels: Any, smoothing: float = 0.0) -> Case:
    return Case("softmax_cross_entropy", (logits,), (np.asarray(labels), smoothing))


@in_both_dtypes
@pytest.mark.parametrize("smoothing", mark_others([0.1], [0.0, 0.1]))
@pytest.mark.parametrize("sizes", [(1, 2), (1, 700), (7, 3), (7, 40), (7, 2100), (1500, 2)])
def test_cross_entropy(sizes, smoothing, dtype) -> None:
    rng = np.random.default_rng(0)
    logits, labels = 5.0 * rng.normal(size=sizes), rng.integers(0, sizes[1], sizes[0])
    assert_parity(cross_entropy(logits, labels, smoothing), dtype)
    labels[::3] = F.NO_LABEL
    assert_parity(cross_entropy(logits, labels, smoothing), dtype)


LOGITS = normals((2, 3, 4))[0]
LABELS = np.array([[0, 1, 3], [2, 2, 0]])
HUGE = np.array([[1e4, -1e4, 1e4 - 1.0], [-3e38, 0.0, 3e38]])


@in_both_dtypes
@pytest.mark.parametrize(
    ("logits", "labels"),
    [
        *((LOGITS, LABELS.astype(kind)) for kind in ("int32", "int8", "uint8")),
        (LOGITS, np.full_like(LABELS, F.NO_LABEL)),
        (HUGE, [2, 2]),
    ],
)
def test_cross_entropy_of_any_labels_and_logits(dtype, logits, labels) -> None:
    assert_parity(cross_entropy(logits, labels), dtype)


def test_a_class_that_is_ruled_out_has_a_loss_for_the_others() -> None:
    logits = np.array([[0.0, -np.inf, 0.0]])
    loss, cache = gpu.softmax_cross_entropy(asarray(logits), asarray(np.array([2])), context=TRAIN)
    np.testing.assert_allclose(download(loss), math.log(2.0))
    dlogits = gpu.softmax_cross_entropy_backward(1.0, cache)
    np.testing.assert_allclose(download(dlogits), [[0.5, 0.0, -0.5]])


@pytest.mark.parametrize("label", [-2, 3, 2**40])
def test_a_label_that_is_no_class_shows(label) -> None:
    logits, labels = asarray(np.zeros((2, 3))), asarray(np.array([0, label]))
    loss, cache = gpu.softmax_cross_entropy(logits, labels, context=TRAIN)
    assert np.isnan(download(loss))
    assert np.isfinite(download(gpu.softmax_cross_entropy_backward(1.0, cache))).all()


def test_the_gradient_of_a_loss_takes_an_array() -> None:
    logits, labels = asarray(normals((5, 3))[0]), asarray(np.array([0, 1, 2, 0, -1]))
    _, cache = gpu.softmax_cross_entropy(logits, labels, context=TRAIN)
    expected = gpu.softmax_cross_entropy_backward(0.25, cache)
    for _ in range(2):
        dlogits = gpu.softmax_cross_entropy_backward(asarray(np.array(0.25)), cache)
        np.testing.assert_allclose(download(dlogits), download(expected), rtol=1e-15)


@in_both_dtypes
@pytest.mark.parametrize("vocab_size", [1, 5, 3000])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 128, 700])
def test_embedding(n, vocab_size, dtype) -> None:
    ids = np.random.default_rng(0).zipf(1.3, n)  # a few ids very often, most never
    ids = np.minimum(ids, vocab_size) - 1
    assert_parity(Case("embedding", normals((vocab_size, 33)), (ids,)), dtype)


def test_embedding_of_runs_that_end_at_the_edges_of_blocks() -> None:
    ids = np.repeat(np.arange(7), [64, 128, 1, 63, 65, 63, 64])
    np.random.default_rng(0).shuffle(ids)
    assert_parity(Case("embedding", normals((8, 3)), (ids.reshape(4, -1),)))


def test_embedding_adds_equal_ids_by_position() -> None:
    big, ids = 2.0**60, np.zeros(200, dtype="int64")
    dy = np.where(np.arange(200) % 2 == 0, big, -big)[:, None] + np.arange(200)[:, None]
    _, cache = gpu.embedding(asarray(ids), asarray(np.zeros((2, 1))), context=TRAIN)
    dtable = same_in_any_order(lambda: gpu.embedding_backward(asarray(dy), cache))
    in_order = 0.0
    for start in range(0, 200, embedding_module.RUN):
        run_sum = 0.0
        for value in dy[start : start + embedding_module.RUN, 0]:
            run_sum += value
        in_order += run_sum
    assert download(dtable)[0, 0] == in_order


@pytest.mark.parametrize("wrong", [-1, 3, 10**12])
def test_an_id_that_is_no_row_writes_nowhere(wrong) -> None:
    for ids in (np.array([0, wrong, 2]), np.full(100, wrong)):
        dtable = gpu.embedding_backward(asarray(np.ones((len(ids), 2))), (asarray(ids), (3, 2)))
        np.testing.assert_array_equal(download(dtable), [[(ids == i).sum()] * 2 for i in range(3)])


@in_both_dtypes
@pytest.mark.parametrize("shape", [1, 255, 5000, (4, 6)])
@pytest.mark.parametrize("weight_decay", [0.0, 10.0])
@pytest.mark.parametrize("stride", [1, 2])
def test_adam(stride, shape, weight_decay, dtype) -> None:
    arrays = [x.astype(dtype) for x in normals(*4 * [shape])]
    arrays[3] = np.abs(arrays[3])
    there = [upload(a, dtype)[..., ::stride] for a in arrays]
    wide = [a.astype("float64")[..., ::stride] for a in arrays]
    settings: Any = {"t": 3, "lr": 1e-3, "betas": (0.9, 0.98), "eps": 1e-9}
    settings["weight_decay"] = weight_decay
    nf.optim.adam_update(*wide, **settings)
    gpu.adam_update_kernel(*there, **settings)
    agree(tuple(there), tuple(wide), dtype)


@in_both_dtypes
@pytest.mark.parametrize("n", [1, 1000, 70000])
@pytest.mark.parametrize("max_norm", [0.5, 1e3])
def test_clipping(n, max_norm, dtype) -> None:
    g = normals(n)[0].astype(dtype)
    wide = {"g": g.astype("float64")}
    norm = nf.clip_by_global_norm(wide, max_norm)

    def compute() -> Any:
        there = upload(g, dtype)
        return gpu.clip_by_global_norm_kernel(there, max_norm), there

    agree(same_in_any_order(compute), (norm, wide["g"]), dtype)


def test_gradients_in_one_buffer_are_clipped_by_the_kernel(monkeypatch) -> None:
    kernel = Mock(wraps=gpu.UPDATES["clip_by_global_norm"])
    monkeypatch.setitem(gpu.UPDATES, "clip_by_global_norm", kernel)
    norms = []
    for backend in ("numpy", "cupy"):
        gradients = nf.Gradients(nf.layers.Linear(3, 4, seed=0).to(backend))
        gradients.flat[...] = 2.0
        norms.append(float(download(nf.clip_by_global_norm(gradients, 0.5))))
        flat = download(gradients.flat)
        assert np.linalg.norm(flat) == pytest.approx(0.5, rel=1e-5)
    assert [call.args[0].size for call in kernel.mock_calls] == [flat.size]
    assert norms[1] == pytest.approx(norms[0], rel=1e-6)


@pytest.mark.parametrize(
    ("wrong", "norm"), [(np.nan, np.nan), (np.inf, np.inf), (-np.inf, np.inf), (3e38, np.inf)]
)
def test_clipping_shows_what_is_not_finite(wrong, norm) -> None:
    g = asarray(np.array([1.0, wrong, wrong], dtype="float32"))
    np.testing.assert_equal(float(download(gpu.clip_by_global_norm_kernel(g, 1.0))), norm)
    assert np.isnan(download(g)).all()


@pytest.mark.parametrize("n", [2, 70_000])
@pytest.mark.parametrize("size", [1e19, 1e30, 1e36])
def test_clipping_holds_gradients_whose_squares_overflow(size, n) -> None:
    g = np.random.default_rng(0).uniform(-size, size, n).astype("float32")
    wide = g.astype("float64")
    there = asarray(g)
    expected = np.linalg.norm(wide)
    assert float(download(gpu.clip_by_global_norm_kernel(there, 2.0))) == pytest.approx(
        expected, rel=1e-6
    )
    np.testing.assert_allclose(download(there), 2.0 * wide / expected, rtol=1e-5)


def adam_step_from_zero(gradients: list[float]) -> np.ndarray:
    """Return parameters, all 0 before, after one step of Adam without memory of gradients."""
    g = np.array(gradients, dtype="float32")
    theta, m, v = (asarray(np.zeros(len(g), "float32")) for _ in range(3))
    gpu.adam_update_kernel(theta, asarray(g), m, v, t=1, lr=1.0, betas=(0.0, 0.999), eps=0.0)
    return download(theta)


def test_adam_takes_gradients_whose_squares_fit_into_float32() -> None:
    np.testing.assert_allclose(adam_step_from_zero([1e19, -5e20]), [-1.0, 1.0], rtol=1e-5)


def test_adam_shows_gradients_that_are_too_large() -> None:
    assert np.isnan(adam_step_from_zero([1e21, np.inf, np.nan])).all()


def test_a_batch_without_samples_runs_nothing() -> None:
    empty = asarray(np.zeros((0, 4)))
    W, b = asarray(np.ones((4, 4))), asarray(np.ones(4))
    with emulated.launches() as launches:
        y, cache = gpu.feed_forward(empty, W, b, W, b, "gelu", TRAIN)
        assert y.shape == (0, 4)
        dx, dW1, db1, *_ = gpu.feed_forward_backward(empty, cache)
        z, norm_cache = gpu.layer_norm(empty, b, b, context=TRAIN)
        _, dgamma, _ = gpu.layer_norm_backward(z, norm_cache)
    assert launches == []
    for gradient in (dW1, db1, dgamma):
        assert (download(gradient) == 0.0).all()
    assert dx.shape == (0, 4)


def test_a_sure_prediction_keeps_its_digits() -> None:
    logits = np.array([[20.0, 0.0, -5.0], [3.0, 3.0, -60.0]], "float32")
    for row, rest in zip(logits, (math.exp(-20.0) + math.exp(-25.0), 1.0), strict=True):
        label = asarray(np.array([0]))
        loss, cache = gpu.softmax_cross_entropy(asarray(row[None]), label, context=TRAIN)
        np.testing.assert_allclose(download(loss), math.log1p(rest), rtol=5e-7)
        dlogits = download(gpu.softmax_cross_entropy_backward(1.0, cache))
        np.testing.assert_allclose(dlogits[0, 0], -rest / (1.0 + rest), rtol=5e-7)


def test_gelu_keeps_its_digits_in_the_tails() -> None:
    x = normal_tails.GRID.astype("float32")[:, None]
    W, b = asarray(np.ones((1, 1), "float32")), asarray(np.zeros(1, "float32"))
    y, cache = gpu.feed_forward(asarray(x), W, b, W, b, "gelu", TRAIN)
    slope, *_ = gpu.feed_forward_backward(asarray(np.ones_like(x)), cache)
    assert (
        max(normal_tails.gelu_errors(x, download(y), download(slope))) < 12.0
    )  # CUDA's normcdf: 5


def test_the_source_refuses_arrays_with_strides() -> None:
    x = asarray(np.zeros((3, 3)))
    with pytest.raises(ValueError, match="not C-contiguous"):
        gpu.adam.ADAM.launch("multiply", (1, 32), x[:, 0], x[:, 0], 3)


def test_the_source_refuses_arrays_of_two_dtypes() -> None:
    x, y = asarray(np.zeros((3, 3))), asarray(np.zeros(3, dtype="float32"))
    with pytest.raises(TypeError, match="float32 and one of float64"):
        gpu.adam.ADAM.launch("multiply", (1, 32), x[0], y, 3)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"x": np.zeros((2, 3, 4), "float32")}, TypeError, "x has dtype float32 and W"),
        ({"x": np.zeros((2, 3, 5))}, ValueError, "x has shape"),
        ({"mask": np.ones((2, 3))}, TypeError, "mask has dtype float64"),
        ({"mask": np.ones((2, 4), bool)}, ValueError, "mask has shape"),
        ({"mask": np.ones((2, 1, 1, 3), bool)}, ValueError, "mask has shape"),
    ],
)
@pytest.mark.parametrize("mixer", ["attention", "dense_synthesizer"])
def test_heads_refuse_what_a_kernel_would_misread(mixer, wrong, error, message) -> None:
    settings = nf.mixers.MixerSettings(4, 2, 3)
    layer = nf.MIXERS[mixer].build(settings, seed=0, dtype="float64").to("cupy")
    inputs = {"x": np.zeros((2, 3, 4)), "mask": np.ones((2, 3), bool)} | wrong
    context = EngineContext(padding=Padding(asarray(inputs["mask"])))  # past Context's own checks
    with pytest.raises(error, match=message):
        nf.fast(layer).forward(asarray(inputs["x"]), context)
