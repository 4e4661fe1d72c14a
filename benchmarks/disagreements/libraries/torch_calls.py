# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
# ///
"""PyTorch's answers."""

import torch
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
def attention_default(query, key, value, mask):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


@call
def attention(query, key, value, mask):
    weights = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf)
    weights = weights.softmax(-1).masked_fill(~mask.any(-1, keepdim=True), 0.0)
    return weights @ value


@call
def causal_attention_default(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


@call
def causal_attention(query, key, value, begin):
    queries = begin + torch.arange(query.shape[-2])
    mask = queries[:, None] >= torch.arange(key.shape[-2])
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


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
