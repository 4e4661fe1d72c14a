"""Kernels for the CPU: how they are run, and compared with their pairs."""

import math

import numpy as np

from npformer import functional as F
from npformer.engine import EngineContext
from npformer.engine.cpu import KERNELS
from npformer.engine.cpu.averaging import average_backward_in_tiles, average_in_tiles
from npformer.engine.cpu.exponentials import longest_square
from npformer.engine.cpu.rows import UNIT
from tests.kernels import helpers
from tests.kernels.helpers import expected, gradient_for

DOUBLE, SINGLE = 1e-12, 5e-6
"""How far apart two results may be, relative to the largest entry, in float64 and in float32."""

DIFFERENTIABLE = {name for name, pair in KERNELS.items() if pair[1] is not None}
"""Names of kernels with a backward pass; the others are for evaluation only."""


def forward(case, arrays, context):
    return helpers.forward(case, arrays, context, KERNELS)


def backward(case, dy, cache):
    return helpers.backward(case, dy, cache, KERNELS)


def run(case, dtype="float64", dy=None, **options):
    """Return y and the gradients of a kernel."""
    y, cache = forward(case, tuple(a.astype(dtype) for a in case.arrays), case.context(**options))
    return [y, *backward(case, gradient_for(y) if dy is None else dy.astype(dtype), cache)]


def relative_differences(ours, theirs):
    """Return the largest difference of each, relative to the largest entry.

    A gradient that is 0 by nature, as that of attention's key bias, is nothing but rounding: each
    is measured against a hundredth of the largest gradient at least, in float32 against a tenth.
    """
    share = 1e-2 if ours[0].dtype == "float64" else 1e-1
    assert len(ours) == len(theirs)
    largest = max((np.abs(g).max(initial=0.0) for g in theirs[1:]), default=0.0)
    differences = []
    for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert one.shape == other.shape, (i, one.shape, other.shape)
        scale = max(np.abs(other).max(initial=0.0), share * largest if i else 0.0, 1e-300)
        differences.append(float(np.abs(one - other).max(initial=0.0) / scale))
    return differences


def assert_close(ours, theirs, bound):
    """Assert that y and all gradients agree: NaN agrees with nothing."""
    differences = relative_differences(ours, theirs)
    assert all(difference <= bound for difference in differences), differences


def assert_parity(case, double=DOUBLE, single=SINGLE, dy=None):
    """Assert that a kernel computes what its pairs do, in both precisions."""
    for dtype, bound in (("float64", double), ("float32", single)):
        ours = run(case, dtype, dy)
        assert {a.dtype for a in ours} == {np.dtype(dtype)}
        assert_close(ours, expected(case, dtype, dy), bound)


def assert_same(arrays, expected_arrays):
    """Assert that arrays are equal to the last bit."""
    for one, other in zip(arrays, expected_arrays, strict=True):
        np.testing.assert_array_equal(one, other)


def run_kernel(query, key, value, dy, bias=None, mask=None, **options):
    """Return y and the gradients of query, key, value and bias of `average_in_tiles` alone."""
    batch, n_heads, length, width = value.shape
    y, query = np.empty((batch, length, n_heads * width), value.dtype), UNIT * query
    squares = (longest_square(a.reshape(-1, a.shape[-1]), a.shape[-1]) for a in (query, key))
    largest_score = math.sqrt(math.prod(squares))
    context = EngineContext(mask=mask)
    cache = average_in_tiles(
        query, key, value, y, context, largest_score=largest_score, bias=bias, **options
    )
    dquery, dkey, dvalue = (np.full_like(a, np.nan) for a in (query, key, value))
    dbias = average_backward_in_tiles(F.merge_heads(dy), cache, dquery, dkey, dvalue)
    # dquery is that of the queries without UNIT: a factor UNIT too much, and one too little.
    results = [F.split_heads(y, n_heads), dquery, dkey / UNIT, dvalue]
    return results if bias is None else [*results, dbias]


