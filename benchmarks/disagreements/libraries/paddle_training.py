"""PaddlePaddle's losses, optimizers, clipping and schedules."""

import math

import numpy as np
import paddle
from calls import call
from paddle.nn import functional as F


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
def sgd(theta, gradients, lrs, momentum, nesterov):
    theta, gradients = theta.astype("float32"), gradients.astype("float32")  # its rate is float32
    theta.stop_gradient = False
    optimizer = paddle.optimizer.Momentum(1.0, momentum, [theta], use_nesterov=nesterov)
    for lr, gradient in zip(lrs, gradients, strict=True):
        optimizer.set_lr(lr)
        steps(optimizer, theta, [gradient])
    return theta


@call
def clip(a, b, max_norm):
    norm = (a.square().sum() + b.square().sum()).sqrt()
    return paddle.concat([a, b]) * (max_norm / (norm + 1e-6)).clip(max=1)


@call
def cosine(total, warmup, n_steps):
    def factor(step):  # paddle counts steps from 0
        if step + 1 <= warmup:
            return (step + 1) / warmup
        progress = min((step + 1 - warmup) / (total - warmup), 1.0)
        return 0.5 * (1.0 + math.cos(math.pi * progress))

    schedule = paddle.optimizer.lr.LambdaDecay(1.0, factor)
    factors = []
    for _ in range(n_steps):
        factors.append(schedule.get_lr())
        schedule.step()
    return np.array(factors)
