# /// script
# requires-python = ">=3.11"
# dependencies = ["paddlepaddle==3.3.1", "setuptools==80.9.0", "numpy==2.4.6"]
# ///
"""Answers of PaddlePaddle."""

import math

import numpy as np
import paddle
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
def embedding(ids, table):
    return F.embedding(ids, table)


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
    # Its own mean counts ignored labels.
    q = F.one_hot(labels.clip(min=0), logits.shape[-1]).astype(logits.dtype)
    q = q * (labels >= 0).unsqueeze(-1).astype(logits.dtype)
    smooth = q * (1 - label_smoothing) + label_smoothing / logits.shape[-1]
    losses = -(class_weights * smooth * F.log_softmax(logits)).sum(-1)
    return (losses * (labels >= 0).astype(logits.dtype)).sum() / (class_weights * q).sum()


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
    theta.stop_gradient = False
    for gradient in gradients:
        (theta * gradient).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
    return theta


@call
def adam_default(theta, gradients, lr):
    theta.stop_gradient = False
    return steps(paddle.optimizer.Adam(lr, parameters=[theta]), theta, gradients)


@call
def adam(theta, gradients, lr, betas, eps):
    theta.stop_gradient = False
    return steps(paddle.optimizer.Adam(lr, *betas, eps, parameters=[theta]), theta, gradients)


@call
def adamw_default(theta, gradients, lr):
    theta.stop_gradient = False
    return steps(paddle.optimizer.AdamW(lr, parameters=[theta]), theta, gradients)


@call
def adamw(theta, gradients, lr, betas, eps, weight_decay):
    theta.stop_gradient = False
    optimizer = paddle.optimizer.Adam(lr, *betas, eps, parameters=[theta])
    for gradient in gradients:
        # AdamW rounds this factor to float32.
        theta.set_value(theta.detach() * (1 - lr * weight_decay))
        steps(optimizer, theta, [gradient])
    return theta


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


main(Library(array, to_numpy, gradients))
