# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
# ///
"""PyTorch's answers."""

import math

import numpy as np
import torch
import torch_training  # noqa: F401 - its calls
from calls import Library, call, main
from torch import nn
from torch.nn import functional as F


@call
def linear(x, W, b):
    return F.linear(x, W.T, b)


@call
def linear_shape(d_in, d_out):
    return tuple(nn.Linear(d_in, d_out).weight.shape)


@call
def layer_norm_default(x):
    return nn.LayerNorm(x.shape[-1], dtype=x.dtype)(x)


@call
def layer_norm(x, gamma, beta, eps):
    return F.layer_norm(x, gamma.shape, gamma, beta, eps)


@call
def rms_norm_default(x):
    return nn.RMSNorm(x.shape[-1], dtype=x.dtype)(x)


@call
def rms_norm(x, gamma, eps):
    return F.rms_norm(x, gamma.shape, gamma, eps)


@call
def gelu_default(x):
    return F.gelu(x)


@call
def gelu(x, approximate):
    return F.gelu(x, approximate=approximate)


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
    return torch.maximum(x, torch.zeros_like(x))


@call
def softmax_without_axis(x):
    return nn.Softmax()(x).flatten()[0]


@call
def softmax(x, axis):
    return F.softmax(x, dim=axis)


@call
def log_softmax(x):
    return F.log_softmax(x, dim=-1)


@call
def largest(x):
    return x.amax()


@call
def max_pooling(x):
    return x.max(dim=1).values  # amax shares the gradient out among equals


@call
def place_of_largest(x):
    return x.argmax()


@call
def attention_default(query, key, value, mask):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


@call
def attention(query, key, value, mask):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


@call
def causal_attention_default(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


@call
def causal_attention(query, key, value, begin):
    queries = begin + torch.arange(query.shape[-2])
    mask = queries[:, None] >= torch.arange(key.shape[-2])
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


@call
def grouped_attention_default(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, enable_gqa=True)


@call
def grouped_attention(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, enable_gqa=True)


@call
def multihead_shape(d_model, n_heads):
    return tuple(nn.MultiheadAttention(d_model, n_heads).in_proj_weight.shape)


@call
def multihead(x, W_query, b_query, W_key, b_key, W_value, b_value, W_output, b_output, n_heads):
    layer = nn.MultiheadAttention(x.shape[-1], n_heads, batch_first=True, dtype=x.dtype)
    layer.in_proj_weight.data = torch.cat([W_query.T, W_key.T, W_value.T])
    layer.in_proj_bias.data = torch.cat([b_query, b_key, b_value])
    layer.out_proj.weight.data = W_output.T
    layer.out_proj.bias.data = b_output
    y, _ = layer(x, x, x)
    return y


@call
def rotary(x, positions, theta, layout):
    d_head = x.shape[-1]
    angles = positions[:, None] * theta ** (-torch.arange(0, d_head, 2, dtype=x.dtype) / d_head)
    cosines, sines = angles.cos(), angles.sin()
    if layout == "halves":
        a, b = x.chunk(2, dim=-1)
    else:
        a, b = x[..., ::2], x[..., 1::2]
    turned = [a * cosines - b * sines, b * cosines + a * sines]
    if layout == "halves":
        return torch.cat(turned, dim=-1)
    return torch.stack(turned, dim=-1).reshape(x.shape)


@call
def sinusoids(length, d_model, position):
    rates = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = position * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten()


@call
def embedding(ids, table):
    return F.embedding(ids, table)


@call
def embedding_beyond(ids, table):
    return embedding(ids, table)


@call
def conv1d_default(x, W, padding):
    return F.conv1d(x.mT, W.permute(2, 1, 0), padding=padding).mT


@call
def conv1d(x, W, padding):
    return F.conv1d(x.mT, W.permute(2, 1, 0), padding=padding).mT


@call
def glu(x):
    return F.glu(x)


@call
def gated(x, W_gate, W_up, W_down):
    return (F.silu(x @ W_gate) * (x @ W_up)) @ W_down


@call
def mean_pooling(x, mask):
    weights = mask[..., None].to(x.dtype)
    return (x * weights).sum(1) / weights.sum(1).clamp(min=1)


@call
def average_of_windows(x):
    return F.avg_pool1d(x[None], 3, stride=1, padding=1)[0]


@call
def largest_after_dropout(rate):
    return F.dropout(torch.ones(1000), rate).max()


@call
def largest_after_dropping_all(rate):
    return largest_after_dropout(rate)


@call
def smallest_after_dropout(rate):
    return np.fmin.reduce(F.dropout(torch.full([1000], math.nan), rate).numpy())


@call
def spread_of_linear():
    return round(float(nn.Linear(300, 100).weight.std()), 2)


@call
def spread_of_embedding():
    return round(float(nn.Embedding(1000, 50).weight.std()), 2)


@call
def fourier(x):
    return torch.fft.fft2(x).real


@call
def inverse(x):
    return torch.fft.ifft(x).real


@call
def hartley(x):
    transform = torch.fft.fft2(x)
    return transform.real - transform.imag


@call
def variance_default(x):
    return torch.var(x)


@call
def variance(x):
    return torch.var(x, dim=-1, correction=0)


@call
def mean(x):
    return x.mean()


@call
def sum_of_ones(n):
    return torch.ones(n).sum()


@call
def median(x):
    return x.median()


def array(values, dtype):
    return torch.tensor(values, dtype=getattr(torch, dtype) if dtype else None)


def to_numpy(y):
    if not isinstance(y, torch.Tensor):
        return y
    y = y.detach()
    return y.float().numpy() if y.dtype == torch.bfloat16 else y.numpy()


def gradients(function, arrays, names, dy):
    for name in names:
        arrays[name].requires_grad_()
    y = function(**arrays)
    y.backward(dy)
    return y, {name: arrays[name].grad for name in names}


torch.manual_seed(0)  # for initial weights and dropout
main(Library(array, to_numpy, gradients))