def run_pair(query, key, value, dy, bias=None, mask=None, causal=False):
    """Return the same by scores and functional averages."""
    scores = query @ key.swapaxes(-1, -2)
    if bias is not None:
        scores = scores + bias[:, None, :]
    y, cache = F.average(scores, value, None if mask is None else mask[:, None, None, :], causal)
    dscores, dvalue = F.average_backward(dy, cache)
    dkey = dscores.swapaxes(-1, -2) @ query
    if key.shape[0] != query.shape[0]:
        dkey = dkey.sum(axis=0, keepdims=True)
    results = [y, dscores @ key, dkey, dvalue]
    return results if bias is None else [*results, dscores.sum(axis=(0, 2))]


CASES = {
    "linear": helpers.linear(),
    "linear without bias": helpers.linear(bias=False),
    "linear, a vector": helpers.linear((64,)),
    "linear, larger": helpers.linear((5, 29, 64), 65),
    "layer_norm": helpers.layer_norm(),
    "layer_norm, larger": helpers.layer_norm((5, 29, 64)),
    "feed_forward": helpers.feed_forward(),
    "feed_forward, gelu_tanh": helpers.feed_forward(activation="gelu_tanh"),
    "feed_forward, tanh": helpers.feed_forward(activation="tanh"),
    "feed_forward, relu": helpers.feed_forward((5, 29, 64), activation="relu"),
    "rms_norm": helpers.rms_norm(),
    "rms_norm, larger": helpers.rms_norm((5, 29, 64), 0.1),
    "gated_feed_forward, gelu": helpers.gated_feed_forward(activation="gelu"),
    "gated_feed_forward, relu": helpers.gated_feed_forward(activation="relu"),
    "gated_feed_forward": helpers.gated_feed_forward(),
    "gated_feed_forward, larger": helpers.gated_feed_forward((5, 29, 64)),
    "fourier_mixing": helpers.fourier_mixing(),
    "fourier_mixing, larger": helpers.fourier_mixing((5, 29, 64)),
    "embedding": helpers.embedding(),
    "embedding, larger": helpers.embedding((5, 67)),
    "dropout": helpers.dropout(),
    "dropout, larger": helpers.dropout((5, 29, 64)),
    "dropout of nothing": helpers.dropout(rate=0.0),
    "residual_norm": helpers.residual_norm(),
    "residual_norm, at evaluation": helpers.residual_norm(training=False),
    "residual_norm, larger": helpers.residual_norm((5, 29, 64), rate=0.0),
    "softmax_cross_entropy": helpers.cross_entropy(),
    "softmax_cross_entropy, smooth": helpers.cross_entropy((5, 29, 64), smoothing=0.1),
    "attention_heads": helpers.attention_heads(),
    "attention_heads, larger": helpers.attention_heads(2, 40, 2, 32, mask="padded", causal=True),
    "attention_heads, not stored": helpers.attention_heads(2, 40, 2, 32, store=False),
    "attention_heads, turned": helpers.attention_heads(mask="padded", theta=100.0),
    "attention_heads, turned, long": helpers.attention_heads(2, 600, 2, 4, theta=1e4),
    "attention_heads, grouped": helpers.attention_heads(2, 13, 6, 4, "padded", kv_heads=2),
    "attention_heads, a window": helpers.attention_heads(mask="padded", theta=9.0, window=4),
    "attention_heads, last tokens": helpers.attention_heads(2, 40, causal=True, window=5),
    "attention_heads, long window": helpers.attention_heads(
        1, 300, 4, 4, "padded", kv_heads=1, window=66
    ),
    "attention_heads, long, last": helpers.attention_heads(
        1, 300, 2, 4, "padded", True, scale=4.0, window=65
    ),
    "attention_heads, row maxima": helpers.attention_heads(mask="padded", scale=8.0),
    "dense_heads": helpers.dense_heads(),
    "dense_heads, one sample": helpers.dense_heads(batch=1, mask="in front"),
    "dense_heads, larger": helpers.dense_heads(2, 40, 2, 32, 57, mask="padded", causal=True),
    "dense_heads, row maxima": helpers.dense_heads(mask="padded", bias=100.0),
}
"""Each kernel in its variants."""
