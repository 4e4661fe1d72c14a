"""The kernels for CuPy arrays compute what `npformer.functional` computes: run on the CPU, as C++.

Kernels are compiled from the same sources as on a GPU, and the functions around them run as they
are; only CuPy is emulated. What that cannot show is whether cuBLAS, cuFFT and CuPy's sort do what
NumPy's counterparts do: on a machine with a GPU all of this runs there too.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer.core import arrays as backends
from npformer.engine import EngineContext, gpu
from npformer.engine.twins import Saved
from npformer.engine.updates import device_generator, update
from npformer.engine.workers import Team
from npformer.functional.dropout import draw_kept
from tests import fake_device
from tests.device import cases
from tests.kernels.gpu import emulated

pytestmark = pytest.mark.usefixtures("cupy")
in_emulation = pytest.mark.usefixtures("emulation")

embedding_module = importlib.import_module("npformer.engine.gpu.embedding")

DTYPES = ("float64", "float32")
TOLERANCE = {"float64": 1e-12, "float32": 2e-5}
"""Of the largest entry. In float64 for some hundred operations, each of 1e-16. In float32 rounding
is 6e-8, which sums in another order and a softmax of scores of size 10 raise to some 1e-6."""

WIDTHS = (1, 2, 31, 32, 33, 100, 257, 700, 2100)
"""Around a warp, around several, and more than a block takes at once."""

ORDERS = (0, 1, 2, 3)
"""Of threads and blocks."""


@pytest.fixture(autouse=True)
def slack(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave room for other algorithms of products, exp and erf on a real device."""
    if place == "device":
        monkeypatch.setitem(TOLERANCE, "float64", 1e-10)
        monkeypatch.setitem(TOLERANCE, "float32", 1e-4)


TRAIN = EngineContext(training=True)
EVALUATE = EngineContext(keep=False)


def fresh() -> np.random.Generator:
    return np.random.default_rng(0)


def asarray(x: np.ndarray) -> Any:
    """Bring an array to the device."""
    return nf.asarray(x, backend="cupy")


def up(x: Any, dtype: str) -> Any:
    """Bring an array to the device, in `dtype` if it holds floats."""
    if not isinstance(x, np.ndarray):
        return x
    return asarray(x.astype(dtype) if x.dtype.kind == "f" else x)


def down(x: Any) -> np.ndarray:
    return nf.to_numpy(x)


def flat(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def agree(found: Any, expected: Any, dtype: str, share: float = 0.0) -> None:
    """Check arrays against each other, relative to the largest entry of each.

    Or to a share of the largest of all if that is more: some are 0 but for rounding.
    """
    found, expected = flat(found), flat(expected)
    assert len(found) == len(expected)
    floor = max(share * max(float(np.abs(y).max(initial=0.0)) for y in expected), 1e-30)
    for i, (one, other) in enumerate(zip(found, expected, strict=True)):
        x, y = down(one), np.asarray(other)
        assert backends.backend_of(x=one).name == "cupy", f"result {i} left the device"
        assert x.dtype == dtype, f"result {i}"
        assert x.shape == y.shape, f"result {i}"
        assert np.isfinite(x).all() == np.isfinite(y).all(), f"result {i}"
        scale = max(float(np.abs(y).max(initial=0.0)), floor)
        error = float(np.abs(x - y).max(initial=0.0)) / scale
        assert error <= TOLERANCE[dtype], f"result {i} differs by {error:.1e}"


def same_in_any_order(compute: Callable[[], Any]) -> Any:
    """Return what `compute` gives, after a check that no order of threads changes a bit of it."""
    first = None
    for order in ORDERS:
        with emulated.in_order(order):
            found = [down(x) for x in flat(compute())]
        if first is None:
            first = found
        for x, y in zip(found, first, strict=True):
            np.testing.assert_array_equal(x, y, err_msg=f"threads in order {order}")
    with emulated.in_order(0):
        return compute()


def both(
    pair: str,
    kernel: str,
    inputs: tuple[Any, ...],
    dtype: str,
    context: EngineContext,
    **options: Any,
) -> None:
    """Compare a pair of `functional` with the kernel that replaces it, forward and backward."""
    given = tuple(
        x.astype(dtype) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x for x in inputs
    )
    wide = tuple(
        x.astype("float64") if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x
        for x in given
    )
    y, cache = getattr(F, pair)(*wide, **options)
    dy = fresh().normal(size=y.shape).astype(dtype) if y.shape else 0.7
    expected = (
        y,
        *flat(getattr(F, f"{pair}_backward")(dy.astype("float64") if y.shape else dy, cache)),
    )
    forward, backward = gpu.KERNELS[kernel]

    def compute() -> tuple[Any, ...]:
        there, saved = forward(*(up(x, dtype) for x in given), context=context, **options)
        return (there, *flat(backward(up(dy, dtype), saved)))

    agree(same_in_any_order(compute), expected, dtype)


# One kernel at a time


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_layer_norm(width, dtype) -> None:
    rng = fresh()
    x = 3.0 + rng.normal(size=(3, 2, width))
    x[0, 0] = 5.0  # a constant row
    scale_and_shift = rng.normal(size=width), rng.normal(size=width)
    both("layer_norm", "layer_norm", (x, *scale_and_shift), dtype, TRAIN, eps=1e-3)


def test_layer_norm_of_a_large_mean_keeps_its_digits() -> None:
    x = (1000.0 + fresh().normal(size=(4, 100))).astype("float32")
    ones, zeros = np.ones(100, "float32"), np.zeros(100, "float32")
    y, _ = gpu.layer_norm(*(up(a, "float32") for a in (x, ones, zeros)), context=TRAIN)
    expected, _ = F.layer_norm(*(a.astype("float64") for a in (x, ones, zeros)))
    np.testing.assert_allclose(down(y), expected, atol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rate", [0.0, 0.4])
@pytest.mark.parametrize("width", [1, 40, 300])
def test_residual_norm(width, rate, dtype) -> None:
    rng = fresh()
    x, y, dz = (rng.normal(size=(3, 5, width)).astype(dtype) for _ in range(3))
    gamma, beta = (rng.normal(size=width).astype(dtype) for _ in range(2))
    wide = [a.astype("float64") for a in (x, y, gamma, beta)]
    dropped, dropout_cache = F.dropout(wide[1], rate, np.random.default_rng(5))
    z, cache = F.layer_norm(wide[0] + dropped, *wide[2:], eps=1e-5)
    dsum, dgamma, dbeta = F.layer_norm_backward(dz.astype("float64"), cache)
    dy = F.dropout_backward(dsum, dropout_cache)

    def compute() -> tuple[Any, ...]:
        context = replace(TRAIN, generator=np.random.default_rng(5))
        given = [up(a, dtype) for a in (x, y, gamma, beta)]
        there, saved = gpu.residual_norm(*given, 1e-5, rate, context)
        return (there, *gpu.residual_norm_backward(up(dz, dtype), saved))

    share = 1.0 if width == 1 else 0.0  # a single entry is its own mean: all is 0 but for rounding
    agree(same_in_any_order(compute), (z, dsum, dy, dgamma, dbeta), dtype, share)


def test_residual_norm_at_evaluation_drops_nothing_and_keeps_nothing() -> None:
    x, y = (fresh().normal(size=(3, 5)) for _ in range(2))
    ones, zeros = np.ones(5), np.zeros(5)
    given = [up(a, "float64") for a in (x, y, ones, zeros)]
    z, _ = gpu.residual_norm(*given, 1e-5, 0.5, EVALUATE)
    expected, _ = F.layer_norm(x + y, ones, zeros)
    agree(z, expected, "float64")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 33), (40, 64, 7), (300, 3, 300)])
