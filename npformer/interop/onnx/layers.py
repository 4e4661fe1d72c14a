"""Converters of layers to ONNX: each is the forward pass of its layer."""

import math
from typing import Any

from npformer import layers as own
from npformer.core import to_numpy
from npformer.interop.onnx.graph import Graph, Value
from npformer.interop.onnx.table import CONVERTERS, Converter, register
from npformer.mixers import Identity
from npformer.models.input_embedding import InputEmbedding

KEPT = own.Dropout, own.TokenDropout, own.ChosenTokens, Identity

SIMPLE: dict[Any, Converter] = {
    **dict.fromkeys(KEPT, lambda _, x, __: x),
    own.ReLU: lambda layer, x, graph: graph.node("Relu", x),
    own.Tanh: lambda layer, x, graph: graph.node("Tanh", x),
    own.SiLU: lambda layer, x, graph: x * graph.node("Sigmoid", x),
    own.GELU: lambda layer, x, graph: graph.node("Gelu", x, approximate=layer.approximate),
    own.EveryToken: lambda layer, x, graph: graph.without_padding(x),
    own.Flatten: lambda layer, x, graph: graph.node("Flatten", graph.without_padding(x)),
    own.Sequential: lambda layer, x, graph: graph.chain(layer.chain, x),
}
"""Layers that are one operator of ONNX, or a chain of others, or change nothing at evaluation."""

CONVERTERS.update(SIMPLE)


@register(own.Linear)
def linear(layer: own.Linear, x: Value, graph: Graph) -> Value:
    """y = x W + b."""
    y = x @ layer.weight
    return y if layer.bias is None else y + layer.bias


@register(own.TiedOutput)
def tied_output(layer: own.TiedOutput, x: Value, graph: Graph) -> Value:
    """y = x W^T + b."""
    y = x @ graph.value(layer.weight).transpose(1, 0)
    return y if layer.bias is None else y + layer.bias


