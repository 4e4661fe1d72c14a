# /// script
# requires-python = ">=3.11"
# dependencies = ["tinygrad==0.14.0", "numpy==2.4.6"]
# ///
"""Tinygrad's answers, on its interpreter, which needs no compiler."""

import os

os.environ["DEV"] = "PYTHON"
import math

import numpy as np
import tinygrad_training  # noqa: F401 - its calls
from calls import Library, call, main
from tinygrad import Context, Tensor, dtypes, nn


@call
def linear(x, W, b):
    return x.linear(W, b)


@call
def linear_shape(d_in, d_out):
    return nn.Linear(d_in, d_out).weight.shape


@call
def layer_norm_default(x):
    return nn.LayerNorm(x.shape[-1])(x)


@call
def layer_norm(x, gamma, beta, eps):
    return x.layernorm(eps=eps) * gamma + beta


@call
def rms_norm_default(x):
    return nn.RMSNorm(x.shape[-1])(x)


@call
def rms_norm(x, gamma, eps):
    return gamma * x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()


@call
def gelu_default(x):
    return x.gelu()


@call
def gelu(x, approximate):
    x = x.float()  # its erf has seven digits, in float64, too
    if approximate == "tanh":
        return x.gelu()
    return 0.5 * x * (1 + (x / math.sqrt(2)).erf())


@call
def sigmoid(x):
    return x.sigmoid()


@call
def silu(x):
    return x.silu()


@call
def relu(x):
    return x.relu()


@call
def maximum(x):
    return x.maximum(0)


@call
def softmax_without_axis(x):
    return x.softmax().flatten()[0]


@call
def softmax(x, axis):
    return x.softmax(axis)


@call
def log_softmax(x):
    return x.log_softmax()


@call
def largest(x):
    return x.max()


@call
def max_pooling(x):
    winner = x.argmax(axis=1, keepdim=True)
    return x.gather(1, winner).squeeze(1)


@call
def place_of_largest(x):
    return x.argmax()


@call
def attention_default(query, key, value, mask):
    return query.scaled_dot_product_attention(key, value, attn_mask=mask)


@call
def attention(query, key, value, mask):
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    weights = mask.where(scores, -1e30).softmax(-1)
    return mask.any(-1, keepdim=True).where(weights @ value, 0)


@call
def causal_attention_default(query, key, value):
    return query.scaled_dot_product_attention(key, value, is_causal=True)


@call
def causal_attention(query, key, value, begin):
    queries = begin + Tensor.arange(query.shape[-2])
    mask = queries.unsqueeze(-1) >= Tensor.arange(key.shape[-2])
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    return mask.where(scores, -1e30).softmax(-1) @ value


@call
def grouped_attention_default(query, key, value):
    return query.scaled_dot_product_attention(key, value, enable_gqa=True)


@call
def grouped_attention(query, key, value):
    times = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(times, dim=1) for x in (key, value))
    return (query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])).softmax(-1) @ value


@call
def multihead(x, W_query, b_query, W_key, b_key, W_value, b_value, W_output, b_output, n_heads):
    def heads_of(W, b):
        return x.linear(W, b).reshape(*x.shape[:2], n_heads, -1).transpose(1, 2)

    query, key, value = (
        heads_of(W_query, b_query),
        heads_of(W_key, b_key),
        heads_of(W_value, b_value),
    )
    heads = (query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])).softmax(-1) @ value
    return heads.transpose(1, 2).reshape(x.shape).linear(W_output, b_output)


@call
def rotary(x, positions, theta, layout):
    d_head = x.shape[-1]
    rates = theta ** (-Tensor.arange(0, d_head, 2).cast(x.dtype) / d_head)
    angles = positions.cast(x.dtype).unsqueeze(-1) * rates
    cosines, sines = angles.cos(), angles.sin()
    if layout == "halves":
        a, b = x.chunk(2, dim=-1)
    else:
        a, b = x[..., ::2], x[..., 1::2]
    turned = [a * cosines - b * sines, b * cosines + a * sines]
    if layout == "halves":
        return turned[0].cat(turned[1], dim=-1)
    return turned[0].stack(turned[1], dim=-1).reshape(x.shape)


@call
def sinusoids(length, d_model, position):
    features = Tensor(list(range(0, d_model, 2)), dtype=dtypes.float64)
    angles = position * 10000.0 ** (-features / d_model)
    return angles.sin().stack(angles.cos(), dim=-1).flatten()


@call
def embedding(ids, table):
    return table[ids]


@call
def embedding_beyond(ids, table):
    layer = nn.Embedding(*table.shape)
    layer.weight = table
    return layer(ids)


@call
def conv1d(x, W, padding):
    kernel = W.shape[0]
    around = ((kernel - 1) // 2, kernel // 2) if padding == "same" else (0, 0)
    padded = x.transpose(1, 2).pad((None, None, around))
    return padded.conv2d(W.permute(2, 1, 0)).transpose(1, 2)


@call
def gated(x, W_gate, W_up, W_down):
    return ((x @ W_gate).silu() * (x @ W_up)) @ W_down


@call
def mean_pooling(x, mask):
    weights = mask.unsqueeze(-1).cast(x.dtype)
    return (x * weights).sum(1) / weights.sum(1).maximum(1)


@call
def average_of_windows(x):
    return x.reshape(1, 1, -1).avg_pool2d((3,), stride=1, padding=1).flatten()


@call
def largest_after_dropout(rate):
    with Context(TRAINING=1):
        return Tensor.ones(1000).dropout(rate).max()


@call
def smallest_after_dropout(rate):
    with Context(TRAINING=1):
        return np.fmin.reduce(Tensor.full((1000,), math.nan).dropout(rate).numpy())


@call
def variance_default(x):
    return x.var()


@call
def variance(x):
    return x.var(axis=-1, correction=0)


@call
def mean(x):
    return x.mean()


def array(values, dtype):
    return Tensor(values, dtype=getattr(dtypes, dtype) if dtype else None)


def to_numpy(y):
    return y.numpy() if isinstance(y, Tensor) else y


def gradients(function, arrays, names, dy):
    y = function(**arrays)
    dxs = y.gradient(*(arrays[name] for name in names), gradient=dy.cast(y.dtype))
    return y, dict(zip(names, dxs, strict=True))


main(Library(array, to_numpy, gradients))
