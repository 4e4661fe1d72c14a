# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
# ///
"""PyTorch's answers."""

import math

import numpy as np
import torch
from calls import Library, call, main
from torch import nn
from torch.nn import functional as F
from torch.optim import lr_scheduler


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
def cross_entropy_default(logits, labels):
    return F.cross_entropy(logits, labels, ignore_index=-1)


@call
def cross_entropy_weighted(logits, labels, class_weights):
    return F.cross_entropy(logits, labels, weight=class_weights)


@call
def cross_entropy_smoothed(logits, labels, label_smoothing):
    return F.cross_entropy(logits, labels, label_smoothing=label_smoothing)


@call
def cross_entropy(logits, labels, class_weights, label_smoothing):
    return F.cross_entropy(
        logits, labels, class_weights, ignore_index=-1, label_smoothing=label_smoothing
    )


@call
def binary_cross_entropy(logits, targets):
    return F.binary_cross_entropy_with_logits(logits, targets)


@call
def binary_cross_entropy_of_probability(p, targets):
    return F.binary_cross_entropy(p, targets)


@call
def squared_error_default(prediction, target):
    return F.mse_loss(prediction, target)


@call
def squared_error(prediction, target):
    return F.mse_loss(prediction, target)


def steps(optimizer, theta, gradients):
    for gradient in gradients:
        theta.grad = gradient.clone()
        optimizer.step()
    return theta


@call
def adam_default(theta, gradients, lr):
    return steps(torch.optim.Adam([theta], lr=lr), theta, gradients)


@call
def adam(theta, gradients, lr, betas, eps):
    return steps(torch.optim.Adam([theta], lr=lr, betas=betas, eps=eps), theta, gradients)


@call
def adamw_default(theta, gradients, lr):
    return steps(torch.optim.AdamW([theta], lr=lr), theta, gradients)


@call
def adamw(theta, gradients, lr, betas, eps, weight_decay):
    optimizer = torch.optim.AdamW([theta], lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
    return steps(optimizer, theta, gradients)


@call
def sgd_default(theta, gradients, lrs, momentum, nesterov):
    return sgd(theta, gradients, lrs, momentum, nesterov)


@call
def sgd(theta, gradients, lrs, momentum, nesterov):
    optimizer = torch.optim.SGD([theta], lr=1.0, momentum=momentum, nesterov=nesterov)
    for lr, gradient in zip(lrs, gradients, strict=True):
        optimizer.param_groups[0]["lr"] = lr
        theta.grad = gradient.clone()
        optimizer.step()
    return theta


@call
def clip_default(a, b, max_norm):
    return clip(a, b, max_norm)


@call
def clip(a, b, max_norm):
    parameters = [nn.Parameter(torch.zeros_like(gradient)) for gradient in (a, b)]
    for parameter, gradient in zip(parameters, (a, b), strict=True):
        parameter.grad = gradient.clone()
    nn.utils.clip_grad_norm_(parameters, max_norm)
    return torch.cat([parameter.grad for parameter in parameters])


@call
def cosine_default(total, warmup, n_steps):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    warm = lr_scheduler.LinearLR(optimizer, start_factor=1e-9, total_iters=warmup)
    decay = lr_scheduler.CosineAnnealingLR(optimizer, total - warmup)
    schedule = lr_scheduler.SequentialLR(optimizer, [warm, decay], milestones=[warmup])
    factors = []
    for _ in range(n_steps):
        factors.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return factors


@call
def cosine(total, warmup, n_steps):
    def factor(step):  # PyTorch counts steps from 0
        if step + 1 <= warmup:
            return (step + 1) / warmup
        progress = min((step + 1 - warmup) / (total - warmup), 1.0)
        return 0.5 * (1.0 + math.cos(math.pi * progress))

    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = lr_scheduler.LambdaLR(optimizer, factor)
    factors = []
    for _ in range(n_steps):
        factors.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return np.array(factors)


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


main(Library(array, to_numpy, gradients))
