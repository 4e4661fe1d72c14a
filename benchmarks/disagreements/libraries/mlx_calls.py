# /// script
# requires-python = ">=3.11"
# dependencies = ["mlx[cpu]==0.32.4", "numpy==2.4.6"]
# ///
"""MLX' answers, on the CPU."""

import math

import mlx.core as mx
import mlx.nn as nn
import mlx_training  # noqa: F401 - its calls
import numpy as np
from calls import Library, call, main

mx.set_default_device(mx.cpu)


@call
def linear(x, W, b):
    return mx.addmm(b, x, W)


@call
def linear_shape(d_in, d_out):
    return tuple(nn.Linear(d_in, d_out).weight.shape)


@call
def layer_norm_default(x):
    return nn.LayerNorm(x.shape[-1])(x)


@call
def layer_norm(x, gamma, beta, eps):
    return mx.fast.layer_norm(x, gamma, beta, eps)


@call
def rms_norm_default(x):
    return nn.RMSNorm(x.shape[-1])(x)


@call
def rms_norm(x, gamma, eps):
    return mx.fast.rms_norm(x, gamma, eps)


@call
def gelu_default(x):
    return nn.gelu(x)


@call
def gelu(x, approximate):
    return nn.gelu(x) if approximate == "none" else nn.gelu_approx(x)


@call
def sigmoid(x):
    return mx.sigmoid(x)


@call
def silu(x):
    return nn.silu(x)


@call
def relu(x):
    return nn.relu(x)


@call
def maximum(x):
    return mx.maximum(x, 0)


@call
def softmax_without_axis(x):
    return mx.softmax(x).reshape(-1)[0]


@call
def softmax(x, axis):
    return mx.softmax(x, axis=axis)


@call
def log_softmax(x):
    return nn.log_softmax(x)


@call
def largest(x):
    return mx.max(x)


@call
def max_pooling(x):
    winner = mx.stop_gradient(mx.argmax(x, axis=1, keepdims=True))
    return mx.take_along_axis(x, winner, axis=1)[:, 0, :]


@call
def place_of_largest(x):
    return mx.argmax(x)


@call
def attention_default(query, key, value, mask):
    return mx.fast.scaled_dot_product_attention(query, key, value, scale=1.0, mask=mask)


@call
def attention(query, key, value, mask):
    scale = query.shape[-1] ** -0.5
    y = mx.fast.scaled_dot_product_attention(query, key, value, scale=scale, mask=mask)
    return mx.where(mask.any(-1, keepdims=True), y, 0)


@call
def causal_attention_default(query, key, value):
    return mx.fast.scaled_dot_product_attention(query, key, value, scale=1.0, mask="causal")


@call
def causal_attention(query, key, value, begin):
    mask = begin + mx.arange(query.shape[-2])[:, None] >= mx.arange(key.shape[-2])
    scale = query.shape[-1] ** -0.5
    return mx.fast.scaled_dot_product_attention(query, key, value, scale=scale, mask=mask)


@call
def grouped_attention_default(query, key, value):
    return mx.fast.scaled_dot_product_attention(query, key, value, scale=1.0)


@call
def grouped_attention(query, key, value):
    scale = query.shape[-1] ** -0.5
    return mx.fast.scaled_dot_product_attention(query, key, value, scale=scale)


@call
def multihead_shape(d_model, n_heads):
    return tuple(nn.MultiHeadAttention(d_model, n_heads).query_proj.weight.shape)


@call
def multihead(x, W_query, b_query, W_key, b_key, W_value, b_value, W_output, b_output, n_heads):
    layer = nn.MultiHeadAttention(x.shape[-1], n_heads, bias=True)
    layer.query_proj.weight, layer.query_proj.bias = W_query.T, b_query
    layer.key_proj.weight, layer.key_proj.bias = W_key.T, b_key
    layer.value_proj.weight, layer.value_proj.bias = W_value.T, b_value
    layer.out_proj.weight, layer.out_proj.bias = W_output.T, b_output
    return layer(x, x, x)


