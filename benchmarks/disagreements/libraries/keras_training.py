"""Keras' losses, optimizers, clipping and schedules, for the scripts of all its backends."""

import keras
from calls import call, forward_only
from keras import ops

dtype_of = keras.backend.standardize_dtype


@call
def cross_entropy_default(logits, labels):
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=-1, dtype=dtype_of(logits.dtype)
    )
    return loss(labels, logits)


@call
def cross_entropy_weighted(logits, labels, class_weights):
    # As `fit(class_weight=...)` does: a weight for each sample.
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, dtype=dtype_of(logits.dtype)
    )
    return loss(labels, logits, sample_weight=class_weights[labels])


@call
def cross_entropy_smoothed(logits, labels, label_smoothing):
    loss = keras.losses.CategoricalCrossentropy(
        from_logits=True, label_smoothing=label_smoothing, dtype=dtype_of(logits.dtype)
    )
    return loss(ops.one_hot(labels, logits.shape[-1]), logits)


@call
def cross_entropy(logits, labels, class_weights, label_smoothing):
    q = ops.one_hot(labels, logits.shape[-1], dtype=dtype_of(logits.dtype))  # 0 for -1
    smooth = q * (1 - label_smoothing) + label_smoothing / logits.shape[-1]
    losses = -ops.sum(class_weights * smooth * ops.log_softmax(logits), axis=-1)
    counts = ops.sum(class_weights * q, axis=-1)
    return ops.sum(ops.where(labels >= 0, losses, 0)) / ops.sum(counts)


@call
def binary_cross_entropy(logits, targets):
    loss = keras.losses.BinaryCrossentropy(from_logits=True, dtype=dtype_of(logits.dtype))
    return loss(targets, logits)


@call
def binary_cross_entropy_of_probability(p, targets):
    return keras.losses.BinaryCrossentropy()(targets, p)


@call
def squared_error_default(prediction, target):
    return keras.losses.MeanSquaredError()(target, prediction)


@call
def squared_error(prediction, target):
    return keras.losses.MeanSquaredError(dtype=dtype_of(prediction.dtype))(target, prediction)


def steps(optimizer, theta, gradients):
    variable = keras.Variable(theta, dtype=dtype_of(theta.dtype))
    optimizer.build([variable])
    for gradient in gradients:
        optimizer.apply([gradient])
    return variable.value


@call
@forward_only
def adam_default(theta, gradients, lr):
    return steps(keras.optimizers.Adam(lr), theta, gradients)


@call
def adam(theta, gradients, lr, betas, eps):
    optimizer = keras.optimizers.Adam(lr, *betas)
    variable = keras.Variable(theta, dtype=dtype_of(theta.dtype))
    optimizer.build([variable])
    for step, gradient in enumerate(gradients, start=1):
        optimizer.epsilon = eps * (1 - betas[1] ** step) ** 0.5  # it stands before v's correction
        optimizer.apply([gradient])
    return variable.value


@call
def adamw_default(theta, gradients, lr):
    return steps(keras.optimizers.AdamW(lr), theta, gradients)


@call
def adamw(theta, gradients, lr, betas, eps, weight_decay):
    optimizer = keras.optimizers.AdamW(lr, weight_decay, *betas)
    variable = keras.Variable(theta, dtype=dtype_of(theta.dtype))
    optimizer.build([variable])
    for step, gradient in enumerate(gradients, start=1):
        optimizer.epsilon = eps * (1 - betas[1] ** step) ** 0.5  # it stands before v's correction
        optimizer.apply([gradient])
    return variable.value


@call
def sgd_default(theta, gradients, lrs, momentum, nesterov):
    optimizer = keras.optimizers.SGD(1.0, momentum=momentum, nesterov=nesterov)
    variable = keras.Variable(theta, dtype=dtype_of(theta.dtype))
    optimizer.build([variable])
    for lr, gradient in zip(lrs, gradients, strict=True):
        optimizer.learning_rate = lr
        optimizer.apply([gradient])
    return variable.value


@call
def sgd(theta, gradients, lrs, momentum, nesterov):
    optimizer = keras.optimizers.SGD(lrs[0], momentum=momentum, nesterov=nesterov)
    variable = keras.Variable(theta, dtype=dtype_of(theta.dtype))
    optimizer.build([variable])
    last = lrs[0]
    for lr, gradient in zip(lrs, gradients, strict=True):
        velocity = optimizer.momentums[0]
        velocity.assign(velocity * (lr / last))  # which holds the rate
        optimizer.learning_rate = last = lr
        optimizer.apply([gradient])
    return variable.value


@call
def clip_default(a, b, max_norm):
    clipped = keras.optimizers.SGD(global_clipnorm=max_norm)._clip_gradients([a, b])
    return ops.concatenate(clipped)


@call
def clip(a, b, max_norm):
    norm = ops.sqrt(ops.sum(a * a) + ops.sum(b * b))
    return ops.concatenate([a, b]) * ops.minimum(max_norm / (norm + 1e-6), 1.0)


@call
def cosine_default(total, warmup, n_steps):
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, total - warmup, warmup_target=1.0, warmup_steps=warmup
    )
    return [float(schedule(step)) for step in range(n_steps)]


@call
def cosine(total, warmup, n_steps):
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, total - warmup, warmup_target=1.0, warmup_steps=warmup
    )
    factors = [schedule(step) for step in range(1, n_steps + 1)]
    return ops.cast(ops.stack(factors), "float32")  # which the schedule computes in
