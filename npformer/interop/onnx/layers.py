"""Converters of layers to ONNX: each is the forward pass of its layer."""

import math
from typing import Any

from npformer import layers as L
from npformer.core import to_numpy
from npformer.interop.onnx.converters import CONVERTERS, Converter, register
from npformer.interop.onnx.graph import Graph, Value
from npformer.mixers import Identity
from npformer.models.input_embedding import InputEmbedding

IDENTITIES = L.Dropout, L.TokenDropout, L.ChosenTokens, Identity

SIMPLE: dict[Any, Converter] = {
    **dict.fromkeys(IDENTITIES, lambda _, x, __: x),
    L.ReLU: lambda layer, x, graph: graph.node("Relu", x),
    L.Tanh: lambda layer, x, graph: graph.node("Tanh", x),
    L.SiLU: lambda layer, x, graph: x * graph.node("Sigmoid", x),
    L.GELU: lambda layer, x, graph: graph.node("Gelu", x, approximate=layer.approximate),
    L.EveryToken: lambda layer, x, graph: graph.zero_padding(x),
    L.Flatten: lambda layer, x, graph: graph.node("Flatten", graph.zero_padding(x)),
    L.Sequential: lambda layer, x, graph: graph.chain(layer.chain, x),
}
"""Layers that are one operator of ONNX, a chain of layers, or the identity at evaluation."""

CONVERTERS.update(SIMPLE)


@register(L.Linear)
def linear(layer: L.Linear, x: Value, graph: Graph) -> Value:
    """y = x W + b."""
    y = x @ layer.weight
    return y if layer.bias is None else y + layer.bias


@register(L.TiedOutput)
def tied_output(layer: L.TiedOutput, x: Value, graph: Graph) -> Value:
    """y = x W^T + b."""
    y = x @ graph.value(layer.weight).transpose(1, 0)
    return y if layer.bias is None else y + layer.bias


