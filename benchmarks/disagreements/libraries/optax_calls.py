# /// script
# requires-python = ">=3.11"
# dependencies = ["optax==0.2.8", "jax==0.10.2", "numpy==2.4.6"]
# ///
"""Optax' answers."""

import jax
import jax.numpy as jnp
import optax
from calls import Library, call, main

jax.config.update("jax_enable_x64", True)


@call
def cross_entropy_default(logits, labels):
    losses = optax.softmax_cross_entropy_with_integer_labels(
        logits, jnp.maximum(labels, 0), where=jnp.broadcast_to((labels >= 0)[:, None], logits.shape)
    )
    return losses.mean()


@call
def cross_entropy_smoothed(logits, labels, label_smoothing):
    q = optax.smooth_labels(jax.nn.one_hot(labels, logits.shape[-1]), label_smoothing)
    return optax.softmax_cross_entropy(logits, q).mean()


@call
def cross_entropy(logits, labels, class_weights, label_smoothing):
    right = jax.nn.one_hot(labels, logits.shape[-1], dtype=logits.dtype)  # 0 for -1
    q = class_weights * optax.smooth_labels(right, label_smoothing)
    losses = optax.safe_softmax_cross_entropy(logits, q)
    return jnp.where(labels >= 0, losses, 0).sum() / (class_weights * right).sum()


@call
def binary_cross_entropy(logits, targets):
    return optax.sigmoid_binary_cross_entropy(logits, targets).mean()


@call
def squared_error_default(prediction, target):
    return optax.l2_loss(prediction, target).mean()


@call
def squared_error(prediction, target):
    return optax.squared_error(prediction, target).mean()


def steps(optimizer, theta, gradients):
    state = optimizer.init(theta)
    for gradient in gradients:
        updates, state = optimizer.update(gradient, state, theta)
        theta = optax.apply_updates(theta, updates)
    return theta


@call
def adam_default(theta, gradients, lr):
    return steps(optax.adam(lr), theta, gradients)


@call
def adam(theta, gradients, lr, betas, eps):
    return steps(optax.adam(lr, *betas, eps), theta, gradients)


@call
def adamw_default(theta, gradients, lr):
    return steps(optax.adamw(lr), theta, gradients)


@call
def adamw(theta, gradients, lr, betas, eps, weight_decay):
    return steps(optax.adamw(lr, *betas, eps, weight_decay=weight_decay), theta, gradients)


@call
def sgd_default(theta, gradients, lrs, momentum, nesterov):
    return sgd(theta, gradients, lrs, momentum, nesterov)


@call
def sgd(theta, gradients, lrs, momentum, nesterov):
    rates = jnp.array(lrs)
    optimizer = optax.sgd(lambda step: rates[step], momentum, nesterov)
    return steps(optimizer, theta, gradients)


@call
def clip_default(a, b, max_norm):
    clipped, _ = optax.clip_by_global_norm(max_norm).update([a, b], None)
    return jnp.concatenate(clipped)


@call
def clip(a, b, max_norm):
    factor = jnp.minimum(max_norm / (optax.global_norm([a, b]) + 1e-6), 1.0)
    return jnp.concatenate([a, b]) * factor


@call
def cosine_default(total, warmup, n_steps):
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1.0, warmup, total)
    return jnp.array([schedule(step) for step in range(n_steps)])


@call
def cosine(total, warmup, n_steps):
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1.0, warmup, total)
    return jnp.array([schedule(step) for step in range(1, n_steps + 1)])


def array(values, dtype):
    return jnp.asarray(values, dtype=dtype)


def gradients(function, arrays, names, dy):
    fixed = {name: x for name, x in arrays.items() if name not in names}
    varied = {name: x for name, x in arrays.items() if name in names}
    y, backward = jax.vjp(lambda varied: function(**varied, **fixed), varied)
    return y, backward(dy)[0]


main(Library(array, gradients=gradients, compiled=jax.jit))