def test_linear(shape, dtype) -> None:
    rows, d_in, d_out = shape
    rng = fresh()
    x, W, b = rng.normal(size=(rows, d_in)), rng.normal(size=(d_in, d_out)), rng.normal(size=d_out)
    both("linear", "linear", (x, W, b), dtype, TRAIN)
    both("linear", "linear", (x, W), dtype, TRAIN)


@pytest.mark.parametrize("rows", [0, 1, 15, 16, 17, 500, 9000])
@pytest.mark.parametrize("width", [1, 33, 300])
def test_sums_over_rows(rows, width) -> None:
    x = fresh().normal(size=(2, rows, width))
    found = same_in_any_order(lambda: gpu.sums.column_sums(up(x, "float64")))
    agree(found, x.sum(axis=1), "float64")


ACTIVATIONS = {
    "relu": (F.relu, F.relu_backward, {}),
    "gelu": (F.gelu, F.gelu_backward, {}),
    "gelu_tanh": (F.gelu, F.gelu_backward, {"approximate": "tanh"}),
    "tanh": (F.tanh, F.tanh_backward, {}),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (7, 12, 33), (70, 30, 300)])
def test_feed_forward(sizes, activation, dtype) -> None:
    rows, d_model, d_ff = sizes
    rng = fresh()
    x = rng.normal(size=(rows, 1, d_model))
    W1, b1 = 2.0 * rng.normal(size=(d_model, d_ff)) / math.sqrt(d_model), rng.normal(size=d_ff)
    W2, b2 = rng.normal(size=(d_ff, d_model)), rng.normal(size=d_model)
    dy = rng.normal(size=x.shape).astype(dtype)
    given = [a.astype(dtype) for a in (x, W1, b1, W2, b2)]
    wide = [a.astype("float64") for a in given]
    activate, activate_backward, options = ACTIVATIONS[activation]
    before, first = F.linear(*wide[:3])
    hidden, middle = activate(before, **options)
    y, last = F.linear(hidden, *wide[3:])
    dhidden, dW2, db2 = F.linear_backward(dy.astype("float64"), last)
    dx, dW1, db1 = F.linear_backward(activate_backward(dhidden, middle), first)

    def compute(context: EngineContext = TRAIN) -> tuple[Any, ...]:
        there, saved = gpu.feed_forward(*(up(a, dtype) for a in given), activation, context)
        return (there, *gpu.feed_forward_backward(up(dy, dtype), saved)) if context.keep else there

    agree(same_in_any_order(compute), (y, dx, dW1, db1, dW2, db2), dtype)
    agree(compute(EVALUATE), y, dtype)


def test_maps_get_the_same_gradients_without_the_inputs() -> None:
    rng = fresh()
    x, dy, W, b = (up(rng.normal(size=s), "float64") for s in ((4, 6), (4, 6), (6, 6), (6,)))
    for (_, cache), backward in (
        (gpu.linear(x, W, b, context=TRAIN), gpu.linear_backward),
        (gpu.feed_forward(x, W, b, W, b, "gelu", TRAIN), gpu.feed_forward_backward),
    ):
        _, *expected = backward(dy, cache)
        dx, *found = backward(dy, cache, of_input=False)
        assert dx is None
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(down(one), down(other))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_an_activation_shows_nan(activation) -> None:
    x = np.array([[float("nan")], [1.0]])
    one, zero = np.ones((1, 1)), np.zeros(1)
    y, _ = gpu.feed_forward(
        *(up(a, "float64") for a in (x, one, zero, one, zero)), activation, TRAIN
    )
    np.testing.assert_array_equal(np.isnan(down(y)), [[True], [False]])


