# /// script
# requires-python = ">=3.11"
# dependencies = ["jax==0.10.2", "numpy==2.4.6"]
# ///
"""JAX' answers: jax.numpy and jax.nn."""

import jax
import jax.numpy as jnp
from calls import Library, call, main
from jax.example_libraries import optimizers

jax.config.update("jax_enable_x64", True)


@call
def linear(x, W, b):
    return x @ W + b


@call
def layer_norm_default(x):
    return jax.nn.standardize(x)


@call
def layer_norm(x, gamma, beta, eps):
    return gamma * jax.nn.standardize(x, epsilon=eps) + beta


@call
def rms_norm(x, gamma, eps):
    return gamma * x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + eps)


@call
def gelu_default(x):
    return jax.nn.gelu(x)


@call
def gelu(x, approximate):
    return jax.nn.gelu(x, approximate=approximate == "tanh")


@call
def sigmoid(x):
    return jax.nn.sigmoid(x)


@call
def silu(x):
    return jax.nn.silu(x)


@call
def relu(x):
    return jax.nn.relu(x)


@call
def maximum(x):
    return jnp.maximum(x, 0)


@call
def softmax_without_axis(x):
    return jax.nn.softmax(x).ravel()[0]


@call
def softmax(x, axis):
    return jax.nn.softmax(x, axis=axis)


@call
def log_softmax(x):
    return jax.nn.log_softmax(x)


@call
def largest(x):
    return jnp.max(x)


@call
def max_pooling(x):
    winner = jnp.argmax(x, axis=1)[:, None, :]  # jnp.max shares the gradient out among equals
    return jnp.take_along_axis(x, winner, axis=1)[:, 0, :]


@call
def place_of_largest(x):
    return jnp.argmax(x)


@call
def attention_default(query, key, value, mask):
    query, key, value = (jnp.swapaxes(x, 1, 2) for x in (query, key, value))
    if mask.dtype == bool:
        y = jax.nn.dot_product_attention(query, key, value, mask=mask)
    else:
        y = jax.nn.dot_product_attention(query, key, value, bias=mask)
    return jnp.swapaxes(y, 1, 2)


@call
def attention(query, key, value, mask):
    # jax.nn.dot_product_attention computes float64 arrays in float32.
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = jax.nn.softmax(scores, where=mask)
    return jnp.where(mask.any(-1, keepdims=True), weights @ value, 0)


@call
def causal_attention_default(query, key, value):
    query, key, value = (jnp.swapaxes(x, 1, 2) for x in (query, key, value))
    return jnp.swapaxes(jax.nn.dot_product_attention(query, key, value, is_causal=True), 1, 2)


@call
def causal_attention(query, key, value, begin):
    mask = begin + jnp.arange(query.shape[-2])[:, None] >= jnp.arange(key.shape[-2])
    scores = query @ key.mT / query.shape[-1] ** 0.5
    return jax.nn.softmax(scores, where=mask) @ value


@call
def grouped_attention_default(query, key, value):
    query, key, value = (jnp.swapaxes(x, 1, 2) for x in (query, key, value))
    return jnp.swapaxes(jax.nn.dot_product_attention(query, key, value), 1, 2)


@call
def grouped_attention(query, key, value):
    times = query.shape[1] // key.shape[1]
    key, value = jnp.repeat(key, times, axis=1), jnp.repeat(value, times, axis=1)
    return jax.nn.softmax(query @ key.mT / query.shape[-1] ** 0.5) @ value


@call
def multihead(x, W_query, b_query, W_key, b_key, W_value, b_value, W_output, b_output, n_heads):
    def heads_of(W, b):
        return jnp.swapaxes((x @ W + b).reshape(*x.shape[:2], n_heads, -1), 1, 2)

    query, key, value = (
        heads_of(W_query, b_query),
        heads_of(W_key, b_key),
        heads_of(W_value, b_value),
    )
    heads = jax.nn.softmax(query @ key.mT / query.shape[-1] ** 0.5) @ value
    return jnp.swapaxes(heads, 1, 2).reshape(x.shape) @ W_output + b_output