@register(L.Conv1d)
def conv1d(layer: L.Conv1d, x: Value, graph: Graph) -> Value:
    """y_t = sum_k x_{t+k-p} W_k + b."""
    kernel = len(layer.weight.value)
    pads = [(kernel - 1) // 2, kernel // 2] if layer.padding == "same" else [0, 0]
    weight = to_numpy(layer.weight.value).transpose(2, 1, 0)  # ONNX has channels first
    y = graph.node("Conv", x.transpose(0, 2, 1), weight, pads=pads).transpose(0, 2, 1)
    return y if layer.bias is None else y + layer.bias


@register(L.LayerNorm)
def layer_norm(layer: L.LayerNorm, x: Value, graph: Graph) -> Value:
    """y = gamma (x - mean) / sqrt(variance + eps) + beta."""
    inputs = [x, layer.gamma]
    if layer.beta is not None:
        inputs.append(layer.beta)
    return graph.node("LayerNormalization", *inputs, epsilon=layer.eps)


@register(L.RMSNorm)
def rms_norm(layer: L.RMSNorm, x: Value, graph: Graph) -> Value:
    """y = gamma x / sqrt(mean(x^2) + eps)."""
    mean_square = graph.node("ReduceMean", x * x, [-1], keepdims=1)
    return x / graph.node("Sqrt", mean_square + layer.eps) * layer.gamma


@register(L.PositionwiseFeedForward)
def feed_forward(layer: L.PositionwiseFeedForward, x: Value, graph: Graph) -> Value:
    """y = contract(activation(expand(x)))."""
    return graph.chain([layer.expand, layer.activation, layer.contract], x)


@register(L.Pooler)
def pooler(layer: L.Pooler, x: Value, graph: Graph) -> Value:
    """y = norm(activation(dense(first(x)))), with a norm if there is one."""
    y = graph.chain([layer.first, layer.dense, layer.activation], x)
    return y if layer.norm is None else graph.apply(layer.norm, y)


@register(L.GatedFeedForward)
def gated_feed_forward(layer: L.GatedFeedForward, x: Value, graph: Graph) -> Value:
    """y = (activation(gate(x)) * up(x)) through down."""
    gate = graph.chain([layer.gate, layer.activation], x)
    return graph.chain([layer.down], gate * graph.chain([layer.up], x))


@register(InputEmbedding)
def input_embedding(layer: InputEmbedding, x: Value, graph: Graph) -> Value:
    """y = last(...(second(first(x)))).

    A token after a padding id becomes an id that is too large, an error when the model runs. For
    vectors, y is 0 at padding.
    """
    if layer.position_padding_id is not None:
        is_padding = graph.node("Equal", x, layer.position_padding_id).cast("int64")
        is_invalid = graph.node("Greater", graph.node("CumSum", is_padding, 1), 0)
        if graph.mask is not None:
            is_invalid = is_invalid & graph.mask
        x = graph.where(is_invalid, layer.vocab_size, x)
    y = graph.chain(layer.layers_in_use(), x)
    return y if layer.n_features is None else graph.zero_padding(y)


@register(L.Embedding)
def embedding(layer: L.Embedding, ids: Value, graph: Graph) -> Value:
    """y = scale * W[ids]. For ONNX -1 is the last row; here it becomes an id that is too large."""
    size = layer.weight.shape[0]
    ids = graph.where(graph.node("Less", ids, 0), size, ids)
    rows = graph.node("Gather", layer.weight, ids)
    return rows if layer.scale == 1.0 else rows * layer.scale


@register(L.Positions)
def positions(layer: L.Positions, x: Value, graph: Graph) -> Value:
    """y = x + table[:length]."""
    return x + graph.crop(layer.table, 0)


@register(L.TokenTypes)
def token_types(layer: L.TokenTypes, x: Value, graph: Graph) -> Value:
    """y = x + scale * W[types]."""
    types = graph.value([[0]]) if graph.types is None else graph.types
    return x + embedding(layer, types, graph)


@register(L.TimeDistributed)
def time_distributed(layer: L.TimeDistributed, x: Value, graph: Graph) -> Value:
    """y[:, t] = layer(x[:, t]): each token becomes a row of a batch, without a mask."""
    batch_and_length = graph.node("Shape", x, end=2)
    features = graph.node("Shape", x, start=2)
    shape_of_rows = graph.node("Concat", [-1], features, axis=0)
    mask = graph.mask
    graph.mask = None
    y = graph.apply(layer.layer, graph.node("Reshape", x, shape_of_rows))
    graph.mask = mask
    shape = graph.node("Concat", batch_and_length, graph.node("Shape", y, start=1), axis=0)
    return graph.node("Reshape", y, shape)


@register(L.MeanPooling)
def mean(layer: L.MeanPooling, x: Value, graph: Graph) -> Value:
    """y = mean over the tokens that are not padding."""
    if graph.mask is None:
        return graph.node("ReduceMean", x, [1], keepdims=0)
    count = graph.mask.cast_like(x).sum(1, keep=True)
    return graph.zero_padding(x).sum(1) / graph.node("Max", count, 1.0)


@register(L.MaxPooling)
def maximum(layer: L.MaxPooling, x: Value, graph: Graph) -> Value:
    """y = maximum over the tokens that are not padding; 0 if all are."""
    if graph.mask is None:
        return largest(x, graph)
    masked_x = graph.where(graph.mask.expand_dims(-1), x, -math.inf)
    n_tokens = graph.mask.cast("int64").sum(1, keep=True)
    has_tokens = graph.node("Greater", n_tokens, 0)
    return graph.where(has_tokens, largest(masked_x, graph), 0.0)


def largest(x: Value, graph: Graph) -> Value:
    """Return the maximum over tokens; onnxruntime cannot infer the shape of a ReduceMax."""
    pooled = graph.node("GlobalMaxPool", x.transpose(0, 2, 1))  # ONNX has channels first
    return graph.node("Squeeze", pooled, [2])


@register(L.FirstToken)
def first(layer: L.FirstToken, x: Value, graph: Graph) -> Value:
    """y = the first token that is not padding; 0 if all are."""
    if graph.mask is None:
        return graph.node("Gather", x, 0, axis=1)
    position = graph.node("ArgMax", graph.mask.cast("int64"), axis=1, keepdims=1)
    return graph.node("GatherND", graph.zero_padding(x), position, batch_dims=1)