@register(own.Conv1d)
def conv1d(layer: own.Conv1d, x: Value, graph: Graph) -> Value:
    """y_t = sum_k x_{t+k-p} W_k + b."""
    kernel = len(layer.weight.value)
    pads = [(kernel - 1) // 2, kernel // 2] if layer.padding == "same" else [0, 0]
    weight = to_numpy(layer.weight.value).transpose(2, 1, 0)  # ONNX has channels first
    y = graph.node("Conv", x.transpose(0, 2, 1), weight, pads=pads).transpose(0, 2, 1)
    return y if layer.bias is None else y + layer.bias


@register(own.LayerNorm)
def layer_norm(layer: own.LayerNorm, x: Value, graph: Graph) -> Value:
    """y = gamma (x - mean) / sqrt(variance + eps) + beta."""
    inputs = [x, layer.gamma]
    if layer.beta is not None:
        inputs.append(layer.beta)
    return graph.node("LayerNormalization", *inputs, epsilon=layer.eps)


@register(own.RMSNorm)
def rms_norm(layer: own.RMSNorm, x: Value, graph: Graph) -> Value:
    """y = gamma x / sqrt(mean(x^2) + eps)."""
    mean_square = graph.node("ReduceMean", x * x, [-1], keepdims=1)
    return x / graph.node("Sqrt", mean_square + layer.eps) * layer.gamma


@register(own.PositionwiseFeedForward)
def feed_forward(layer: own.PositionwiseFeedForward, x: Value, graph: Graph) -> Value:
    """y = contract(activation(expand(x)))."""
    return graph.chain([layer.expand, layer.activation, layer.contract], x)


@register(own.Pooler)
def pooler(layer: own.Pooler, x: Value, graph: Graph) -> Value:
    """y = norm(activation(dense(first(x)))), with a norm if there is one."""
    y = graph.chain([layer.first, layer.dense, layer.activation], x)
    return y if layer.norm is None else graph.apply(layer.norm, y)


@register(own.GatedFeedForward)
def gated(layer: own.GatedFeedForward, x: Value, graph: Graph) -> Value:
    """y = (activation(gate(x)) * up(x)) through down."""
    gate = graph.chain([layer.gate, layer.activation], x)
    return graph.chain([layer.down], gate * graph.chain([layer.up], x))


@register(InputEmbedding)
def input_embedding(layer: InputEmbedding, x: Value, graph: Graph) -> Value:
    """y = last(...(second(first(x)))); an id where none may be becomes one that is too large.

    Of vectors, y is 0 at padding.
    """
    if layer.position_padding_id is not None:
        padding = graph.node("Equal", x, layer.position_padding_id).to("int64")
        behind = graph.node("Greater", graph.node("CumSum", padding, 1), 0)
        x = graph.where(behind if graph.mask is None else behind & graph.mask, layer.vocab_size, x)
    y = graph.chain(layer.layers_in_use(), x)
    return y if layer.n_features is None else graph.without_padding(y)


@register(own.Embedding)
def embedding(layer: own.Embedding, ids: Value, graph: Graph) -> Value:
    """y = scale * W[ids]. ONNX would take -1 from the table's end: it becomes an id too large."""
    size = layer.weight.shape[0]
    ids = graph.where(graph.node("Less", ids, 0), size, ids)
    rows = graph.node("Gather", layer.weight, ids)
    return rows if layer.scale == 1.0 else rows * layer.scale


@register(own.Positions)
def positions(layer: own.Positions, x: Value, graph: Graph) -> Value:
    """y = x + table[:length]."""
    return x + graph.cropped(layer.table, 0)


@register(own.TokenTypes)
def token_types(layer: own.TokenTypes, x: Value, graph: Graph) -> Value:
    """y = x + scale * W[types]."""
    return x + embedding(layer, graph.value([[0]]) if graph.types is None else graph.types, graph)


@register(own.TimeDistributed)
def time_distributed(layer: own.TimeDistributed, x: Value, graph: Graph) -> Value:
    """y[:, t] = layer(x[:, t]): tokens become rows, which have no mask."""
    steps = graph.node("Shape", x, end=2)
    features = graph.node("Shape", x, start=2)
    rows = graph.node("Concat", [-1], features, axis=0)
    mask, graph.mask = graph.mask, None
    y = graph.apply(layer.layer, graph.node("Reshape", x, rows))
    graph.mask = mask
    shape = graph.node("Concat", steps, graph.node("Shape", y, start=1), axis=0)
    return graph.node("Reshape", y, shape)


@register(own.MeanPooling)
def mean(layer: own.MeanPooling, x: Value, graph: Graph) -> Value:
    """y = mean over the tokens that are not padding."""
    if graph.mask is None:
        return graph.node("ReduceMean", x, [1], keepdims=0)
    count = graph.mask.like(x).sum(1, keep=True)
    return graph.without_padding(x).sum(1) / graph.node("Max", count, 1.0)


@register(own.MaxPooling)
def maximum(layer: own.MaxPooling, x: Value, graph: Graph) -> Value:
    """y = maximum over the tokens that are not padding, 0 if there is none."""
    if graph.mask is None:
        return largest(x, graph)
    kept = graph.where(graph.mask.at(-1), x, -math.inf)
    some = graph.node("Greater", graph.mask.to("int64").sum(1, keep=True), 0)
    return graph.where(some, largest(kept, graph), 0.0)


def largest(x: Value, graph: Graph) -> Value:
    """Return the maximum over tokens; onnxruntime cannot infer the shape of a ReduceMax."""
    pooled = graph.node("GlobalMaxPool", x.transpose(0, 2, 1))  # ONNX has channels first
    return graph.node("Squeeze", pooled, [2])


@register(own.FirstToken)
def first(layer: own.FirstToken, x: Value, graph: Graph) -> Value:
    """y = the first token that is not padding, 0 if there is none."""
    if graph.mask is None:
        return graph.node("Gather", x, 0, axis=1)
    at = graph.node("ArgMax", graph.mask.to("int64"), axis=1, keepdims=1)
    return graph.node("GatherND", graph.without_padding(x), at, batch_dims=1)
