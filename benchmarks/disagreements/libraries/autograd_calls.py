# /// script
# requires-python = ">=3.11"
# dependencies = ["autograd==1.9.1", "scipy==1.17.1", "numpy==2.4.6"]
# ///
"""Autograd's answers."""

import autograd.numpy as anp
import autograd.scipy.special as special
import numpy as np
from autograd import make_vjp
from autograd.misc import optimizers
from calls import Library, call, forward_only, main


@call
def linear(x, W, b):
    return anp.dot(x, W) + b


@call
def gelu(x, approximate):
    if approximate == "none":
        return 0.5 * x * (1 + special.erf(x / np.sqrt(2)))
    return 0.5 * x * (1 + anp.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@call
def maximum(x):
    return anp.maximum(x, 0)


@call
def largest(x):
    return anp.max(x)


@call
def place_of_largest(x):
    return np.argmax(x)


@call
def softmax(x, axis):
    return anp.exp(x - special.logsumexp(x, axis=axis, keepdims=True))


@call
def layer_norm(x, gamma, beta, eps):
    centred = x - anp.mean(x, axis=-1, keepdims=True)
    return gamma * centred / anp.sqrt(anp.var(x, axis=-1, keepdims=True) + eps) + beta


@call
def squared_error(prediction, target):
    return anp.mean((prediction - target) ** 2)


def rows_as_gradients(gradients):
    return lambda theta, step: gradients[step]


@call
@forward_only
def adam_default(theta, gradients, lr):
    return optimizers.adam(rows_as_gradients(gradients), theta, None, len(gradients), lr)


@call
@forward_only
def adam(theta, gradients, lr, betas, eps):
    gradient = rows_as_gradients(gradients)
    return optimizers.adam(gradient, theta, None, len(gradients), lr, *betas, eps)


@call
@forward_only
def fourier(x):
    return anp.real(anp.fft.fft2(x))


@call
@forward_only
def hartley(x):
    transform = anp.fft.fft2(x)
    return anp.real(transform) - anp.imag(transform)


@call
@forward_only
def inverse(x):
    return anp.real(anp.fft.ifft(x))


@call
def variance_default(x):
    return anp.var(x)


@call
def variance(x):
    return anp.var(x, axis=-1)


@call
def mean(x):
    return anp.mean(x)


@call
def sum_of_ones(n):
    return anp.sum(np.ones(n, "float32"))


def array(values, dtype):
    return values.astype(dtype) if dtype else values


def gradients(function, arrays, names, dy):
    fixed = {name: x for name, x in arrays.items() if name not in names}
    varied = [arrays[name] for name in names]

    def function_of_varied(varied):
        return function(**dict(zip(names, varied, strict=True)), **fixed)

    backward, y = make_vjp(function_of_varied)(tuple(varied))
    return y, dict(zip(names, backward(dy), strict=True))


main(Library(array, gradients=gradients))
