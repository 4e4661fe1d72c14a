"""Sublayers of a few short sequences at evaluation, each as one compiled call, products included.

A product of a short sequence takes a few microseconds: no longer than the calls from Python around
it. Here everything between a sublayer's input and its output is one call, in one thread. That needs
the compiled loops; without them, or beyond the limits in `twin_classes`, other kernels compute.

`python -m benchmarks short` compares predictions of one sample with PyTorch's and onnxruntime's.
"""

# mypy: disallow-untyped-calls=False

import math
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.core import Array
from npformer.engine.cpu.activations import (
    ACTIVATIONS,
    gelu_loop,
    gelu_tanh_loop,
    relu_loop,
    silu_loop,
)
from npformer.engine.cpu.loops import exp, loop_helper
from npformer.engine.cpu.norms import norm_loop
from npformer.engine.cpu.rows import leaf

ACTIVATIONS_WITH_LOOPS = ("relu", "gelu", "gelu_tanh", "silu")
"""Compiled code takes the index of the activation."""


def can_compile_for(*arrays: Any) -> bool:
    """Return whether arrays are of one dtype, C-contiguous and writable.

    For any others, numba would compile again, which takes seconds.
    """
    dtype = arrays[0].dtype
    for array in arrays:
        if type(array) is not np.ndarray or array.dtype is not dtype:
            return False
        flags = array.flags
        if not (flags.c_contiguous and flags.writeable):
            return False
    return True


# Softmax averages by head ------------------------------------------------------------------------


@loop_helper
def average_of_head(q, k, bias, v, causal, scores, y):  # type: ignore[no-untyped-def]
    """Write softmax(q k + bias) v into y, in a loop; k is transposed, and `bias` is one row."""
    length = len(q)
    np.dot(q, k, scores)
    for i in range(length):
        row = scores[i]
        visible = i + 1 if causal else length
        top = row[0] + bias[0]
        for j in range(visible):
            row[j] += bias[j]
            top = max(top, row[j])
        for j in range(visible):
            row[j] = exp(row[j] - top)
        total = q.dtype.type(0.0)
        for j in range(visible):
            total += row[j]
        for j in range(visible):
            row[j] /= total
        for j in range(visible, length):
            row[j] = q.dtype.type(0.0)
    np.dot(scores, v, y)


def _attention_loop(x, W_q, b_q, W_k, b_k, W_v, b_v, W_o, b_o, n_heads, causal, z):  # type: ignore[no-untyped-def]
    batch, length, d = x.shape
    d_head = d // n_heads
    scale = x.dtype.type(1.0 / math.sqrt(d_head))
    q, v = np.empty((length, d_head), x.dtype), np.empty((length, d_head), x.dtype)
    k, y = np.empty((d_head, length), x.dtype), np.empty((length, d_head), x.dtype)
    scores, heads = np.empty((length, length), x.dtype), np.empty((length, d), x.dtype)
    no_bias = np.zeros(length, x.dtype)
    for sample in range(batch):
        rows = x[sample]
        queries, keys, values = np.dot(rows, W_q), np.dot(rows, W_k), np.dot(rows, W_v)
        for first in range(0, d, d_head):
            for i in range(length):
                for j in range(d_head):
                    q[i, j] = (queries[i, first + j] + b_q[first + j]) * scale
                    k[j, i] = keys[i, first + j] + b_k[first + j]
                    v[i, j] = values[i, first + j] + b_v[first + j]
            average_of_head(q, k, no_bias, v, causal, scores, y)
            heads[:, first : first + d_head] = y
        np.dot(heads, W_o, z[sample])
        z[sample] += b_o