def padding(batch: int, length: int) -> np.ndarray:
    """Return a mask: a full sequence, shorter ones, and a last one of padding alone."""
    lengths = np.linspace(length, 0, batch).astype(int)
    return np.arange(length) < lengths[:, None]


def attention(dtype: str, sizes: tuple[int, ...], mask: np.ndarray | None, causal: bool) -> Any:
    """Return inputs, and what functional makes of them: y, dx and gradients of the projections."""
    batch, length, d, n_heads = sizes
    rng = fresh()
    x, dy = (rng.normal(size=(batch, length, d)).astype(dtype) for _ in range(2))
    maps = []
    for _ in range(3):
        maps += [rng.normal(size=(d, d)) * 1.5 / math.sqrt(d), rng.normal(size=d)]
    maps = [a.astype(dtype) for a in maps]
    wide, dy_wide = [a.astype("float64") for a in maps], dy.astype("float64")
    over_heads = None if mask is None else mask[:, None, None, :]
    made = [F.linear(x.astype("float64"), *wide[i : i + 2]) for i in (0, 2, 4)]
    parts = [F.split_heads(y, n_heads) for y, _ in made]
    heads, cache = F.scaled_dot_product_attention(*parts, mask=over_heads, causal=causal)
    dparts = F.scaled_dot_product_attention_backward(F.split_heads(dy_wide, n_heads), cache)
    gradients = [
        F.linear_backward(F.merge_heads(dpart), linear_cache)
        for dpart, (_, linear_cache) in zip(dparts, made, strict=True)
    ]
    expected = F.merge_heads(heads), sum(g[0] for g in gradients)
    return x, dy, maps, (*expected, *(g for some in gradients for g in some[1:]))


