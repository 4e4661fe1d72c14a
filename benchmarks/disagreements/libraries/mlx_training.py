"""MLX' losses, optimizers, clipping and schedules."""

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from calls import call


@call
def cross_entropy_default(logits, labels):
    return nn.losses.cross_entropy(logits, labels, reduction="mean")


@call
def cross_entropy_weighted(logits, labels, class_weights):
    weights = class_weights[labels]
    return nn.losses.cross_entropy(logits, labels, weights=weights, reduction="mean")


@call
def cross_entropy_smoothed(logits, labels, label_smoothing):
    return nn.losses.cross_entropy(
        logits, labels, label_smoothing=label_smoothing, reduction="mean"
    )


@call
def cross_entropy(logits, labels, class_weights, label_smoothing):
    right = mx.arange(logits.shape[-1]) == labels[:, None]  # no class is -1
    q = right.astype(logits.dtype)
    smooth = q * (1 - label_smoothing) + label_smoothing / logits.shape[-1]
    losses = -(class_weights * smooth * nn.log_softmax(logits)).sum(-1)
    return mx.where(labels >= 0, losses, 0).sum() / (class_weights * q).sum()


@call
def binary_cross_entropy(logits, targets):
    return nn.losses.binary_cross_entropy(logits, targets, reduction="mean")


@call
def binary_cross_entropy_of_probability(p, targets):
    return nn.losses.binary_cross_entropy(p, targets, with_logits=False, reduction="mean")


@call
def squared_error_default(prediction, target):
    return nn.losses.mse_loss(prediction, target)


@call
def squared_error(prediction, target):
    return nn.losses.mse_loss(prediction, target)


def steps(optimizer, theta, gradients):
    parameters = {"theta": theta}
    for gradient in gradients:
        parameters = optimizer.apply_gradients({"theta": gradient}, parameters)
    return parameters["theta"]


@call
def adam_default(theta, gradients, lr):
    return steps(optim.Adam(lr), theta, gradients)


@call
def adam(theta, gradients, lr, betas, eps):
    return steps(optim.Adam(lr, betas, eps, bias_correction=True), theta, gradients)


@call
def adamw_default(theta, gradients, lr):
    return steps(optim.AdamW(lr), theta, gradients)


@call
def adamw(theta, gradients, lr, betas, eps, weight_decay):
    optimizer = optim.AdamW(lr, betas, eps, weight_decay, bias_correction=True)
    return steps(optimizer, theta, gradients)


@call
def sgd_default(theta, gradients, lrs, momentum, nesterov):
    return sgd(theta, gradients, lrs, momentum, nesterov)


@call
def sgd(theta, gradients, lrs, momentum, nesterov):
    parameters = {"theta": theta}
    optimizer = optim.SGD(1.0, momentum=momentum, nesterov=nesterov)
    for lr, gradient in zip(lrs, gradients, strict=True):
        optimizer.learning_rate = lr
        parameters = optimizer.apply_gradients({"theta": gradient}, parameters)
    return parameters["theta"]


@call
def clip_default(a, b, max_norm):
    return clip(a, b, max_norm)


@call
def clip(a, b, max_norm):
    gradients, _ = optim.clip_grad_norm({"a": a, "b": b}, max_norm)
    return mx.concatenate([gradients["a"], gradients["b"]])


@call
def cosine_default(total, warmup, n_steps):
    warm = optim.linear_schedule(0.0, 1.0, warmup)
    decay = optim.cosine_decay(1.0, total - warmup)
    schedule = optim.join_schedules([warm, decay], [warmup])
    return np.array([float(schedule(mx.array(step))) for step in range(n_steps)])


@call
def cosine(total, warmup, n_steps):
    warm = optim.linear_schedule(0.0, 1.0, warmup)
    decay = optim.cosine_decay(1.0, total - warmup)
    schedule = optim.join_schedules([warm, decay], [warmup])
    factors = [schedule(mx.array(step)) for step in range(1, n_steps + 1)]
    return mx.stack([mx.array(factor) for factor in factors])