@leaf(_attention_loop)
def attention_of_short(
    x: Array,
    W_query: Array,
    b_query: Array,
    W_key: Array,
    b_key: Array,
    W_value: Array,
    b_value: Array,
    W_output: Array,
    b_output: Array,
    n_heads: int,
    causal: bool,
    z: Array,
) -> None:
    """Replaces `functional.linear` and `functional.scaled_dot_product_attention`.

    Write the output of `Attention` into z, in the shape of x: (batch, length, d_model).
    """
    query, key, value = (
        F.split_heads(F.linear(x, W, b)[0], n_heads)
        for W, b in ((W_query, b_query), (W_key, b_key), (W_value, b_value))
    )
    heads, _ = F.scaled_dot_product_attention(query, key, value, causal=causal)
    z[...] = F.linear(F.merge_heads(heads), W_output, b_output)[0]


def _dense_loop(x, W1, b1, W2, b2, W_v, b_v, W_o, b_o, causal, z):  # type: ignore[no-untyped-def]
    batch, length, d = x.shape
    d_head = d // len(W2)
    zero = x.dtype.type(0.0)
    q, v = np.empty((length, d_head), x.dtype), np.empty((length, d_head), x.dtype)
    y = np.empty((length, d_head), x.dtype)
    scores, heads = np.empty((length, length), x.dtype), np.empty((length, d), x.dtype)
    for sample in range(batch):
        hidden, values = np.dot(x[sample], W1), np.dot(x[sample], W_v)
        for head in range(len(W2)):
            first = head * d_head
            for i in range(length):
                for j in range(d_head):
                    h = hidden[i, first + j] + b1[first + j]
                    q[i, j] = zero if h <= zero else h  # NaN remains
                    v[i, j] = values[i, first + j] + b_v[first + j]
            k = np.ascontiguousarray(W2[head, :, :length])
            average_of_head(q, k, b2[head], v, causal, scores, y)
            heads[:, first : first + d_head] = y
        np.dot(heads, W_o, z[sample])
        z[sample] += b_o


@leaf(_dense_loop)
def dense_synthesizer_of_short(
    x: Array,
    W1: Array,
    b1: Array,
    W2: Array,
    b2: Array,
    W_value: Array,
    b_value: Array,
    W_output: Array,
    b_output: Array,
    causal: bool,
    z: Array,
) -> None:
    """Replaces `functional.dense_synthesizer` and `functional.linear`.

    Write the output of `DenseSynthesizer` into z, in the shape of x: (batch, length, d_model).
    """
    value = F.split_heads(F.linear(x, W_value, b_value)[0], len(W2))
    heads, _ = F.dense_synthesizer(x, value, W1, b1, W2, b2, causal=causal)
    z[...] = F.linear(F.merge_heads(heads), W_output, b_output)[0]


# The rest of a block -----------------------------------------------------------------------------


def _network_loop(x, y, gamma1, beta1, eps1, W1, b1, W2, b2, activation, gamma2, beta2, eps2, z):  # type: ignore[no-untyped-def]
    n, d = x.shape
    root = x.dtype.type(math.sqrt(d))
    lengths = np.empty((n, 1), x.dtype)
    u = np.empty_like(x)
    if gamma1 is None:  # the norms come first
        total = x + y
        norm_loop(total, None, gamma2 * root, beta2, eps2, True, None, lengths, u)
    else:
        norm_loop(x, y, gamma1 * root, beta1, eps1, True, None, lengths, u)
    hidden = np.dot(u, W1)
    if activation == 0:
        relu_loop(hidden, b1, hidden, None)
    elif activation == 1:
        gelu_loop(hidden, b1, hidden, None)
    elif activation == 2:
        gelu_tanh_loop(hidden, b1, hidden, None)
    else:
        silu_loop(hidden, b1, hidden, None)
    np.dot(hidden, W2, z)
    z += b2
    if gamma1 is None:
        z += total
    else:
        norm_loop(u, z, gamma2 * root, beta2, eps2, True, None, lengths, z)


