"""PyTorch's losses, optimizers, clipping and schedules."""

import math

import numpy as np
import torch
from calls import call
from torch import nn
from torch.nn import functional as F
from torch.optim import lr_scheduler


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
