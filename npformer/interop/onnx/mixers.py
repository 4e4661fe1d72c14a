"""Converters of mixers to ONNX: each is the forward pass of its mixer."""

import math
from functools import partial, reduce
from typing import Any

import numpy as np

from npformer import functional as F
from npformer import mixers as M
from npformer.core import to_numpy
from npformer.functional.averaging import window_reach
from npformer.functional.rotary import rotations
from npformer.interop.onnx.converters import register
from npformer.interop.onnx.graph import Graph, Value

LOWEST = float(np.finfo("float32").min)


def reshape_to_heads(x: Value, n_heads: int, size: int) -> Value:
    """(batch, length, size) -> (batch, heads, length, size / heads)."""
    return x.reshape(0, 0, n_heads, size // n_heads).transpose(0, 2, 1, 3)


def band(graph: Graph, causal: bool, window: int | None = None) -> list[Value]:
    """Return conditions on which tokens (columns) a token (row) may attend to."""
    positions = graph.positions()
    behind, ahead = window_reach(causal, window)
    distance = positions.expand_dims(1) - positions.expand_dims(0)  # positive: behind the row
    conditions = []
    if ahead is not None:
        conditions.append(graph.node("GreaterOrEqual", distance, np.int64(-ahead)))
    if behind is not None:
        conditions.append(graph.node("LessOrEqual", distance, np.int64(behind)))
    return conditions


def softmax(scores: Value, causal: bool, graph: Graph, window: int | None = None) -> Value:
    """Return the weights of the tokens that a token may attend to.

    Only padding may have none; nothing reads its output.
    """
    conditions = []
    if graph.mask is not None:
        conditions.append(graph.mask.expand_dims(1, 2))
    conditions += band(graph, causal, window)
    if conditions:
        allowed = reduce(Value.__and__, conditions)
        scores = graph.where(allowed, scores, LOWEST)
    return graph.node("Softmax", scores)


def averaging(layer: M.AveragingMixer, x: Value, graph: Graph, scores_of: Any) -> Value:
    """y = concat(softmax(scores) value) W_O."""
    scores = scores_of(layer, x, graph)
    size = layer.value.weight.shape[1]
    value = reshape_to_heads(graph.apply(layer.value, x), layer.n_heads, size)
    return join_heads(layer.output, softmax(scores, layer.causal, graph) @ value, graph)


def join_heads(output: Any, heads: Value, graph: Graph) -> Value:
    """y = concat(heads) W_O."""
    size = output.weight.shape[0]
    return graph.apply(output, heads.transpose(0, 2, 1, 3).reshape(0, 0, size))


def dot_product_scores(query: Value, key: Value, d_head: int) -> Value:
    """S = Q K^T / sqrt(d_head)."""
    return (query * (1.0 / math.sqrt(d_head))) @ key.transpose(0, 1, 3, 2)


def attention_scores(layer: Any, x: Value, graph: Graph) -> Value:
    """S = Q K^T / sqrt(d_head), Q = x W_Q, K = x W_K."""
    size = layer.query.weight.shape[1]
    query = reshape_to_heads(graph.apply(layer.query, x), layer.n_heads, size)
    key = reshape_to_heads(graph.apply(layer.key, x), layer.n_heads, size)
    return dot_product_scores(query, key, size // layer.n_heads)


@register(M.Attention)
def attention(layer: M.Attention, x: Value, graph: Graph) -> Value:
    """y = concat(softmax(Q K^T / sqrt(d_head)) V) W_O."""
    weights = softmax(attention_scores(layer, x, graph), layer.causal, graph)
    value = reshape_to_heads(
        graph.apply(layer.value, x), layer.n_heads, layer.value.weight.shape[1]
    )
    return join_heads(layer.output, weights @ value, graph)


@register(M.GeneralAttention, M.BlockwiseAttention)
def general_attention(layer: M.GeneralAttention, x: Value, graph: Graph) -> Value:
    """`attention` with groups, a window, norms of queries and keys, and rotations."""
    size = layer.query.weight.shape[1]
    d_head = size // layer.n_heads

    def project(linear: Any, norm: Any, n_heads: int) -> Value:
        heads = reshape_to_heads(graph.apply(linear, x), n_heads, linear.weight.shape[1])
        if norm is not None:
            heads = graph.apply(norm, heads)
        if layer.rope_theta is not None:
            heads = rotate(heads, d_head, layer.rope_theta, graph)
        return heads

    query = project(layer.query, layer.query_norm, layer.n_heads)
    key = repeat_heads(layer, project(layer.key, layer.key_norm, layer.n_kv_heads), graph)
    value = reshape_to_heads(
        graph.apply(layer.value, x), layer.n_kv_heads, layer.value.weight.shape[1]
    )
    weights = softmax(dot_product_scores(query, key, d_head), layer.causal, graph, layer.window)
    return join_heads(layer.output, weights @ repeat_heads(layer, value, graph), graph)


def repeat_heads(layer: M.GeneralAttention, heads: Value, graph: Graph) -> Value:
    """Return keys or values repeated for each head of queries."""
    if layer.group == 1:
        return heads
    return graph.node("Gather", heads, np.arange(layer.n_heads) // layer.group, axis=1)


def rotate(heads: Value, d_head: int, theta: float, graph: Graph) -> Value:
    """(a cos t - b sin t, a sin t + b cos t) of the halves a and b of each head."""
    tables = rotations(np.arange(graph.max_len), d_head, theta, "float64")
    cosine, sine = (graph.crop(table, 0) for table in tables)
    a = heads.cut(0, d_head // 2, axis=-1)
    b = heads.cut(d_head // 2, d_head, axis=-1)
    return graph.node("Concat", a * cosine - b * sine, a * sine + b * cosine, axis=-1)


def dense(x: Value, network: Any, graph: Graph, *, cropped: bool) -> Value:
    """S = relu(x W1 + b1) W2 + b2 with W2 and b2 of each head; `cropped`: to the length."""
    W1, b1, W2, b2 = network
    hidden = reshape_to_heads(graph.node("Relu", x @ W1 + b1), len(W2.value), W1.shape[1])
    if cropped:
        W2, b2 = graph.crop(W2, -1), graph.crop(b2, -1)
    y: Value = hidden @ W2 + graph.value(b2).expand_dims(1)
    return y


def dense_scores(layer: M.DenseScores, x: Value, graph: Graph) -> Value:
    """S = relu(x W1 + b1) W2 + b2."""
    return dense(x, layer.score_parameters(), graph, cropped=True)


def factorized_dense_scores(layer: M.FactorizedDenseScores, x: Value, graph: Graph) -> Value:
    """S_{t, ka + j} = long_{t, k} short_{t, j}, with a separate network for each factor."""
    short_network = layer.score_parameters()[:4]
    long_network = layer.score_parameters()[4:]
    short = dense(x, short_network, graph, cropped=False)
    long = dense(x, long_network, graph, cropped=False)
    outer = long.expand_dims(-1) * short.expand_dims(-2)
    columns = short_network[2].shape[-1] * long_network[2].shape[-1]
    rows = graph.node("Shape", long, start=0, end=3)
    shape = graph.node("Concat", rows, [columns], axis=0)
    return graph.cut_to_length(graph.node("Reshape", outer, shape), [-1], 4)


def random_scores(layer: M.RandomScores, x: Value, graph: Graph) -> Value:
    """S = R, cropped to the length."""
    return graph.crop(layer.R, 1, 2)


def factorized_random_scores(layer: M.FactorizedRandomScores, x: Value, graph: Graph) -> Value:
    """S = R1 R2^T, cropped to the length."""
    return graph.crop(layer.R1, 1) @ graph.crop(layer.R2, 1).transpose(0, 2, 1)


def mixture_scores(layer: M.MixtureScores, x: Value, graph: Graph) -> Value:
    """S = sum_i alpha_i S_i, alpha = softmax(logits)."""
    alpha, _ = F.softmax(to_numpy(layer.logits.value))
    weights_and_layers = zip(alpha.tolist(), layer.parts, strict=True)
    first, *rest = [graph.apply(scores, x) * weight for weight, scores in weights_and_layers]
    total: Value = sum(rest, first)
    return total


for scores_class, scores_of, *mixers in (
    (M.AttentionScores, attention_scores),
    (M.DenseScores, dense_scores, M.DenseSynthesizer),
    (M.FactorizedDenseScores, factorized_dense_scores, M.FactorizedDenseSynthesizer),
    (M.RandomScores, random_scores, M.RandomSynthesizer),
    (M.FixedRandomScores, random_scores, M.FixedRandomSynthesizer),
    (M.FactorizedRandomScores, factorized_random_scores, M.FactorizedRandomSynthesizer),
    (M.MixtureScores, mixture_scores, M.Mixture),
):
    register(scores_class)(scores_of)
    register(*mixers)(partial(averaging, scores_of=scores_of))


def whole_sequence(layer: M.WholeSequenceMixer, x: Value, graph: Graph, mix: Any) -> Value:
    """y = mix(x, n): n is the length, or the length of each sequence, (batch, 1, 1)."""
    y: Value
    if graph.mask is None or layer.padding == "zero":
        y = mix(graph.zero_padding(x), graph.length)
        return y
    n_tokens = graph.mask.cast("int64").sum(1, keep=True)
    lengths = graph.node("Max", n_tokens, 1).expand_dims(-1)
    return graph.zero_padding(mix(graph.zero_padding(x), lengths))


@register(M.Fourier, M.Hartley)
def fourier(layer: M.Fourier | M.Hartley, x: Value, graph: Graph) -> Value:
    """y = Re(F x F), F = cos - i sin; a Hartley transform subtracts Im(F x F)."""
    features = np.arange(graph.d_model)
    angles = np.outer(features, features) * (2.0 * np.pi / graph.d_model)  # float64

    def mix(x: Value, n: Value) -> Value:
        positions = graph.positions()
        products = positions.expand_dims(1) * positions.expand_dims(0)
        turns = graph.node("Mod", products, n)  # integers: nothing is rounded
        angle = turns.cast_like(x) * (2.0 * math.pi) / n.cast_like(x)
        C = graph.node("Cos", angle)
        S = graph.node("Sin", angle)
        x_cos = x @ graph.value(np.cos(angles))
        x_sin = x @ graph.value(np.sin(angles))
        real = C @ x_cos - S @ x_sin
        if isinstance(layer, M.Hartley):
            return real + C @ x_sin + S @ x_cos
        return real

    return whole_sequence(layer, x, graph, mix)


@register(M.LinearMixing, M.RandomMixing)
def linear_mixing(layer: M.LinearMixing, x: Value, graph: Graph) -> Value:
    """y = W_sequence x W_features, with W_sequence cropped to the length."""
    W = graph.crop(layer.W_sequence, 0, 1)
    return whole_sequence(layer, x, graph, lambda x, n: W @ x @ layer.W_features)


def convolution(x: Value, kernel: Value, length: Any, n_features: int, graph: Graph) -> Value:
    """y_t = sum_j x_{t-j} k_j, with a separate kernel of this length for each feature."""
    reversed_kernel = graph.node("Slice", kernel, [-1], [np.iinfo("int64").min], [0], [-1])
    size = graph.node("Sub", length, [1])
    pads = graph.node("Concat", [0, 0], size, [0, 0, 0], axis=0)
    padded = graph.node("Pad", x.transpose(0, 2, 1), pads)  # ONNX has channels first
    weight = reversed_kernel.transpose(1, 0).expand_dims(1)
    return graph.node("Conv", padded, weight, group=n_features).transpose(0, 2, 1)


@register(M.GatedConvolution)
def gated_convolution(layer: M.GatedConvolution, x: Value, graph: Graph) -> Value:
    """y = (x0 * (k * (x1 v) + D x1 v)) W_O, all three from a short convolution."""
    d_model = graph.d_model
    short_kernel = graph.value(layer.short)
    p = graph.zero_padding(graph.apply(layer.inner, x))
    mixed = convolution(p, short_kernel, [layer.short.shape[0]], 3 * d_model, graph)
    x0, x1, v = (mixed.cut(i * d_model, (i + 1) * d_model, axis=-1) for i in range(3))
    z = graph.zero_padding(x1 * v)
    kernel = graph.crop(layer.kernel, 0)
    s = convolution(z, kernel, graph.length, d_model, graph) + z * layer.skip
    return graph.zero_padding(graph.apply(layer.output, x0 * s))


@register(M.StateSpace)
def state_space(layer: M.StateSpace, x: Value, graph: Graph) -> Value:
    """y = gelu(k * x + D x) W_O; the kernel k is computed now, for max_len tokens."""
    x = graph.zero_padding(x)
    log_step, log_decay, frequency, C = (
        to_numpy(parameter.value) for parameter in layer.kernel_parameters()
    )
    table, _ = F.state_space_kernel(
        log_step, log_decay, frequency, C, graph.max_len
    )  # [max_len, d_model]
    kernel = graph.crop(table, 0)
    s = convolution(x, kernel, graph.length, graph.d_model, graph)
    a = graph.node("Gelu", s + x * layer.skip)
    return graph.zero_padding(graph.apply(layer.output, a))
