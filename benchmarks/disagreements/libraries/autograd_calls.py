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
def silu(x):
    return x * special.expit(x)


@call
def relu(x):
    return anp.where(x <= 0, 0, x)  # anp.maximum gives half of the gradient at 0


@call
def maximum(x):
    return anp.maximum(x, 0)


@call
def largest(x):
    return anp.max(x)


@call
def max_pooling(x):
    winner = anp.argmax(x, axis=1)[:, None, :]  # anp.max shares the gradient out among equals
    return anp.sum(x * (np.arange(x.shape[1])[:, None] == winner), axis=1)


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
def rms_norm(x, gamma, eps):
    return gamma * x / anp.sqrt(anp.mean(x**2, axis=-1, keepdims=True) + eps)


def attention_of(query, key, value, allowed):
    scores = query @ anp.swapaxes(key, -1, -2) / query.shape[-1] ** 0.5
    scores = anp.where(allowed, scores, -1e30)
    weights = anp.exp(scores - special.logsumexp(scores, axis=-1, keepdims=True))
    return weights @ value


@call
def attention(query, key, value, mask):
    y = attention_of(query, key, value, mask)
    return anp.where(mask.any(-1, keepdims=True), y, 0)


@call
def causal_attention(query, key, value, begin):
    mask = begin + np.arange(query.shape[-2])[:, None] >= np.arange(key.shape[-2])
    return attention_of(query, key, value, mask)


@call
def grouped_attention(query, key, value):
    times = query.shape[1] // key.shape[1]
    key, value = anp.repeat(key, times, axis=1), anp.repeat(value, times, axis=1)
    return attention_of(query, key, value, True)


@call
def multihead(x, W_query, b_query, W_key, b_key, W_value, b_value, W_output, b_output, n_heads):
    def heads_of(W, b):
        y = anp.dot(x, W) + b
        return anp.swapaxes(anp.reshape(y, (*x.shape[:2], n_heads, -1)), 1, 2)

    query, key, value = (
        heads_of(W_query, b_query),
        heads_of(W_key, b_key),
        heads_of(W_value, b_value),
    )
    heads = anp.swapaxes(attention_of(query, key, value, True), 1, 2)
    return anp.dot(anp.reshape(heads, x.shape), W_output) + b_output


@call
def rotary(x, positions, theta, layout):
    d_head = x.shape[-1]
    angles = positions[:, None] * theta ** (-np.arange(0, d_head, 2) / d_head)
    cosines, sines = np.cos(angles), np.sin(angles)
    if layout == "halves":
        a, b = x[..., : d_head // 2], x[..., d_head // 2 :]
    else:
        a, b = x[..., ::2], x[..., 1::2]
    turned = [a * cosines - b * sines, b * cosines + a * sines]
    if layout == "halves":
        return anp.concatenate(turned, axis=-1)
    return anp.reshape(anp.stack(turned, axis=-1), x.shape)


@call
def sinusoids(length, d_model, position):
    angles = position * 10000.0 ** (-np.arange(0, d_model, 2) / d_model)
    return anp.reshape(anp.stack([anp.sin(angles), anp.cos(angles)], axis=-1), -1)


@call
def embedding(ids, table):
    return table[ids]


@call
def conv1d(x, W, padding):
    kernel = W.shape[0]
    around = ((kernel - 1) // 2, kernel // 2) if padding == "same" else (0, 0)
    padded = anp.pad(x, ((0, 0), around, (0, 0)), "constant")
    length = padded.shape[1] - kernel + 1
    return sum(anp.dot(padded[:, k : k + length], W[k]) for k in range(kernel))


@call
def gated(x, W_gate, W_up, W_down):
    return anp.dot(silu(anp.dot(x, W_gate)) * anp.dot(x, W_up), W_down)


@call
def mean_pooling(x, mask):
    count = np.maximum(mask.sum(1, keepdims=True), 1)
    return anp.sum(x * mask[..., None], axis=1) / count


@call
def cross_entropy(logits, labels, class_weights, label_smoothing):
    q = (np.arange(logits.shape[-1]) == labels[:, None]) * 1.0  # no class is -1
    smooth = q * (1 - label_smoothing) + label_smoothing / logits.shape[-1]
    log_p = logits - special.logsumexp(logits, axis=-1, keepdims=True)
    losses = -anp.sum(class_weights * smooth * log_p, axis=-1)
    return anp.sum(losses * (labels >= 0)) / (class_weights * q).sum()


@call
def binary_cross_entropy(logits, targets):
    return anp.mean(anp.logaddexp(0, logits) - targets * logits)


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
def adamw(theta, gradients, lr, betas, eps, weight_decay):
    def decay(theta, step, gradient):
        theta *= 1 - lr * weight_decay  # a view of the optimizer's own array

    gradient = rows_as_gradients(gradients)
    return optimizers.adam(gradient, theta.copy(), decay, len(gradients), lr, *betas, eps)


@call
@forward_only
def sgd(theta, gradients, lrs, momentum, nesterov):
    # It holds 1 - momentum of each gradient, and one rate: its steps are those of the velocity.
    sums = []
    rows = [*gradients, np.zeros_like(theta)]
    optimizers.sgd(
        lambda theta, step: -rows[step],
        np.zeros_like(theta),
        lambda total, step, gradient: sums.append(total),
        len(rows),
        1 / (1 - momentum),
        momentum,
    )
    for lr, gradient, velocity in zip(lrs, gradients, np.diff(sums, axis=0), strict=True):
        theta = theta - lr * (gradient + momentum * velocity if nesterov else velocity)
    return theta


@call
def clip(a, b, max_norm):
    norm = anp.sqrt(anp.sum(a**2) + anp.sum(b**2))
    return anp.concatenate([a, b]) * anp.minimum(max_norm / (norm + 1e-6), 1.0)


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
