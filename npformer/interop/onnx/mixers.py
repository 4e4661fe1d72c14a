"""Converters of mixers to ONNX: each is the forward pass of its mixer."""

import math
from functools import partial, reduce
from typing import Any

import numpy as np

from npformer import functional as F
from npformer import mixers as own
from npformer.core import to_numpy
from npformer.functional.averaging import window_reach
from npformer.functional.rotary import rotations
from npformer.interop.onnx.graph import Graph, Value
from npformer.interop.onnx.table import register

LOWEST = float(np.finfo("float32").min)


def by_head(x: Value, n_heads: int, size: int) -> Value:
    """(batch, length, size) -> (batch, heads, length, size / heads)."""
    return x.reshape(0, 0, n_heads, size // n_heads).transpose(0, 2, 1, 3)


def band(graph: Graph, causal: bool, window: int | None = None) -> list[Value]:
    """Return conditions on which tokens (columns) a token (row) may see."""
    at, (behind, ahead) = graph.positions(), window_reach(causal, window)
    back = at.at(1) - at.at(0)
    found = [] if ahead is None else [graph.node("GreaterOrEqual", back, np.int64(-ahead))]
    return found if behind is None else [*found, graph.node("LessOrEqual", back, np.int64(behind))]


def softmax(scores: Value, causal: bool, graph: Graph, window: int | None = None) -> Value:
    """Return weights of tokens that may be seen. Only padding sees none, and nothing reads it."""
    seen = [] if graph.mask is None else [graph.mask.at(1, 2)]
    seen += band(graph, causal, window)
    if seen:
        allowed = reduce(Value.__and__, seen)
        scores = graph.where(allowed, scores, LOWEST)
    return graph.node("Softmax", scores)


def averaging(layer: own.AveragingMixer, x: Value, graph: Graph, scores_of: Any) -> Value:
    """y = concat(softmax(scores) value) W_O."""
    scores = scores_of(layer, x, graph)
    size = layer.value.weight.shape[1]
    value = by_head(graph.apply(layer.value, x), layer.n_heads, size)
    return merged_heads(layer.output, softmax(scores, layer.causal, graph) @ value, graph)


def merged_heads(output: Any, heads: Value, graph: Graph) -> Value:
    """y = concat(heads) W_O."""
    size = output.weight.shape[0]
    return graph.apply(output, heads.transpose(0, 2, 1, 3).reshape(0, 0, size))


def scaled_scores(query: Value, key: Value, d_head: int) -> Value:
    """S = Q K^T / sqrt(d_head)."""
    return (query * (1.0 / math.sqrt(d_head))) @ key.transpose(0, 1, 3, 2)


def attention_scores(layer: Any, x: Value, graph: Graph) -> Value:
    """S = Q K^T / sqrt(d_head), Q = x W_Q, K = x W_K."""
    size = layer.query.weight.shape[1]
    query = by_head(graph.apply(layer.query, x), layer.n_heads, size)
    key = by_head(graph.apply(layer.key, x), layer.n_heads, size)
    return scaled_scores(query, key, size // layer.n_heads)


@register(own.Attention)
def attention(layer: own.Attention, x: Value, graph: Graph) -> Value:
    """y = concat(softmax(Q K^T / sqrt(d_head)) V) W_O."""
    weights = softmax(attention_scores(layer, x, graph), layer.causal, graph)
    value = by_head(graph.apply(layer.value, x), layer.n_heads, layer.value.weight.shape[1])
    return merged_heads(layer.output, weights @ value, graph)


@register(own.GeneralAttention, own.BlockwiseAttention)
def general_attention(layer: own.GeneralAttention, x: Value, graph: Graph) -> Value:
    """`attention` with groups, a window, norms of queries and keys, and rotations."""
    size = layer.query.weight.shape[1]
    d_head = size // layer.n_heads

    def compared(linear: Any, norm: Any, n_heads: int) -> Value:
        heads = by_head(graph.apply(linear, x), n_heads, linear.weight.shape[1])
        heads = heads if norm is None else graph.apply(norm, heads)
        theta = layer.rope_theta
        return heads if theta is None else turned(heads, d_head, theta, graph)

    query = compared(layer.query, layer.query_norm, layer.n_heads)
    key = shared(layer, compared(layer.key, layer.key_norm, layer.n_kv_heads), graph)
    value = by_head(graph.apply(layer.value, x), layer.n_kv_heads, layer.value.weight.shape[1])
    weights = softmax(scaled_scores(query, key, d_head), layer.causal, graph, layer.window)
    return merged_heads(layer.output, weights @ shared(layer, value, graph), graph)


def shared(layer: own.GeneralAttention, heads: Value, graph: Graph) -> Value:
    """Return keys or values once for each head of queries."""
    if layer.group == 1:
        return heads
    return graph.node("Gather", heads, np.arange(layer.n_heads) // layer.group, axis=1)


def turned(part: Value, d_head: int, theta: float, graph: Graph) -> Value:
    """(a cos t - b sin t, a sin t + b cos t) of the halves a and b of each head."""
    tables = rotations(np.arange(graph.max_len), d_head, theta, "float64")
    cosine, sine = (graph.cropped(table, 0) for table in tables)
    a, b = part.cut(0, d_head // 2, axis=-1), part.cut(d_head // 2, d_head, axis=-1)
    return graph.node("Concat", a * cosine - b * sine, a * sine + b * cosine, axis=-1)


def dense(x: Value, network: Any, graph: Graph, *, cropped: bool) -> Value:
    """S = relu(x W1 + b1) W2 + b2, with W2 and b2 of each head, perhaps cropped to the length."""
    W1, b1, W2, b2 = network
    hidden = by_head(graph.node("Relu", x @ W1 + b1), len(W2.value), W1.shape[1])
    if cropped:
        W2, b2 = graph.cropped(W2, -1), graph.cropped(b2, -1)
    y: Value = hidden @ W2 + graph.value(b2).at(1)
    return y


def dense_scores(layer: own.DenseScores, x: Value, graph: Graph) -> Value:
    """S = relu(x W1 + b1) W2 + b2."""
    return dense(x, layer.in_order(), graph, cropped=True)


def factorized_dense_scores(layer: own.FactorizedDenseScores, x: Value, graph: Graph) -> Value:
    """S_{t, ka + j} = long_{t, k} short_{t, j}: each of the two is a network of its own."""
    networks = layer.in_order()[:4], layer.in_order()[4:]
    short, long = (dense(x, each, graph, cropped=False) for each in networks)
    outer = long.at(-1) * short.at(-2)
    columns = networks[0][2].shape[-1] * networks[1][2].shape[-1]
    rows = graph.node("Shape", long, start=0, end=3)
    shape = graph.node("Concat", rows, [columns], axis=0)
    return graph.cut_to_length(graph.node("Reshape", outer, shape), [-1], 4)


def random_scores(layer: own.RandomScores, x: Value, graph: Graph) -> Value:
    """S = R, cropped to the length."""
    return graph.cropped(layer.R, 1, 2)


def factorized_random_scores(layer: own.FactorizedRandomScores, x: Value, graph: Graph) -> Value:
    """S = R1 R2^T, cropped to the length."""
    return graph.cropped(layer.R1, 1) @ graph.cropped(layer.R2, 1).transpose(0, 2, 1)


def mixture_scores(layer: own.MixtureScores, x: Value, graph: Graph) -> Value:
    """S = sum_i alpha_i S_i, alpha = softmax(logits)."""
    alpha, _ = F.softmax(to_numpy(layer.logits.value))
    each = zip(alpha.tolist(), layer.parts, strict=True)
    first, *others = (graph.apply(part, x) * share for share, part in each)
    scores: Value = sum(others, first)
    return scores


for alone, scores_of, *mixers in (
    (own.AttentionScores, attention_scores),
    (own.DenseScores, dense_scores, own.DenseSynthesizer),
    (own.FactorizedDenseScores, factorized_dense_scores, own.FactorizedDenseSynthesizer),
    (own.RandomScores, random_scores, own.RandomSynthesizer),
    (own.FixedRandomScores, random_scores, own.FixedRandomSynthesizer),
    (own.FactorizedRandomScores, factorized_random_scores, own.FactorizedRandomSynthesizer),
    (own.MixtureScores, mixture_scores, own.Mixture),
):
    register(alone)(scores_of)
    register(*mixers)(partial(averaging, scores_of=scores_of))


def whole_sequence(layer: own.WholeSequenceMixer, x: Value, graph: Graph, mix: Any) -> Value:
    """y = mix(x, n): n is the length, or that of each sequence, (batch, 1, 1)."""
    y: Value
    if graph.mask is None or layer.padding == "zero":
        y = mix(graph.without_padding(x), graph.length)
        return y
    of_each = graph.node("Max", graph.mask.to("int64").sum(1, keep=True), 1).at(-1)
    return graph.without_padding(mix(graph.without_padding(x), of_each))


@register(own.Fourier, own.Hartley)
def fourier(layer: own.Fourier | own.Hartley, x: Value, graph: Graph) -> Value:
    """y = Re(F x F), F = cos - i sin; a Hartley transform subtracts Im(F x F)."""
    turn = 2.0 * np.pi / graph.d_model
    angles = np.outer(np.arange(graph.d_model), np.arange(graph.d_model)) * turn  # float64

    def mix(x: Value, n: Value) -> Value:
        at = graph.positions()
        turns = graph.node("Mod", at.at(1) * at.at(0), n)  # whole numbers: nothing is rounded
        angle = turns.like(x) * (2.0 * math.pi) / n.like(x)
        C, S = graph.node("Cos", angle), graph.node("Sin", angle)
        by_cos, by_sin = x @ graph.value(np.cos(angles)), x @ graph.value(np.sin(angles))
        real = C @ by_cos - S @ by_sin
        return real + C @ by_sin + S @ by_cos if isinstance(layer, own.Hartley) else real

    return whole_sequence(layer, x, graph, mix)


@register(own.LinearMixing, own.RandomMixing)
def linear_mixing(layer: own.LinearMixing, x: Value, graph: Graph) -> Value:
    """y = W_sequence x W_features, with W_sequence cropped to the length."""
    W = graph.cropped(layer.W_sequence, 0, 1)
    return whole_sequence(layer, x, graph, lambda x, n: W @ x @ layer.W_features)


def convolution(x: Value, kernel: Value, length: Any, n_features: int, graph: Graph) -> Value:
    """y_t = sum_j x_{t-j} k_j: each feature has a kernel of its own, of this length."""
    turned = graph.node("Slice", kernel, [-1], [np.iinfo("int64").min], [0], [-1])
    size = graph.node("Sub", length, [1])
    pads = graph.node("Concat", [0, 0], size, [0, 0, 0], axis=0)
    padded = graph.node("Pad", x.transpose(0, 2, 1), pads)  # ONNX has channels first
    weight = turned.transpose(1, 0).at(1)
    return graph.node("Conv", padded, weight, group=n_features).transpose(0, 2, 1)


@register(own.GatedConvolution)
def gated_convolution(layer: own.GatedConvolution, x: Value, graph: Graph) -> Value:
    """y = (x0 * (k * (x1 v) + D x1 v)) W_O, all three from a short convolution."""
    d_model, short = graph.d_model, graph.value(layer.short)
    p = graph.without_padding(graph.apply(layer.inner, x))
    near = convolution(p, short, [layer.short.shape[0]], 3 * d_model, graph)
    x0, x1, v = (near.cut(i * d_model, (i + 1) * d_model, axis=-1) for i in range(3))
    z = graph.without_padding(x1 * v)
    kernel = graph.cropped(layer.kernel, 0)
    s = convolution(z, kernel, graph.length, d_model, graph) + z * layer.skip
    return graph.without_padding(graph.apply(layer.output, x0 * s))


@register(own.StateSpace)
def state_space(layer: own.StateSpace, x: Value, graph: Graph) -> Value:
    """y = gelu(k * x + D x) W_O; the kernel k is computed now, for max_len tokens."""
    x = graph.without_padding(x)
    log_step, log_decay, frequency, C = (
        to_numpy(parameter.value) for parameter in layer.kernel_parameters()
    )
    table, _ = F.state_space_kernel(
        log_step, log_decay, frequency, C, graph.max_len
    )  # [max_len, d_model]
    kernel = graph.cropped(table, 0)
    s = convolution(x, kernel, graph.length, graph.d_model, graph)
    a = graph.node("Gelu", s + x * layer.skip)
    return graph.without_padding(graph.apply(layer.output, a))
