# /// script
# requires-python = ">=3.11"
# dependencies = ["thinc==9.1.1", "numpy==2.4.6"]
# ///
"""Thinc's answers."""

import numpy as np
from calls import Library, call, forward_only, main
from thinc.api import (
    Adam,
    CategoricalCrossentropy,
    Dropout,
    LayerNorm,
    Linear,
    NumpyOps,
    Schedule,
)

OPS = NumpyOps()


@call
@forward_only
def linear(x, W, b):
    layer = Linear(W.shape[1], W.shape[0])
    layer.initialize()
    layer.set_param("W", np.ascontiguousarray(W.T))
    layer.set_param("b", b)
    return layer.predict(x.reshape(-1, W.shape[0])).reshape(*x.shape[:-1], -1)


@call
def linear_shape(d_in, d_out):
    layer = Linear(d_out, d_in)
    layer.initialize()
    return layer.get_param("W").shape


@call
@forward_only
def layer_norm_default(x):
    layer = LayerNorm(x.shape[-1])
    layer.initialize()
    return layer.predict(x)


@call
@forward_only
def gelu_default(x):
    return OPS.gelu(x)


@call
@forward_only
def gelu(x, approximate):
    # Its erf has seven digits, in float64, too.
    x = x.astype("float32")
    return OPS.gelu_approx(x) if approximate == "tanh" else OPS.gelu(x)


@call
@forward_only
def sigmoid(x):
    return OPS.sigmoid(x)


@call
@forward_only
def silu(x):
    return OPS.swish(x)


@call
@forward_only
def relu(x):
    return OPS.relu(x)


@call
@forward_only
def softmax_without_axis(x):
    return OPS.softmax(x).ravel()[0]


@call
@forward_only
def softmax(x, axis):
    return OPS.softmax(x, axis=axis)


@call
def largest_after_dropout(rate):
    layer = Dropout(rate)
    y, _ = layer(np.ones((1, 1000), "float32"), is_train=True)
    return y.max()


@call
def largest_after_dropping_all(rate):
    return largest_after_dropout(rate)


@call
def smallest_after_dropout(rate):
    y, _ = Dropout(rate)(np.full((1, 1000), np.nan, "float32"), is_train=True)
    return np.fmin.reduce(y.ravel())


@call
def spread_of_linear():
    layer = Linear(100, 300)
    layer.initialize()
    return round(float(layer.get_param("W").std()), 2)


@call
@forward_only
def cross_entropy_default(logits, labels):
    loss = CategoricalCrossentropy(missing_value=-1)
    return loss(OPS.softmax(logits), labels)[1]


def steps(optimizer, theta, gradients):
    for gradient in gradients:
        theta, _ = optimizer((0, "theta"), theta, gradient.copy())
    return theta


@call
def adam_default(theta, gradients, lr):
    return steps(Adam(lr, grad_clip=0.0, L2=0.0), theta, gradients)


@call
def adam(theta, gradients, lr, betas, eps):
    def eps_of_step(schedule, step, **options):  # it stands before v's correction
        return eps * (1 - betas[1] ** (step + 1)) ** 0.5

    optimizer = Adam(
        lr,
        beta1=betas[0],
        beta2=betas[1],
        eps=Schedule("eps", eps_of_step),
        grad_clip=0.0,
        L2=0.0,
    )
    theta, gradients = theta.astype("float32"), gradients.astype("float32")  # it has no other
    for gradient in gradients:
        theta, _ = optimizer((0, "theta"), theta, gradient.copy())
        optimizer.step_schedules()
    return theta


@call
def adamw_default(theta, gradients, lr):
    return steps(Adam(lr, grad_clip=0.0), theta, gradients)


@call
def clip_default(a, b, max_norm):
    return np.concatenate([OPS.clip_gradient(gradient, max_norm) for gradient in (a, b)])


def array(values, dtype):
    return values.astype(dtype) if dtype else values


main(Library(array))
