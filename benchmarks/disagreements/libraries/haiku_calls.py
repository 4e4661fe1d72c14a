# /// script
# requires-python = ">=3.11"
# dependencies = ["dm-haiku==0.0.17", "jax==0.10.2", "numpy==2.4.6"]
# ///
"""Haiku's answers."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from calls import Library, call, main

jax.config.update("jax_enable_x64", True)
KEY = jax.random.key(0)


def initialize(function, *arrays):
    """Return the parameters of a function that uses Haiku's layers."""
    return hk.transform(function).init(KEY, *arrays)


def apply(function, parameters, *arrays):
    """Apply such a function to parameters."""
    return hk.transform(function).apply(parameters, KEY, *arrays)


@call
def linear(x, W, b):
    return apply(lambda x: hk.Linear(W.shape[1])(x), {"linear": {"w": W, "b": b}}, x)


@call
def linear_shape(d_in, d_out):
    return initialize(lambda x: hk.Linear(d_out)(x), jnp.ones(d_in))["linear"]["w"].shape


@call
def layer_norm_default(x):
    def function(x):
        return hk.LayerNorm(-1, create_scale=True, create_offset=True)(x)

    return apply(function, initialize(function, x), x)


@call
def layer_norm(x, gamma, beta, eps):
    parameters = {"layer_norm": {"scale": gamma, "offset": beta}}
    return apply(lambda x: hk.LayerNorm(-1, True, True, eps)(x), parameters, x)


@call
def rms_norm_default(x):
    def function(x):
        return hk.RMSNorm(-1)(x)

    return apply(function, initialize(function, x), x)


@call
def rms_norm(x, gamma, eps):
    return apply(lambda x: hk.RMSNorm(-1, eps)(x), {"rms_norm": {"scale": gamma}}, x)


@call
def max_pooling(x):
    length = x.shape[1]
    return hk.max_pool(x, (1, length, 1), (1, length, 1), "VALID")[:, 0]


@call
def multihead_shape(d_model, n_heads):
    def function(x):
        return hk.MultiHeadAttention(
            n_heads, d_model // n_heads, w_init=hk.initializers.Constant(1.0)
        )(x, x, x)

    return initialize(function, jnp.ones((1, d_model)))["multi_head_attention/query"]["w"].shape


@call
def multihead(x, W_query, b_query, W_key, b_key, W_value, b_value, W_output, b_output, n_heads):
    d_model = x.shape[-1]
    parameters = {
        "multi_head_attention/query": {"w": W_query, "b": b_query},
        "multi_head_attention/key": {"w": W_key, "b": b_key},
        "multi_head_attention/value": {"w": W_value, "b": b_value},
        "multi_head_attention/linear": {"w": W_output, "b": b_output},
    }

    def function(x):
        return hk.MultiHeadAttention(
            n_heads, d_model // n_heads, w_init=hk.initializers.Constant(1.0)
        )(x, x, x)

    return apply(function, parameters, x)


@call
def embedding(ids, table):
    return apply(lambda ids: hk.Embed(*table.shape)(ids), {"embed": {"embeddings": table}}, ids)


@call
def embedding_beyond(ids, table):
    return embedding(ids, table)


@call
def conv1d_default(x, W, padding):
    return conv1d(x, W, padding)


@call
def conv1d(x, W, padding):
    kernel, _, d_out = W.shape

    def function(x):
        return hk.Conv1D(d_out, kernel, padding=padding.upper(), with_bias=False)(x)

    return apply(function, {"conv1_d": {"w": W}}, x)


@call
def mean_pooling(x, mask):
    length = x.shape[1]
    window = (1, length, 1)
    means = hk.avg_pool(x * mask[..., None], window, window, "VALID")[:, 0]
    return means * length / jnp.maximum(mask.sum(1, keepdims=True), 1)


@call
def average_of_windows(x):
    return hk.avg_pool(x[None, :, None], (1, 3, 1), (1, 1, 1), "SAME")[0, :, 0]


@call
def largest_after_dropout(rate):
    return hk.dropout(KEY, rate, jnp.ones(1000)).max()


@call
def largest_after_dropping_all(rate):
    return largest_after_dropout(rate)


@call
def smallest_after_dropout(rate):
    return np.fmin.reduce(np.asarray(hk.dropout(KEY, rate, jnp.full(1000, jnp.nan))))


@call
def spread_of_linear():
    parameters = initialize(lambda x: hk.Linear(100)(x), jnp.ones(300))
    return round(float(parameters["linear"]["w"].std()), 2)


@call
def spread_of_embedding():
    parameters = initialize(lambda ids: hk.Embed(1000, 50)(ids), jnp.zeros(1, int))
    return round(float(parameters["embed"]["embeddings"].std()), 2)


def array(values, dtype):
    return jnp.asarray(values, dtype=dtype)


def gradients(function, arrays, names, dy):
    fixed = {name: x for name, x in arrays.items() if name not in names}
    varied = {name: x for name, x in arrays.items() if name in names}
    y, backward = jax.vjp(lambda varied: function(**varied, **fixed), varied)
    return y, backward(dy)[0]


main(Library(array, gradients=gradients, compiled=jax.jit))