SIZES = [(1, 1, 1, 1), (3, 5, 8, 2), (2, 33, 12, 4), (2, 70, 40, 1), (1, 40, 70, 2)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_attention(sizes, masked, causal, dtype) -> None:
    mask = padding(*sizes[:2]) if masked else None
    x, dy, maps, expected = attention(dtype, sizes, mask, causal)
    context = replace(TRAIN, mask=None if mask is None else up(mask, dtype))

    def compute(store: bool | None = None, context: EngineContext = context) -> tuple[Any, ...]:
        given = up(x, dtype), *(up(a, dtype) for a in maps)
        y, saved = gpu.attention_heads(*given, sizes[3], causal, store, context)
        return (y, *gpu.attention_heads_backward(up(dy, dtype), saved)) if context.keep else y

    agree(same_in_any_order(compute), expected, dtype, share=0.1)
    agree(compute(store=False), expected, dtype, share=0.1)
    agree(compute(context=replace(context, keep=False)), expected[0], dtype)
    assert emulated.copies == []


@pytest.mark.parametrize("scores", [1, 40, 33 * 7, 33 * 33, 3 * 33 * 33])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_in_pieces(causal, scores, monkeypatch) -> None:
    monkeypatch.setattr(gpu.attention, "SCORES", scores)
    sizes = 3, 33, 12, 2
    mask = padding(3, 33)
    x, dy, maps, expected = attention("float64", sizes, mask, causal)
    context = replace(TRAIN, mask=up(mask, "float64"))
    given = up(x, "float64"), *(up(a, "float64") for a in maps)
    y, saved = gpu.attention_heads(*given, 2, causal, False, context)
    found = y, *gpu.attention_heads_backward(up(dy, "float64"), saved)
    agree(found, expected, "float64", share=0.1)
    assert emulated.copies == []
    y, _ = gpu.attention_heads(*given, 2, causal, None, replace(context, keep=False))
    agree(y, expected[0], "float64")


def test_attention_keeps_no_weights_of_a_long_sequence(monkeypatch) -> None:
    monkeypatch.setattr(gpu.attention, "LONG", 5)
    x, _, maps, _ = attention("float64", (1, 5, 4, 1), None, False)
    given = up(x, "float64"), *(up(a, "float64") for a in maps)
    for store, kept in ((None, False), (True, True), (False, False)):
        _, saved = gpu.attention_heads(*given, 1, False, store, TRAIN)
        assert any(getattr(part, "shape", None) == (1, 5, 5) for part in saved) is kept


def test_padding_may_hold_anything() -> None:
    mask = padding(3, 5)
    x, _, maps, expected = attention("float64", (3, 5, 8, 2), mask, False)
    x[~mask] = float("nan")
    context = replace(TRAIN, mask=up(mask, "float64"))
    y, _ = gpu.attention_heads(
        up(x, "float64"), *(up(a, "float64") for a in maps), 2, False, None, context
    )
    np.testing.assert_allclose(down(y)[mask], expected[0][mask], rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("room", [0, 3])
@pytest.mark.parametrize("sizes", SIZES)
def test_dense_synthesizer(sizes, room, masked, causal, dtype) -> None:
    batch, length, d, n_heads = sizes
    rng = fresh()
    x, dy = (rng.normal(size=(batch, length, d)).astype(dtype) for _ in range(2))
    columns = length + room
    shapes = (d, d), (d,), (n_heads, d // n_heads, columns), (n_heads, columns), (d, d), (d,)
    maps = [rng.normal(size=shape).astype(dtype) for shape in shapes]
    wide = [a.astype("float64") for a in maps]
    x_wide, mask = x.astype("float64"), padding(batch, length) if masked else None
    over_heads = None if mask is None else mask[:, None, None, :]
    value, value_cache = F.linear(x_wide, *wide[4:])
    heads, cache = F.dense_synthesizer(
        x_wide, F.split_heads(value, n_heads), *wide[:4], mask=over_heads, causal=causal
    )
    dx, dvalue, *dmaps = F.dense_synthesizer_backward(
        F.split_heads(dy.astype("float64"), n_heads), cache
    )
    dx_value, *dvalue_maps = F.linear_backward(F.merge_heads(dvalue), value_cache)
    expected = F.merge_heads(heads), dx + dx_value, *dmaps, *dvalue_maps
    context = replace(TRAIN, mask=None if mask is None else up(mask, dtype))

    def compute() -> tuple[Any, ...]:
        y, saved = gpu.dense_heads(*(up(a, dtype) for a in (x, *maps)), causal, context)
        return (y, *gpu.dense_heads_backward(up(dy, dtype), saved))

    agree(same_in_any_order(compute), expected, dtype, share=0.1)
    assert emulated.copies == []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("sizes", [(1, 2), (1, 700), (7, 3), (7, 40), (7, 2100), (1500, 2)])
def test_cross_entropy(sizes, smoothing, dtype) -> None:
    rows, n_classes = sizes
    rng = fresh()
    logits, labels = 5.0 * rng.normal(size=(rows, n_classes)), rng.integers(0, n_classes, rows)
    both(*("softmax_cross_entropy",) * 2, (logits, labels), dtype, TRAIN, label_smoothing=smoothing)
    labels[::3] = F.NO_LABEL
    both(*("softmax_cross_entropy",) * 2, (logits, labels), dtype, TRAIN, label_smoothing=smoothing)


@pytest.mark.parametrize("kind", ["int32", "int8", "uint8"])
def test_labels_of_other_kinds(kind) -> None:
    logits, labels = fresh().normal(size=(2, 3, 4)), np.array([[0, 1, 3], [2, 2, 0]], dtype=kind)
    both(*("softmax_cross_entropy",) * 2, (logits, labels), "float64", TRAIN)


def test_no_label_at_all_is_a_loss_of_0() -> None:
    logits, labels = fresh().normal(size=(4, 3)), np.full(4, F.NO_LABEL)
    both(*("softmax_cross_entropy",) * 2, (logits, labels), "float64", TRAIN)


def test_logits_of_any_size_have_a_loss() -> None:
    logits = np.array([[1e4, -1e4, 1e4 - 1.0], [-3e38, 0.0, 3e38]])
    for dtype in DTYPES:
        both(*("softmax_cross_entropy",) * 2, (logits, np.array([2, 2])), dtype, TRAIN)


def test_a_class_that_is_ruled_out_has_a_loss_for_the_others() -> None:
    logits = np.array([[0.0, -np.inf, 0.0]])
    loss, cache = gpu.softmax_cross_entropy(asarray(logits), asarray(np.array([2])), context=TRAIN)
    np.testing.assert_allclose(down(loss), math.log(2.0))
    found = gpu.softmax_cross_entropy_backward(1.0, cache)
    np.testing.assert_allclose(down(found), [[0.5, 0.0, -0.5]])


@pytest.mark.parametrize("label", [-2, 3, 2**40])
def test_a_label_that_is_no_class_shows(label) -> None:
    logits, labels = asarray(np.zeros((2, 3))), asarray(np.array([0, label]))
    loss, cache = gpu.softmax_cross_entropy(logits, labels, context=TRAIN)
    assert np.isnan(down(loss))
    assert np.isfinite(down(gpu.softmax_cross_entropy_backward(1.0, cache))).all()


def test_the_gradient_of_a_loss_takes_an_array() -> None:
    logits, labels = asarray(fresh().normal(size=(5, 3))), asarray(np.array([0, 1, 2, 0, -1]))
    _, cache = gpu.softmax_cross_entropy(logits, labels, context=TRAIN)
    whole = gpu.softmax_cross_entropy_backward(0.25, cache)
    for _ in range(2):
        found = gpu.softmax_cross_entropy_backward(asarray(np.array(0.25)), cache)
        np.testing.assert_allclose(down(found), down(whole), rtol=1e-15)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("vocab_size", [1, 5, 3000])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 128, 700])
def test_embedding(n, vocab_size, dtype) -> None:
    rng = fresh()
    ids = np.minimum(rng.zipf(1.3, n), vocab_size) - 1  # a few ids very often, most never
    both("embedding", "embedding", (ids, rng.normal(size=(vocab_size, 33))), dtype, TRAIN)


def test_embedding_of_runs_that_end_at_the_edges_of_blocks() -> None:
    ids = np.repeat(np.arange(7), [64, 128, 1, 63, 65, 63, 64])
    fresh().shuffle(ids)
    both(
        "embedding",
        "embedding",
        (ids.reshape(4, -1), fresh().normal(size=(8, 3))),
        "float64",
        TRAIN,
    )


def test_embedding_adds_equal_ids_by_position() -> None:
    big, ids = 2.0**60, np.zeros(200, dtype="int64")
    dy = np.where(np.arange(200) % 2 == 0, big, -big)[:, None] + np.arange(200)[:, None]
    _, cache = gpu.embedding(asarray(ids), asarray(np.zeros((2, 1))), context=TRAIN)
    found = same_in_any_order(lambda: gpu.embedding_backward(asarray(dy), cache))
    in_order = 0.0
    for start in range(0, 200, embedding_module.RUN):
        part = 0.0
        for value in dy[start : start + embedding_module.RUN, 0]:
            part += value
        in_order += part
    assert down(found)[0, 0] == in_order


def test_embedding_in_any_order(place, monkeypatch) -> None:
    monkeypatch.setattr(embedding_module, "DETERMINISTIC", False)
    ids, table = fresh().integers(0, 9, (30, 5)), fresh().normal(size=(9, 40))
    y, cache = F.embedding(ids, table)
    dy = fresh().normal(size=y.shape)
    expected = F.embedding_backward(dy, cache)
    _, there = gpu.embedding(asarray(ids), asarray(table), context=TRAIN)
    for order in ORDERS:
        with emulated.in_order(order), emulated.launches() as seen:
            agree(gpu.embedding_backward(asarray(dy), there), expected, "float64")
        assert place != "emulated" or seen.names == ["add_rows"]


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("wrong", [-1, 3, 10**12])
def test_an_id_that_is_no_row_writes_nowhere(wrong, deterministic, monkeypatch) -> None:
    monkeypatch.setattr(embedding_module, "DETERMINISTIC", deterministic)
    for ids in (np.array([0, wrong, 2]), np.full(100, wrong)):
        dy = np.ones((len(ids), 2))
        found = gpu.embedding_backward(asarray(dy), (asarray(ids), (3, 2)))
        expected = [[float((ids == i).sum())] * 2 for i in range(3)]
        np.testing.assert_array_equal(down(found), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (3, 5, 8), (2, 4, 7), (2, 1, 33), (1, 70, 300), (6, 10)]
)
def test_fourier_mixing(shape, dtype) -> None:
    both(*("fourier_mixing",) * 2, (fresh().normal(size=shape),), dtype, TRAIN)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5])
