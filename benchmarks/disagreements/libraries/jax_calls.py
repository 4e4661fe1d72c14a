# /// script
# requires-python = ">=3.11"
# dependencies = ["jax==0.10.2", "numpy==2.4.6"]
# ///
"""JAX' answers: jax.numpy and jax.nn."""

import jax
import jax.numpy as jnp
from calls import Library, call, main

jax.config.update("jax_enable_x64", True)


@call
def linear(x, W, b):
    return x @ W + b


@call
def layer_norm(x, gamma, beta, eps):
    return gamma * jax.nn.standardize(x, epsilon=eps) + beta


@call
def layer_norm_default(x):
    return jax.nn.standardize(x)


@call
def gelu_default(x):
    return jax.nn.gelu(x)


@call
def gelu(x, approximate):
    return jax.nn.gelu(x, approximate=approximate == "tanh")


@call
def attention_default(query, key, value, mask):
    query, key, value = (jnp.swapaxes(x, 1, 2) for x in (query, key, value))
    return jnp.swapaxes(jax.nn.dot_product_attention(query, key, value, mask=mask), 1, 2)


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


def array(values, dtype):
    return jnp.asarray(values, dtype=dtype)


def gradients(function, arrays, names, dy):
    fixed = {name: x for name, x in arrays.items() if name not in names}
    varied = {name: x for name, x in arrays.items() if name in names}
    y, backward = jax.vjp(lambda varied: function(**varied, **fixed), varied)
    return y, backward(dy)[0]


main(Library(array, gradients=gradients, compiled=jax.jit))
