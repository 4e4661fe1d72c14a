# /// script
# requires-python = ">=3.11"
# dependencies = ["paddlepaddle==3.3.1", "setuptools==80.9.0", "numpy==2.4.6"]
# ///
"""Answers of PaddlePaddle."""

import math

import numpy as np
import paddle
import paddle_training  # noqa: F401 - its calls
from calls import Library, call, main
from paddle import nn
from paddle.nn import functional as F


@call
def linear(x, W, b):
    return F.linear(x, W, b)


@call
def linear_shape(d_in, d_out):
    return tuple(nn.Linear(d_in, d_out).weight.shape)


@call
def layer_norm_default(x):
    return nn.LayerNorm(x.shape[-1])(x)


@call
def layer_norm(x, gamma, beta, eps):
    return F.layer_norm(x, gamma.shape, gamma, beta, eps)


@call
def rms_norm(x, gamma, eps):
    return gamma * x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()


@call
def gelu_default(x):
    return F.gelu(x)


@call
def gelu(x, approximate):
    return F.gelu(x, approximate == "tanh")


@call
def sigmoid(x):
    return F.sigmoid(x)


@call
def silu(x):
    return F.silu(x)


@call
def relu(x):
    return F.relu(x)


@call
def maximum(x):
    return paddle.maximum(x, paddle.zeros_like(x))


@call
def softmax_without_axis(x):
    return F.softmax(x).flatten()[0]


@call
def softmax(x, axis):
    return F.softmax(x, axis)


@call
def log_softmax(x):
    return F.log_softmax(x)


@call
def largest(x):
    return x.max()


@call
def max_pooling(x):
    winner = x.argmax(axis=1, keepdim=True)
    return paddle.take_along_axis(x, winner, axis=1).squeeze(1)


@call
def place_of_largest(x):
    return x.argmax()


@call
def attention(query, key, value, mask):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = F.softmax(paddle.where(mask, scores, paddle.full_like(scores, -1e30)))
    seen = mask.any(axis=-1, keepdim=True).astype(query.dtype)
    return weights @ value * seen


@call
def causal_attention(query, key, value, begin):
    queries = begin + paddle.arange(query.shape[-2])
    mask = queries.unsqueeze(-1) >= paddle.arange(key.shape[-2])
    scores = query @ key.mT / query.shape[-1] ** 0.5
    return F.softmax(paddle.where(mask, scores, paddle.full_like(scores, -1e30))) @ value


@call
def grouped_attention(query, key, value):
    times = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(times, axis=1) for x in (key, value))
    return F.softmax(query @ key.mT / query.shape[-1] ** 0.5) @ value


@call
def multihead(x, W_query, b_query, W_key, b_key, W_value, b_value, W_output, b_output, n_heads):
    layer = nn.MultiHeadAttention(x.shape[-1], n_heads).to(dtype=x.dtype)
    maps = [
        (layer.q_proj, W_query, b_query),
        (layer.k_proj, W_key, b_key),
        (layer.v_proj, W_value, b_value),
        (layer.out_proj, W_output, b_output),
    ]
    for linear_map, W, b in maps:
        linear_map.weight.set_value(W)
        linear_map.bias.set_value(b)
    return layer(x)


@call
def rotary(x, positions, theta, layout):
    d_head = x.shape[-1]
    rates = theta ** (-paddle.arange(0, d_head, 2, dtype=x.dtype) / d_head)
    angles = positions.astype(x.dtype).unsqueeze(-1) * rates
    cosines, sines = angles.cos(), angles.sin()
    if layout == "halves":
        a, b = x.chunk(2, axis=-1)
    else:
        a, b = x[..., ::2], x[..., 1::2]
    turned = [a * cosines - b * sines, b * cosines + a * sines]
    if layout == "halves":
        return paddle.concat(turned, axis=-1)
    return paddle.stack(turned, axis=-1).reshape(x.shape)


@call
def sinusoids(length, d_model, position):
    rates = 10000.0 ** (-paddle.arange(0, d_model, 2, dtype="float64") / d_model)
    angles = position * rates
    return paddle.stack([angles.sin(), angles.cos()], axis=-1).flatten()


@call
def embedding(ids, table):
    return F.embedding(ids, table)


@call
def conv1d(x, W, padding):
    kernel = W.shape[0]
    around = [(kernel - 1) // 2, kernel // 2] if padding == "same" else [0, 0]
    padded = F.pad(x.transpose([0, 2, 1]), around)
    return F.conv1d(padded, W.transpose([2, 1, 0])).transpose([0, 2, 1])


@call
def glu(x):
    return F.glu(x)


@call
def gated(x, W_gate, W_up, W_down):
    return (F.silu(x @ W_gate) * (x @ W_up)) @ W_down


@call
def mean_pooling(x, mask):
    weights = mask.unsqueeze(-1).astype(x.dtype)
    return (x * weights).sum(1) / weights.sum(1).clip(min=1)


@call
def average_of_windows(x):
    return F.avg_pool1d(x[None, None], 3, stride=1, padding=1)[0, 0]


@call
def largest_after_dropout(rate):
    return F.dropout(paddle.ones([1000]), rate).max()


@call
def largest_after_dropping_all(rate):
    return largest_after_dropout(rate)


@call
def smallest_after_dropout(rate):
    return np.fmin.reduce(F.dropout(paddle.full([1000], math.nan), rate).numpy())


@call
def spread_of_linear():
    return round(float(nn.Linear(300, 100).weight.std()), 2)


@call
def spread_of_embedding():
    return round(float(nn.Embedding(1000, 50).weight.std()), 2)


@call
def fourier(x):
    return paddle.fft.fft2(x).real()


@call
def inverse(x):
    return paddle.fft.ifft(x).real()


@call
def hartley(x):
    transform = paddle.fft.fft2(x)
    return transform.real() - transform.imag()


@call
def variance_default(x):
    return x.var()


@call
def variance(x):
    return x.var(axis=-1, unbiased=False)


@call
def mean(x):
    return x.mean()


@call
def sum_of_ones(n):
    return paddle.ones([n]).sum()


@call
def median(x):
    return x.median()


def array(values, dtype):
    return paddle.to_tensor(values, dtype=dtype)


def to_numpy(y):
    return y.numpy() if isinstance(y, paddle.Tensor) else y


def gradients(function, arrays, names, dy):
    for name in names:
        arrays[name].stop_gradient = False
    y = function(**arrays)
    dxs = paddle.grad([y], [arrays[name] for name in names], [dy])
    return y, dict(zip(names, dxs, strict=True))


paddle.seed(0)  # for initial weights and dropout
main(Library(array, to_numpy, gradients))