@leaf(_network_loop)
def network_of_short(
    x: Array,
    y: Array,
    gamma1: Array | None,
    beta1: Array | None,
    eps1: float,
    W1: Array,
    b1: Array,
    W2: Array,
    b2: Array,
    activation: int,
    gamma2: Array,
    beta2: Array,
    eps2: float,
    z: Array,
) -> None:
    """Replaces `functional.layer_norm`, and `functional.linear` twice with an activation between.

    Write into z, in the shape of x, what follows in a block when its mixer has returned y for x:
    with u = norm1(x + y) the rows norm2(u + network(u)). Without gamma1 the norms come first: with
    u = x + y the rows u + network(norm2(u)).
    """
    activate = ACTIVATIONS[ACTIVATIONS_WITH_LOOPS[activation]]
    total = x + y
    before = total
    if gamma1 is None:
        before = F.layer_norm(total, gamma2, beta2, eps2)[0]
    else:
        total = before = F.layer_norm(total, gamma1, beta1, eps1)[0]
    hidden = before @ W1
    activate(hidden, b1, hidden, None)
    total = total + F.linear(hidden, W2, b2)[0]
    z[...] = total if gamma1 is None else F.layer_norm(total, gamma2, beta2, eps2)[0]


# Kernels, which return None if compiled code cannot take the arrays ------------------------------


def short_attention(x: Array, *parameters: Array, n_heads: int, causal: bool) -> Array | None:
    """Replaces `functional.linear` and `functional.scaled_dot_product_attention`.

    `parameters` are weight and bias of the maps for queries, keys, values and output.
    """
    d = x.shape[-1]
    are_square = all(W.shape == (d, d) for W in parameters[::2])
    if not (attention_of_short.runs_loop and are_square and can_compile_for(x, *parameters)):
        return None
    z = np.empty_like(x)
    attention_of_short(x, *parameters, n_heads, causal, z)
    return z


def short_dense_synthesizer(x: Array, *parameters: Array, causal: bool) -> Array | None:
    """Replaces `functional.dense_synthesizer` and `functional.linear`.

    `parameters` are W1, b1, W2 and b2, then weight and bias of the maps for values and output.
    """
    W1, _, W2, _, W_value, _, W_output, _ = parameters
    d = x.shape[-1]
    fits = W1.shape == W_value.shape == W_output.shape == (d, d) and x.shape[1] <= W2.shape[-1]
    if not (dense_synthesizer_of_short.runs_loop and fits and can_compile_for(x, *parameters)):
        return None
    z = np.empty_like(x)
    dense_synthesizer_of_short(x, *parameters, causal, z)
    return z


def short_network(
    x: Array,
    y: Array,
    norm1: tuple[Array, Array, float] | None,
    maps: list[Array],
    activation: str,
    norm2: tuple[Array, Array, float],
) -> Array | None:
    """Replaces `functional.layer_norm`, and `functional.linear` twice with an activation between.

    A norm is its gamma, beta and eps; without `norm1` the norms come first, as in
    `network_of_short`. `maps` are the weights and biases of the network.
    """
    d = x.shape[-1]
    W1, _, W2, _ = maps
    gamma1, beta1, eps1 = norm1 or (None, None, 0.0)
    gamma2, beta2, eps2 = norm2
    norms = [gamma2, beta2] if norm1 is None else [gamma1, beta1, gamma2, beta2]
    fits = y.shape == x.shape and W1.shape == W2.shape[::-1] == (d, W2.shape[0])
    fits = fits and all(array.shape == (d,) for array in norms)
    has_loop = activation in ACTIVATIONS_WITH_LOOPS and network_of_short.runs_loop
    if not (has_loop and fits and can_compile_for(x, y, *maps, *norms)):
        return None
    z = np.empty_like(x)
    network_of_short(
        x.reshape(-1, d),
        y.reshape(-1, d),
        gamma1,
        beta1,
        eps1,
        *maps,
        ACTIVATIONS_WITH_LOOPS.index(activation),
        gamma2,
        beta2,
        eps2,
        z.reshape(-1, d),
    )
    return z