@call
def rotary(x, positions, theta, layout):
    d_head = x.shape[-1]
    angles = positions[:, None] * theta ** (-jnp.arange(0, d_head, 2) / d_head)
    cosines, sines = jnp.cos(angles), jnp.sin(angles)
    if layout == "halves":
        a, b = jnp.split(x, 2, axis=-1)
    else:
        a, b = x[..., ::2], x[..., 1::2]
    turned = [a * cosines - b * sines, b * cosines + a * sines]
    if layout == "halves":
        return jnp.concatenate(turned, axis=-1)
    return jnp.stack(turned, axis=-1).reshape(x.shape)


@call
def sinusoids(length, d_model, position):
    angles = position * 10000.0 ** (-jnp.arange(0, d_model, 2) / d_model)
    return jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1).ravel()


@call
def embedding(ids, table):
    return table[ids]


@call
def embedding_beyond(ids, table):
    return embedding(ids, table)


@call
def conv1d_default(x, W, padding):
    return conv1d(x, W, padding)


@call
def conv1d(x, W, padding):
    dimensions = ("NWC", "WIO", "NWC")
    return jax.lax.conv_general_dilated(x, W, (1,), padding.upper(), dimension_numbers=dimensions)


@call
def glu(x):
    return jax.nn.glu(x)


@call
def gated(x, W_gate, W_up, W_down):
    return (jax.nn.silu(x @ W_gate) * (x @ W_up)) @ W_down


@call
def mean_pooling_default(x, mask):
    return jnp.mean(x, axis=1, where=mask[..., None])


@call
def mean_pooling(x, mask):
    count = jnp.maximum(mask.sum(1, keepdims=True), 1)
    return jnp.sum(x, axis=1, where=mask[..., None]) / count


@call
def cross_entropy(logits, labels, class_weights, label_smoothing):
    q = jax.nn.one_hot(labels, logits.shape[-1], dtype=logits.dtype)  # 0 for -1
    smooth = q * (1 - label_smoothing) + label_smoothing / logits.shape[-1]
    losses = -jnp.sum(class_weights * smooth * jax.nn.log_softmax(logits), axis=-1)
    return jnp.where(labels >= 0, losses, 0).sum() / (class_weights * q).sum()


@call
def binary_cross_entropy(logits, targets):
    return jnp.mean(jax.nn.softplus(logits) - targets * logits)


@call
def squared_error(prediction, target):
    return jnp.mean((prediction - target) ** 2)


def steps(optimizer, theta, gradients):
    init, update, get_params = optimizer
    state = init(theta)
    for step, gradient in enumerate(gradients):
        state = update(step, gradient, state)
    return get_params(state)


@call
def adam(theta, gradients, lr, betas, eps):
    return steps(optimizers.adam(lr, *betas, eps), theta, gradients)


@call
def adamw(theta, gradients, lr, betas, eps, weight_decay):
    init, update, get_params = optimizers.adam(lr, *betas, eps)
    state = init(jnp.zeros_like(theta))
    for step, gradient in enumerate(gradients):
        before = get_params(state)
        state = update(step, gradient, state)
        theta = (1 - lr * weight_decay) * theta + (get_params(state) - before)
    return theta


@call
def sgd(theta, gradients, lrs, momentum, nesterov):
    rates = jnp.array(lrs)
    optimizer_of = optimizers.nesterov if nesterov else optimizers.momentum
    return steps(optimizer_of(lambda step: rates[step], momentum), theta, gradients)


@call
def clip(a, b, max_norm):
    norm = optimizers.l2_norm([a, b])
    return jnp.concatenate([a, b]) * jnp.minimum(max_norm / (norm + 1e-6), 1.0)


@call
def fourier(x):
    return jnp.fft.fft2(x).real


@call
def inverse(x):
    return jnp.fft.ifft(x).real


@call
def hartley(x):
    transform = jnp.fft.fft2(x)
    return transform.real - transform.imag


@call
def variance_default(x):
    return jnp.var(x)


@call
def variance(x):
    return jnp.var(x, axis=-1)


@call
def mean(x):
    return jnp.mean(x)


@call
def sum_of_ones(n):
    return jnp.ones(n, "float32").sum()


@call
def median(x):
    return jnp.median(x)


def array(values, dtype):
    return jnp.asarray(values, dtype=dtype)


def gradients(function, arrays, names, dy):
    fixed = {name: x for name, x in arrays.items() if name not in names}
    varied = {name: x for name, x in arrays.items() if name in names}
    y, backward = jax.vjp(lambda varied: function(**varied, **fixed), varied)
    return y, backward(dy)[0]


main(Library(array, gradients=gradients, compiled=jax.jit))