def test_dropout(rate, dtype) -> None:
    x, dy = (fresh().normal(size=(7, 100)).astype(dtype) for _ in range(2))
    y, cache = F.dropout(x.astype("float64"), rate, np.random.default_rng(3))
    there, saved = gpu.dropout(up(x, dtype), rate, np.random.default_rng(3), context=TRAIN)
    agree(there, y, dtype)
    agree(gpu.dropout_backward(up(dy, dtype), saved), F.dropout_backward(dy, cache), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 255, 5000])
@pytest.mark.parametrize("shrink", [1.0, 0.99])
def test_adam(n, shrink, dtype) -> None:
    rng = fresh()
    arrays = [rng.normal(size=n).astype(dtype) for _ in range(3)]
    arrays.append(np.abs(rng.normal(size=n)).astype(dtype))
    wide, there = [a.astype("float64") for a in arrays], [up(a, dtype) for a in arrays]
    settings: dict[str, Any] = {
        "step_size": 1e-3,
        "betas": (0.9, 0.98),
        "eps": 1e-9,
        "shrink": shrink,
    }
    nf.optim.adam_update(*wide, **settings)
    gpu.adam_update(*there, **settings)
    agree(tuple(there), tuple(wide), dtype)


def test_adam_of_views_with_strides() -> None:
    wide = [np.abs(fresh().normal(size=(4, 6))) for _ in range(4)]
    there = [asarray(a)[:, ::2] for a in wide]
    settings: dict[str, Any] = {"step_size": 0.1, "betas": (0.9, 0.9), "eps": 1e-8, "shrink": 1.0}
    nf.optim.adam_update(*(a[:, ::2] for a in wide), **settings)
    gpu.adam_update(*there, **settings)
    agree(tuple(there), tuple(a[:, ::2] for a in wide), "float64")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 1000, 70000])
@pytest.mark.parametrize("max_norm", [0.5, 1e3])
def test_clipping(n, max_norm, dtype) -> None:
    g = fresh().normal(size=n).astype(dtype)
    wide = {"g": g.astype("float64")}
    norm = nf.clip_by_global_norm(wide, max_norm)

    def compute() -> tuple[Any, ...]:
        there = up(g, dtype)
        return gpu.clip_by_global_norm(there, max_norm), there

    agree(same_in_any_order(compute), (norm, wide["g"]), dtype)


def test_gradients_in_one_buffer_are_clipped_by_the_kernel(monkeypatch) -> None:
    seen, kernel = [], gpu.UPDATES["clip_by_global_norm"]

    def noted(flat: Any, max_norm: float) -> Any:
        seen.append(flat.size)
        return kernel(flat, max_norm)

    monkeypatch.setitem(gpu.UPDATES, "clip_by_global_norm", noted)
    norms = []
    for backend in ("numpy", "cupy"):
        gradients = nf.Gradients(nf.layers.Linear(3, 4, seed=0).to(backend))
        gradients.flat[...] = 2.0
        norms.append(float(down(nf.clip_by_global_norm(gradients, 0.5))))
        flat = down(gradients.flat)
        assert np.linalg.norm(flat) == pytest.approx(0.5, rel=1e-5)
    assert seen == [flat.size]
    assert norms[1] == pytest.approx(norms[0], rel=1e-6)


def test_clipping_shows_nan() -> None:
    g = asarray(np.array([1.0, float("nan")]))
    assert np.isnan(down(gpu.clip_by_global_norm(g, 1.0)))
    assert np.isnan(down(g)).all()


# Random numbers of the device


def philox(counter: np.ndarray, key: tuple[int, int]) -> np.ndarray:
    """Philox4x32-10 as Salmon et al. (2011) define it; counter and result are (n, 4) words."""
    c = [counter[:, i].astype(np.uint64) for i in range(4)]
    k0, k1 = (np.uint64(k) for k in key)
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [
            (second >> np.uint64(32)) ^ c[1] ^ k0,
            second & low,
            (first >> np.uint64(32)) ^ c[3] ^ k1,
            first & low,
        ]
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
    return np.stack(c, axis=1).astype(np.uint32)


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_the_reference_gives_the_published_numbers(counter, key, words) -> None:
    found = philox(np.array([counter]), (key[0], key[1]))[0]
    assert " ".join(f"{word:08x}" for word in found) == words