@call
def rotary_default(x, positions):
    return nn.RoPE(x.shape[-1])(x, offset=positions[0])


@call
def rotary_of_second_layer(x, positions, theta):
    rotary_default(x, positions)
    return nn.RoPE(x.shape[-1], base=theta)(x, offset=positions[0])


@call
def rotary(x, positions, theta, layout):
    layer = nn.RoPE(x.shape[-1], traditional=layout == "neighbours", base=theta)
    return layer(x, offset=positions[0])


@call
def sinusoids_default(length, d_model, position):
    return nn.SinusoidalPositionalEncoding(d_model)(mx.array(position))


@call
def sinusoids(length, d_model, position):
    layer = nn.SinusoidalPositionalEncoding(
        d_model, min_freq=10000.0 ** (2 / d_model - 1), scale=1.0
    )
    halves = layer(mx.array(position)).reshape(2, -1)
    return halves.T.reshape(-1)


@call
def conv1d(x, W, padding):
    kernel = W.shape[0]
    around = ((kernel - 1) // 2, kernel // 2) if padding == "same" else (0, 0)
    return mx.conv_general(x, W.transpose(2, 0, 1), padding=([around[0]], [around[1]]))


@call
def embedding(ids, table):
    return table[ids]


@call
def glu(x):
    return nn.glu(x)


@call
def gated(x, W_gate, W_up, W_down):
    return (nn.silu(x @ W_gate) * (x @ W_up)) @ W_down


@call
def mean_pooling(x, mask):
    weights = mask[..., None].astype(x.dtype)
    return (x * weights).sum(1) / mx.maximum(weights.sum(1), 1)


@call
def average_of_windows(x):
    return nn.AvgPool1d(3, stride=1, padding=1)(x[None, :, None])[0, :, 0]


@call
def largest_after_dropout(rate):
    return nn.Dropout(rate)(mx.ones(1000)).max()


@call
def largest_after_dropping_all(rate):
    return largest_after_dropout(rate)


@call
def smallest_after_dropout(rate):
    return np.fmin.reduce(np.array(nn.Dropout(rate)(mx.full([1000], math.nan))))


@call
def spread_of_linear():
    return round(float(nn.Linear(300, 100).weight.std()), 2)


@call
def spread_of_embedding():
    return round(float(nn.Embedding(1000, 50).weight.std()), 2)


@call
def fourier(x):
    return mx.real(mx.fft.fft2(x))


@call
def inverse(x):
    return mx.real(mx.fft.ifft(x))


@call
def hartley(x):
    transform = mx.fft.fft2(x)
    return mx.real(transform) - mx.imag(transform)


@call
def variance_default(x):
    return mx.var(x)


@call
def variance(x):
    return mx.var(x, axis=-1)


@call
def mean(x):
    return mx.mean(x)


@call
def sum_of_ones(n):
    return mx.ones([n]).sum()


@call
def median(x):
    return mx.median(x)


def array(values, dtype):
    if dtype is None:
        return mx.array(values)
    # Most layers compute float64 arrays in float32.
    return mx.array(values, dtype=getattr(mx, dtype.replace("64", "32")))


def to_numpy(y):
    if not isinstance(y, mx.array):
        return y
    return np.array(y.astype(mx.float32) if y.dtype == mx.bfloat16 else y)


def gradients(function, arrays, names, dy):
    def function_of_varied(*varied):
        return function(**arrays | dict(zip(names, varied, strict=True)))

    (y,), dxs = mx.vjp(lambda *x: [function_of_varied(*x)], [arrays[n] for n in names], [dy])
    return y, dict(zip(names, dxs, strict=True))


mx.random.seed(0)  # for initial weights and dropout
main(Library(array, to_numpy, gradients))
