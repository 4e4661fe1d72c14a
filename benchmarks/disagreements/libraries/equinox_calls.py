# /// script
# requires-python = ">=3.11"
# dependencies = ["equinox==0.13.8", "jax==0.10.2", "numpy==2.4.6"]
# ///
"""Equinox' answers. Its layers take one sample: `jax.vmap` adds the axes before it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from calls import Library, call, main

jax.config.update("jax_enable_x64", True)
KEY = jax.random.key(0)


@call
def linear(x, W, b):
    layer = eqx.nn.Linear(*W.shape, dtype=W.dtype, key=KEY)
    layer = eqx.tree_at(lambda it: (it.weight, it.bias), layer, (W.T, b))
    return jax.vmap(jax.vmap(layer))(x)


@call
def linear_shape(d_in, d_out):
    return eqx.nn.Linear(d_in, d_out, key=KEY).weight.shape


@call
def layer_norm_default(x):
    return jax.vmap(eqx.nn.LayerNorm(x.shape[-1], dtype=x.dtype))(x)


@call
def layer_norm(x, gamma, beta, eps):
    layer = eqx.nn.LayerNorm(x.shape[-1], eps, dtype=x.dtype)
    layer = eqx.tree_at(lambda it: (it.weight, it.bias), layer, (gamma, beta))
    return jax.vmap(jax.vmap(layer))(x)


@call
def rms_norm_default(x):
    return jax.vmap(eqx.nn.RMSNorm(x.shape[-1], dtype=x.dtype))(x)


@call
def rms_norm(x, gamma, eps):
    layer = eqx.nn.RMSNorm(x.shape[-1], eps, use_bias=False, dtype=x.dtype)
    layer = eqx.tree_at(lambda it: it.weight, layer, gamma)
    return jax.vmap(jax.vmap(layer))(x)


@call
def max_pooling(x):
    return jax.vmap(lambda sample: eqx.nn.MaxPool1d(x.shape[1])(sample.T)[:, 0])(x)


@call
def multihead_shape(d_model, n_heads):
    return eqx.nn.MultiheadAttention(n_heads, d_model, key=KEY).query_proj.weight.shape


@call
def multihead(x, W_query, b_query, W_key, b_key, W_value, b_value, W_output, b_output, n_heads):
    layer = eqx.nn.MultiheadAttention(
        n_heads,
        x.shape[-1],
        use_query_bias=True,
        use_key_bias=True,
        use_value_bias=True,
        use_output_bias=True,
        dtype=x.dtype,
        key=KEY,
    )

    def maps(it):
        return [it.query_proj, it.key_proj, it.value_proj, it.output_proj]

    weights = [W_query.T, W_key.T, W_value.T, W_output.T]
    layer = eqx.tree_at(lambda it: [m.weight for m in maps(it)], layer, weights)
    biases = [b_query, b_key, b_value, b_output]
    layer = eqx.tree_at(lambda it: [m.bias for m in maps(it)], layer, biases)
    return jax.vmap(lambda sample: layer(sample, sample, sample))(x)


@call
def rotary_default(x, positions):
    layer = eqx.nn.RotaryPositionalEmbedding(x.shape[-1])
    padded = jnp.zeros((int(positions[0]) + 1, x.shape[-1]), x.dtype).at[-1].set(x[0, 0, 0])
    return layer(padded)[-1].reshape(x.shape)


@call
def rotary_of_second_layer(x, positions, theta):
    rotary_default(x, positions)
    layer = eqx.nn.RotaryPositionalEmbedding(x.shape[-1], theta)
    padded = jnp.zeros((int(positions[0]) + 1, x.shape[-1]), x.dtype).at[-1].set(x[0, 0, 0])
    return layer(padded)[-1].reshape(x.shape)


@call
def rotary(x, positions, theta, layout):
    eqx.clear_caches()  # which keep tables by size and dtype, whatever theta is
    layer = eqx.nn.RotaryPositionalEmbedding(x.shape[-1], theta, dtype=x.dtype)
    n_pairs = x.shape[-1] // 2
    # The layer has halves: neighbours are brought there, and back.
    order = np.arange(2 * n_pairs)
    order = order if layout == "halves" else order.reshape(n_pairs, 2).T.reshape(-1)
    y = jax.vmap(jax.vmap(layer))(x[..., order])
    return y[..., np.argsort(order)]


@call
def embedding(ids, table):
    return jax.vmap(jax.vmap(eqx.nn.Embedding(weight=table)))(jnp.atleast_2d(ids)).reshape(
        *ids.shape, -1
    )


@call
def embedding_beyond(ids, table):
    return embedding(ids, table)


@call
def conv1d_default(x, W, padding):
    return conv1d(x, W, padding)


@call
def conv1d(x, W, padding):
    kernel, d_in, d_out = W.shape
    layer = eqx.nn.Conv1d(
        d_in, d_out, kernel, padding=padding.upper(), use_bias=False, dtype=x.dtype, key=KEY
    )
    layer = eqx.tree_at(lambda it: it.weight, layer, W.transpose(2, 1, 0))
    return jax.vmap(lambda sample: layer(sample.T).T)(x)


@call
def mean_pooling(x, mask):
    length = x.shape[1]
    means = jax.vmap(lambda sample: eqx.nn.AvgPool1d(length)(sample.T)[:, 0])(x * mask[..., None])
    return means * length / jnp.maximum(mask.sum(1, keepdims=True), 1)


@call
def average_of_windows(x):
    return eqx.nn.AvgPool1d(3, 1, padding=1)(x[None])[0]


@call
def largest_after_dropout(rate):
    return eqx.nn.Dropout(rate)(jnp.ones(1000), key=KEY).max()


@call
def largest_after_dropping_all(rate):
    return largest_after_dropout(rate)


@call
def smallest_after_dropout(rate):
    return np.fmin.reduce(np.asarray(eqx.nn.Dropout(rate)(jnp.full(1000, jnp.nan), key=KEY)))


@call
def spread_of_linear():
    return round(float(eqx.nn.Linear(300, 100, key=KEY).weight.std()), 2)


@call
def spread_of_embedding():
    return round(float(eqx.nn.Embedding(1000, 50, key=KEY).weight.std()), 2)


def array(values, dtype):
    return jnp.asarray(values, dtype=dtype)


def gradients(function, arrays, names, dy):
    fixed = {name: x for name, x in arrays.items() if name not in names}
    varied = {name: x for name, x in arrays.items() if name in names}
    y, backward = jax.vjp(lambda varied: function(**varied, **fixed), varied)
    return y, backward(dy)[0]


main(Library(array, gradients=gradients, compiled=jax.jit))
