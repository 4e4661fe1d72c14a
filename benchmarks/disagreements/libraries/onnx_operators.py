"""Calls of single ONNX operators, for all runtimes: their scripts set `RUN`."""

import numpy as np
from calls import call
from onnx_graph import int64

RUN = None
"""Runs a graph of one node: ``RUN(operator, inputs, n_outputs=1, opset=20, **attributes)``."""


def run(operator, inputs, **options):
    return RUN(operator, inputs, **options)


@call
def linear(x, W, b):
    rows = x.reshape(-1, x.shape[-1])
    return run("Gemm", [rows, W, b]).reshape(*x.shape[:-1], -1)


@call
def layer_norm_default(x):
    return run("LayerNormalization", [x, np.ones(x.shape[-1], x.dtype)])


@call
def layer_norm(x, gamma, beta, eps):
    return run("LayerNormalization", [x, gamma, beta], epsilon=eps)


@call
def rms_norm_default(x):
    return run("RMSNormalization", [x, np.ones(x.shape[-1], x.dtype)], opset=23)


@call
def rms_norm(x, gamma, eps):
    return run("RMSNormalization", [x, gamma], opset=23, epsilon=eps)


@call
def gelu_default(x):
    return run("Gelu", [x])


@call
def gelu(x, approximate):
    return run("Gelu", [x], approximate=approximate)


@call
def sigmoid(x):
    return run("Sigmoid", [x])


@call
def silu(x):
    return x * run("Sigmoid", [x])


@call
def relu(x):
    return run("Relu", [x])


@call
def softmax_without_axis(x):
    return run("Softmax", [x]).ravel()[0]


@call
def softmax(x, axis):
    return run("Softmax", [x], axis=axis)


@call
def log_softmax(x):
    return run("LogSoftmax", [x])


@call
def largest(x):
    return run("ReduceMax", [x], keepdims=0)


@call
def max_pooling(x):
    return run("ReduceMax", [x, int64(1)], keepdims=0)


@call
def place_of_largest(x):
    return run("ArgMax", [x], keepdims=0)


@call
def attention_default(query, key, value, mask):
    return run("Attention", [query, key, value, mask], opset=23)


@call
def attention(query, key, value, mask):
    y = run("Attention", [query, key, value, mask], opset=23)
    return np.where(mask.any(-1, keepdims=True), y, 0)


@call
def causal_attention_default(query, key, value):
    return run("Attention", [query, key, value], opset=23, is_causal=1)


@call
def causal_attention(query, key, value, begin):
    mask = begin + np.arange(query.shape[-2])[:, None] >= np.arange(key.shape[-2])
    return run("Attention", [query, key, value, mask], opset=23)


@call
def grouped_attention_default(query, key, value):
    return run("Attention", [query, key, value], opset=23)


@call
def grouped_attention(query, key, value):
    return run("Attention", [query, key, value], opset=23)


def tables(positions, d_head, theta, dtype):
    angles = positions[:, None] * theta ** (-np.arange(0, d_head, 2) / d_head)
    return np.cos(angles)[None].astype(dtype), np.sin(angles)[None].astype(dtype)


@call
def rotary_default(x, positions):
    cosines, sines = tables(positions, x.shape[-1], 10000.0, x.dtype)
    return run("RotaryEmbedding", [x, cosines, sines], opset=23)


@call
def rotary(x, positions, theta, layout):
    cosines, sines = tables(positions, x.shape[-1], theta, x.dtype)
    cosines, sines = (np.repeat(table, len(x), axis=0) for table in (cosines, sines))
    interleaved = int(layout == "neighbours")
    return run("RotaryEmbedding", [x, cosines, sines], opset=23, interleaved=interleaved)


def heads_of(x, W, b, n_heads):
    y = linear(x, W, b).reshape(*x.shape[:2], n_heads, -1)
    return np.ascontiguousarray(y.swapaxes(1, 2))


@call
def multihead(x, W_query, b_query, W_key, b_key, W_value, b_value, W_output, b_output, n_heads):
    query = heads_of(x, W_query, b_query, n_heads)
    key = heads_of(x, W_key, b_key, n_heads)
    value = heads_of(x, W_value, b_value, n_heads)
    heads = run("Attention", [query, key, value], opset=23)
    merged = np.ascontiguousarray(heads.swapaxes(1, 2)).reshape(x.shape)
    return linear(merged, W_output.astype(merged.dtype), b_output.astype(merged.dtype))


@call
def sinusoids(length, d_model, position):
    angles = position * 10000.0 ** (-np.arange(0, d_model, 2) / d_model)
    angles = angles.astype("float32")  # which all runtimes have
    return np.stack([run("Sin", [angles]), run("Cos", [angles])], axis=-1).ravel()


@call
def embedding(ids, table):
    return run("Gather", [table, ids])


@call
def embedding_beyond(ids, table):
    return run("Gather", [table, ids])


@call
def conv1d_default(x, W, padding):
    kernels = np.ascontiguousarray(W.transpose(2, 1, 0))
    x = np.ascontiguousarray(x.swapaxes(1, 2))
    return run("Conv", [x, kernels], auto_pad="SAME_UPPER").swapaxes(1, 2)


@call
def conv1d(x, W, padding):
    kernel = W.shape[0]
    around = [(kernel - 1) // 2, kernel // 2] if padding == "same" else [0, 0]
    kernels = np.ascontiguousarray(W.transpose(2, 1, 0))
    x = np.ascontiguousarray(x.swapaxes(1, 2))
    return run("Conv", [x, kernels], pads=around).swapaxes(1, 2)


@call
def gated(x, W_gate, W_up, W_down):
    return run("MatMul", [silu(run("MatMul", [x, W_gate])) * run("MatMul", [x, W_up]), W_down])


@call
def mean_pooling(x, mask):
    weights = mask[..., None].astype(x.dtype)
    total = run("ReduceSum", [x * weights, int64(1)], keepdims=0)
    count = run("ReduceSum", [weights, int64(1)], keepdims=0)
    return run("Div", [total, run("Max", [count, np.ones_like(count)])])


@call
def average_of_windows(x):
    pooled = run("AveragePool", [x[None, None]], kernel_shape=[3], pads=[1, 1])
    return pooled[0, 0]
