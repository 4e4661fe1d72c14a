"""Tinygrad's losses, optimizers and clipping."""

from calls import call
from tinygrad import Context, Tensor, nn


@call
def cross_entropy_default(logits, labels):
    return logits.sparse_categorical_crossentropy(labels, ignore_index=-1)


@call
def cross_entropy_smoothed(logits, labels, label_smoothing):
    return logits.sparse_categorical_crossentropy(labels, label_smoothing=label_smoothing)


@call
def cross_entropy(logits, labels, class_weights, label_smoothing):
    q = labels.unsqueeze(-1) == Tensor.arange(logits.shape[-1])  # no class is -1
    q = q.cast(logits.dtype)
    smooth = q * (1 - label_smoothing) + label_smoothing / logits.shape[-1]
    losses = -(class_weights * smooth * logits.log_softmax()).sum(-1)
    return (labels >= 0).where(losses, 0).sum() / (class_weights * q).sum()


@call
def binary_cross_entropy(logits, targets):
    return logits.binary_crossentropy_logits(targets)


@call
def binary_cross_entropy_of_probability(p, targets):
    return p.binary_crossentropy(targets)


@call
def squared_error(prediction, target):
    return (prediction - target).square().mean()


def steps(optimizer, theta, gradients):
    with Context(TRAINING=1):
        for gradient in gradients.numpy():
            theta.grad = Tensor(gradient, dtype=theta.dtype)
            optimizer.step()
    return theta


@call
def adam_default(theta, gradients, lr):
    return steps(nn.optim.Adam([theta], lr=lr), theta, gradients)


@call
def adam(theta, gradients, lr, betas, eps):
    theta = theta.float()  # the optimizer's own numbers are float32
    return steps(nn.optim.Adam([theta], lr, *betas, eps), theta, gradients)


@call
def adamw_default(theta, gradients, lr):
    return steps(nn.optim.AdamW([theta], lr=lr), theta, gradients)


@call
def adamw(theta, gradients, lr, betas, eps, weight_decay):
    theta = theta.float()  # the optimizer's own numbers are float32
    return steps(nn.optim.AdamW([theta], lr, *betas, eps, weight_decay), theta, gradients)


@call
def sgd_default(theta, gradients, lrs, momentum, nesterov):
    optimizer = nn.optim.SGD([theta], lr=1.0, momentum=momentum, nesterov=nesterov)
    with Context(TRAINING=1):
        for lr, gradient in zip(lrs, gradients.numpy(), strict=True):
            optimizer.lr.assign(Tensor([lr], dtype=optimizer.lr.dtype)).realize()
            theta.grad = Tensor(gradient, dtype=theta.dtype)
            optimizer.step()
    return theta


@call
def sgd(theta, gradients, lrs, momentum, nesterov):
    return sgd_default(theta.float(), gradients, lrs, momentum, nesterov)  # its rate is float32


@call
def clip(a, b, max_norm):
    norm = (a.square().sum() + b.square().sum()).sqrt()
    return a.cat(b) * (max_norm / (norm + 1e-6)).minimum(1)