def reference(n: int, draw: int, seed: int) -> np.ndarray:
    """Return n words: four of each counter (position, draw)."""
    position = np.arange(-(-n // 4), dtype=np.uint64)
    low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
    rest = np.full((len(position), 2), [draw & 0xFFFFFFFF, draw >> 32], dtype=np.uint64)
    counter = np.column_stack([position & low, position >> high, rest])
    return philox(counter, (seed & 0xFFFFFFFF, seed >> 32)).reshape(-1)[:n]


@pytest.mark.parametrize("draw", [0, 1, 2**33 + 5])
@pytest.mark.parametrize("seed", [0, 7, 2**63 - 1])
@pytest.mark.parametrize("n", [1, 4, 5, 1023, 2049])
def test_masks_of_the_device_are_those_of_the_reference(n, seed, draw) -> None:
    generator = gpu.DeviceGenerator(seed)
    generator.draws = draw
    near = asarray(np.zeros(1, dtype="float32"))
    words = reference(n, draw, seed)
    kept = down(generator.kept((n,), 0.3, near))
    assert kept.dtype == bool
    np.testing.assert_array_equal(kept, words >= round(0.3 * 2**32))
    assert generator.draws == draw + 1
    uniform = down(generator.random((n,)))
    np.testing.assert_array_equal(uniform, (reference(n, draw + 1, seed) >> 8) * 2.0**-24)


def test_a_device_generator_drops_the_share_it_should() -> None:
    generator = gpu.DeviceGenerator(1)
    near = asarray(np.zeros(1, dtype="float32"))
    for rate in (0.1, 0.5):
        kept = down(generator.kept((100, 400), rate, near))
        assert abs(kept.mean() - (1.0 - rate)) < 5.0 * math.sqrt(rate * (1.0 - rate) / kept.size)


def test_a_device_generator_uploads_nothing_and_waits_for_nothing() -> None:
    x = asarray(fresh().normal(size=(6, 50)))
    generator = gpu.DeviceGenerator(1)
    with fake_device.count() as counted:
        y, _ = gpu.dropout(x, 0.5, generator, context=TRAIN)
        plain, _ = F.dropout(x, 0.5, generator)
    assert (counted.uploads, counted.synchronisations) == (0, 0)
    assert not np.array_equal(down(y), down(plain))  # two draws


def test_a_run_is_repeated_from_the_number_of_its_draws() -> None:
    x = asarray(np.ones((6, 50)))
    generator = gpu.DeviceGenerator(1)
    first, _ = gpu.dropout(x, 0.5, generator, context=TRAIN)
    second, _ = gpu.dropout(x, 0.5, generator, context=TRAIN)
    assert not np.array_equal(down(first), down(second))
    generator.draws = 0
    again, _ = gpu.dropout(x, 0.5, generator, context=TRAIN)
    np.testing.assert_array_equal(down(again), down(first))


@in_emulation
def test_a_training_run_may_draw_its_masks_on_the_device() -> None:
    runs, uploads = {}, {}
    for name, masks in (("host", "host"), ("device", "device"), ("again", "device")):
        model = cases.classifier("float32", dropout=0.3).to("cupy")
        data = cases.batch(model)
        with fake_device.count() as counted:
            history = nf.fit(model, data, epochs=2, batch_size=2, masks=masks, progress=False)
        runs[name], uploads[name] = history.train_loss, counted.uploads
    assert runs["again"] == runs["device"] != runs["host"]
    assert uploads["device"] < uploads["host"]


@pytest.mark.parametrize("seed", [-1, 2**63, 0.5, True])
def test_a_device_generator_refuses_a_seed_that_is_none(seed) -> None:
    with pytest.raises(ValueError, match="seed is"):
        gpu.DeviceGenerator(seed)


def test_other_generators_of_the_device_are_taken() -> None:
    class Uniform:
        def random(self, shape: tuple[int, ...], dtype: str) -> Any:
            return asarray(np.random.default_rng(3).random(shape, dtype=dtype))

    x = fresh().normal(size=(5, 9))
    y, _ = gpu.dropout(asarray(x), 0.4, Uniform(), context=TRAIN)
    kept = draw_kept(x.shape, 0.4, Uniform())
    np.testing.assert_allclose(down(y), np.where(down(kept), x / 0.6, 0.0), rtol=1e-15)


# Whole models, with kernels and without


def functional_alone(case: cases.Case) -> cases.Case:
    """Return the case with kernels on the device, and without them on the host."""

    def run(backend: str, dtype: str) -> cases.Results:
        with nf.use_kernels(backend == "cupy"):
            return case.run(backend, dtype)

    return replace(case, run=run)


@cases.parametrised(
    [*cases.LAYERS, *cases.MIXERS, *cases.ENCODERS, *cases.CLASSIFIERS, *cases.OPTIMIZING]
)
def test_layers_and_models_give_the_numbers_of_functional(case) -> None:
    cases.assert_agree(functional_alone(case), "cupy", "float64", TOLERANCE["float64"])


@cases.parametrised([*cases.ENCODERS, *cases.CLASSIFIERS])
def test_float32_stays_float32(case) -> None:
    cases.assert_agree(functional_alone(case), "cupy", "float32", TOLERANCE["float32"])


@cases.parametrised(cases.TRAINING)
def test_a_training_run_gives_the_numbers_of_functional(case) -> None:
    # Adam divides by the size of gradients: rounding in that of attention's key bias, which is 0,
    # becomes a step of 1e-16 / 1e-8 of the learning rate.
    cases.assert_agree(functional_alone(case), "cupy", "float64", 1e4 * TOLERANCE["float64"])


MIXED = ("attention", "dense_synthesizer", "fourier")


@pytest.mark.parametrize("dropout", [0.0, 0.2])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("mixer", MIXED)
def test_models_of_odd_sizes(mixer, norm, causal, masked, dropout) -> None:
    if causal and mixer == "fourier":
        pytest.skip("it sees all of a sequence at once")
    config = nf.EncoderConfig(
        d_model=36,
        n_layers=2,
        n_heads=3,
        d_ff=70,
        max_len=41,
        mixer=mixer,
        norm=norm,
        causal=causal,
        dropout=dropout,
        padding="zero",
    )
    rng = fresh()
    ids, labels = np.minimum(rng.zipf(1.5, (3, 37)), 50) - 1, np.array([0, 4, 2])
    mask = np.arange(37) < np.array([37, 20, 1])[:, None] if masked else None
    results = {}
    for backend in ("numpy", "cupy"):
        model = nf.SequenceClassifier(config, 5, vocab_size=50, dtype="float64").to(backend)
        with nf.use_kernels(backend == "cupy"):
            loss, gradients = model.loss_and_gradients(ids, labels, mask, seed=1)
            results[backend] = {"loss": np.array(loss), "logits": model(ids, mask), **gradients}
    largest = max(np.abs(down(x)).max() for x in results["numpy"].values())
    for name, x in results["cupy"].items():
        expected = down(results["numpy"][name])
        scale = max(np.abs(expected).max(), 1e-2 * largest)
        assert np.abs(down(x) - expected).max() <= TOLERANCE["float64"] * scale, name


# Which kernels run, and what they cost


@pytest.fixture
def one_step() -> Callable[..., Any]:
    """Run the second training step of a small model on the device and count what it does."""

    def run(enabled: bool = True, **changes: Any) -> tuple[list[str], fake_device.Counts]:
        model = cases.classifier("float32", **changes).to("cupy")
        optimizer = nf.Adam(model.parameters())
        with nf.use_kernels(enabled), Team(model) as team:
            for _ in range(2):
                with fake_device.count() as counted, emulated.launches() as seen:
                    batch = model.batch(*cases.batch(model), cases.MASK)
                    _, gradients = team.step(batch, generator=np.random.default_rng(0))
                    optimizer.step(gradients)
        return seen.names, counted

    return run


@in_emulation
@pytest.mark.parametrize("mixer", nf.MIXERS)
def test_a_step_waits_for_nothing(mixer, one_step) -> None:
    names, counted = one_step(mixer=mixer, dropout=0.1, padding="zero")
    assert counted.synchronisations == 0, counted.waits
    expected = {"residual_norm", "bias_gelu", "sums_of_runs", "cross_entropy", "adam_update"}
    assert expected <= set(names)


@in_emulation
@pytest.mark.parametrize("mixer", MIXED)
def test_a_step_launches_less(mixer, one_step) -> None:
    _, fused = one_step(mixer=mixer, padding="zero")
    names, plain = one_step(enabled=False, mixer=mixer, padding="zero")
    assert names == []
    assert fused.calls < plain.calls


def runs(layer: nf.Layer, x: Any) -> Any:
    """Return the backward kernel that waits in the cache of a layer; None after a plain pass."""
    _, cache = layer.forward(x, TRAIN)
    return cache.backward if type(cache) is Saved else None


def fused_block(layer: nf.Layer, x: Any) -> bool:
    """Return whether the sums of a block are one kernel with the norms behind them."""
    _, (mixed, fed) = layer.forward(x, TRAIN)
    found = [[type(part) is Saved for part in cache[1:3]] for cache in (mixed, fed)]
    assert found[0] == found[1]
    return found[0] == [True, False]


def test_kernels_go_without_on_request() -> None:
    x, X = asarray(np.zeros((2, 3))), asarray(np.zeros((2, 5, 8)))
    linear = nf.layers.Linear(3, 4, seed=0, dtype="float64").to("cupy")
    block = nf.Encoder(cases.config(), seed=0, dtype="float64").to("cupy").blocks[0]
    assert runs(nf.fast(linear), x) is gpu.linear_backward
    assert runs(linear, x) is None
    assert fused_block(nf.fast(block), X)
    assert not fused_block(block, X)
    assert update("adam_update", x[0]) is gpu.adam_update
    assert update("adam_update", x) is None  # it is for vectors
    with nf.use_kernels(False):
        assert nf.fast(linear) is linear
        assert nf.fast(block) is block
        assert update("adam_update", x[0]) is None
    assert isinstance(device_generator("cupy", 0), gpu.DeviceGenerator)
    assert device_generator("numpy", 0) is None


@in_emulation
def test_another_backend_has_no_kernels() -> None:
    backends.register(replace(fake_device.backend(), name="fake"))
    backends._backends.pop("cupy")
    x = nf.asarray(np.zeros((2, 3)), backend="fake")
    layer = nf.layers.Linear(3, 4, seed=0, dtype="float64").to("fake")
    assert nf.fast(layer) is layer
    assert update("adam_update", x[0]) is None
    assert device_generator("fake", 0) is None


def test_a_batch_without_samples_runs_nothing() -> None:
    empty = asarray(np.zeros((0, 4)))
    W, b = asarray(np.ones((4, 4))), asarray(np.ones(4))
    with emulated.launches() as seen:
        y, cache = gpu.feed_forward(empty, W, b, W, b, "gelu", TRAIN)
        assert y.shape == (0, 4)
        dx, dW1, db1, *_ = gpu.feed_forward_backward(empty, cache)
        z, norm_cache = gpu.layer_norm(empty, b, b, context=TRAIN)
        _, dgamma, _ = gpu.layer_norm_backward(z, norm_cache)
    assert seen.names == []
    for gradient in (dW1, db1, dgamma):
        assert (down(gradient) == 0.0).all()
    assert dx.shape == (0, 4)


# The instrument itself

BROKEN: dict[str, tuple[str, str]] = {
    "writes past the end": (
        'extern "C" __global__ void k(real* x, index_t n) { x[n] = 1; }',
        "outside of its arrays",
    ),
    "writes to a constant": (
        'extern "C" __global__ void k(const real* x, index_t n) { ((real*)x)[0] = 1; }',
        "which it declares const",
    ),
    "waits alone": (
        'extern "C" __global__ void k(real* x, index_t n) { if (threadIdx.x) __syncthreads(); }',
        "wait for others that do not come",
    ),
    "shuffles alone": (
        'extern "C" __global__ void k(real* x, index_t n) '
        "{ if (threadIdx.x) __shfl_xor_sync(WHOLE_WARP, x[0], 1); }",
        "wait for others that do not come",
    ),
    "shuffles with a part of a warp": (
        'extern "C" __global__ void k(real* x, index_t n) { __shfl_xor_sync(1u, x[0], 1); }',
        "a shuffle without all lanes",
    ),
    "is no C++": ('extern "C" __global__ void k(real* x, index_t n) { x[0] = y; }', "refuses"),
}


def small(code: str) -> Any:
    common = gpu.source.FOLDER / "common.cuh"
    text = f"#define real double\n{common.read_text('utf-8')}\n{code}"
    return emulated.RawModule(code=text).get_function("k")


@in_emulation
@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_kernel_is_found(what) -> None:
    code, message = BROKEN[what]
    with pytest.raises(emulated.LaunchError, match=message):
        small(code)((1,), (32,), (asarray(np.zeros(3)), 3))


@in_emulation
def test_a_kernel_reads_nan_past_the_end_and_in_shared_memory() -> None:
    code = (
        'extern "C" __global__ void k(real* x, index_t n) '
        "{ __shared__ real s[2]; if (threadIdx.x) return; x[0] = x[n]; x[1] = x[-1]; x[2] = s[1]; "
        "s[1] = 0; }"
    )
    x = asarray(np.zeros(3))
    small(code)((2,), (32,), (x, 3))
    assert np.isnan(down(x)).all()


@in_emulation
def test_a_missing_wait_shows_in_some_order() -> None:
    code = """
        extern "C" __global__ void k(real* x, index_t n) {
            __shared__ real s[64];
            s[threadIdx.x] = threadIdx.x;
            x[threadIdx.x] = s[63 - threadIdx.x];
        }"""
    results = set()
    for order in ORDERS:
        x = asarray(np.zeros(64))
        with emulated.in_order(order):
            small(code)((1,), (64,), (x, 64))
        results.add(down(x).tobytes())
    assert len(results) > 1


@in_emulation
@pytest.mark.parametrize("n_threads", [32, 96, 1024])
def test_sums_over_a_block_may_follow_each_other(n_threads) -> None:
    code = """
        extern "C" __global__ void k(real* x, index_t n) {
            const real mine = x[threadIdx.x];
            real one = mine, other = 2 * mine, again = mine + 1, and_again = mine + 2;
            block_sums(one, other);
            block_sums(again, and_again);
            const real first = block_sum(mine), last = block_sum(mine + 3);
            const real top = block_max(mine), low = -block_max(-mine);
            x[threadIdx.x] = one + 2 * other + 3 * first + 5 * top + 7 * again + 11 * and_again
                + 13 * last + 17 * low;
        }"""
    for order in ORDERS:
        for warp in range(n_threads // 32):
            # Whole numbers: their sums are exact. The largest is in each warp once.
            x = np.roll(np.arange(n_threads) - 5.0, 32 * warp)
            sums = 8.0 * x.sum() + (7.0 * (x + 1.0) + 11.0 * (x + 2.0) + 13.0 * (x + 3.0)).sum()
            there = asarray(x)
            with emulated.in_order(order):
                small(code)((1,), (n_threads,), (there, n_threads))
            np.testing.assert_array_equal(down(there), sums + 5.0 * x.max() + 17.0 * x.min())


@in_emulation
@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: (x,),
        lambda x: (x, 3.0),
        lambda x: (x, np.int32(3)),
        lambda x: (x, True),
        lambda x: (None, 3),
        lambda x: (x.astype("float32"), 3),
        lambda x: (asarray(np.zeros((3, 3)))[:, 0], 3),
        lambda x: (np.zeros(3), 3),
    ],
)
def test_a_launch_with_other_arguments_than_declared_is_refused(wrong) -> None:
    function = small('extern "C" __global__ void k(real* x, index_t n) {}')
    with pytest.raises(emulated.LaunchError):
        function((1,), (32,), wrong(asarray(np.zeros(3))))


def test_the_source_refuses_arrays_with_strides() -> None:
    x = asarray(np.zeros((3, 3)))[:, 0]
    with pytest.raises(ValueError, match="not C-contiguous"):
        gpu.adam.ADAM.launch("multiply", x, 1, 32, x, x, 3)


def test_the_source_refuses_arrays_of_two_dtypes() -> None:
    x, y = asarray(np.zeros(3)), asarray(np.zeros(3, dtype="float32"))
    with pytest.raises(TypeError, match="float32 beside one of float64"):
        gpu.adam.ADAM.launch("multiply", x, 1, 32, x, y, 3)


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
    given = {"x": np.zeros((2, 3, 4)), "mask": np.ones((2, 3), bool)} | wrong
    context = EngineContext(mask=asarray(given["mask"]))
    with pytest.raises(error, match=message):
        nf.fast(layer).forward(asarray(given["x"]), context)


@pytest.fixture(autouse=True)
def no_leftovers() -> Iterator[None]:
    yield
    assert emulated._order == 0
