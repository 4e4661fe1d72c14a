# /// script
# requires-python = ">=3.11"
# dependencies = ["flax==0.12.8", "jax==0.10.2", "numpy==2.4.6"]
# ///
"""Answers of Flax' nnx."""

import jax
import jax.numpy as jnp
import numpy as np
from calls import Library, call, main
from flax import nnx

jax.config.update("jax_enable_x64", True)


@call
def linear(x, W, b):
    layer = nnx.Linear(*W.shape, param_dtype=W.dtype, rngs=nnx.Rngs(0))
    layer.kernel.value, layer.bias.value = W, b
    return layer(x)


@call
def linear_shape(d_in, d_out):
    return nnx.Linear(d_in, d_out, rngs=nnx.Rngs(0)).kernel.value.shape


@call
def layer_norm_default(x):
    return nnx.LayerNorm(x.shape[-1], rngs=nnx.Rngs(0))(x)


@call
def layer_norm(x, gamma, beta, eps):
    layer = nnx.LayerNorm(
        x.shape[-1], epsilon=eps, use_fast_variance=False, param_dtype=x.dtype, rngs=nnx.Rngs(0)
    )
    layer.scale.value, layer.bias.value = gamma, beta
    return layer(x)


@call
def rms_norm_default(x):
    return nnx.RMSNorm(x.shape[-1], rngs=nnx.Rngs(0))(x)


@call
def rms_norm(x, gamma, eps):
    layer = nnx.RMSNorm(x.shape[-1], epsilon=eps, param_dtype=x.dtype, rngs=nnx.Rngs(0))
    layer.scale.value = gamma
    return layer(x)


@call
def gelu(x, approximate):
    return nnx.gelu(x, approximate=approximate == "tanh")


@call
def silu(x):
    return nnx.silu(x)


@call
def relu(x):
    return nnx.relu(x)


@call
def softmax(x, axis):
    return nnx.softmax(x, axis=axis)


@call
def max_pooling(x):
    return nnx.max_pool(x, (x.shape[1],))[:, 0]


@call
def attention_default(query, key, value, mask):
    query, key, value = (jnp.swapaxes(x, 1, 2) for x in (query, key, value))
    if mask.dtype == bool:
        y = nnx.dot_product_attention(query, key, value, mask=mask)
    else:
        y = nnx.dot_product_attention(query, key, value, bias=mask)
    return jnp.swapaxes(y, 1, 2)


@call
def attention(query, key, value, mask):
    query, key, value = (jnp.swapaxes(x, 1, 2) for x in (query, key, value))
    # It computes float64 arrays in float32.
    y = nnx.dot_product_attention(query, key, value, mask=mask).astype("float32")
    return jnp.where(mask.any(-1, keepdims=True), jnp.swapaxes(y, 1, 2), 0)


@call
def causal_attention_default(query, key, value):
    query, key, value = (jnp.swapaxes(x, 1, 2) for x in (query, key, value))
    y = nnx.dot_product_attention(query, key, value, is_causal=True)
    return jnp.swapaxes(y, 1, 2)


@call
def causal_attention(query, key, value, begin):
    mask = begin + jnp.arange(query.shape[-2])[:, None] >= jnp.arange(key.shape[-2])
    query, key, value = (jnp.swapaxes(x, 1, 2) for x in (query, key, value))
    # It computes float64 arrays in float32.
    y = nnx.dot_product_attention(query, key, value, mask=mask).astype("float32")
    return jnp.swapaxes(y, 1, 2)


@call
def grouped_attention(query, key, value):
    times = query.shape[1] // key.shape[1]
    key, value = jnp.repeat(key, times, axis=1), jnp.repeat(value, times, axis=1)
    query, key, value = (jnp.swapaxes(x, 1, 2) for x in (query, key, value))
    # It computes float64 arrays in float32.
    y = nnx.dot_product_attention(query, key, value).astype("float32")
    return jnp.swapaxes(y, 1, 2)


@call
def multihead_shape(d_model, n_heads):
    layer = nnx.MultiHeadAttention(n_heads, d_model, decode=False, rngs=nnx.Rngs(0))
    return layer.query.kernel.value.shape


@call
def multihead(x, W_query, b_query, W_key, b_key, W_value, b_value, W_output, b_output, n_heads):
    d_model = x.shape[-1]
    layer = nnx.MultiHeadAttention(
        n_heads, d_model, decode=False, param_dtype=x.dtype, rngs=nnx.Rngs(0)
    )
    maps = [
        (layer.query, W_query, b_query),
        (layer.key, W_key, b_key),
        (layer.value, W_value, b_value),
    ]
    for linear_map, W, b in maps:
        linear_map.kernel.value = W.reshape(d_model, n_heads, -1)
        linear_map.bias.value = b.reshape(n_heads, -1)
    layer.out.kernel.value = W_output.reshape(n_heads, -1, d_model)
    layer.out.bias.value = b_output
    return layer(x).astype("float32")  # it computes float64 arrays in float32


@call
def embedding(ids, table):
    layer = nnx.Embed(*table.shape, param_dtype=table.dtype, rngs=nnx.Rngs(0))
    layer.embedding.value = table
    return layer(ids)


@call
def embedding_beyond(ids, table):
    return embedding(ids, table)


@call
def conv1d_default(x, W, padding):
    return conv1d(x, W, padding)


@call
def conv1d(x, W, padding):
    kernel, d_in, d_out = W.shape
    layer = nnx.Conv(
        d_in,
        d_out,
        kernel,
        padding=padding.upper(),
        use_bias=False,
        param_dtype=x.dtype,
        rngs=nnx.Rngs(0),
    )
    layer.kernel.value = W
    return layer(x)


@call
def gated(x, W_gate, W_up, W_down):
    return (nnx.silu(x @ W_gate) * (x @ W_up)) @ W_down


@call
def mean_pooling(x, mask):
    length = x.shape[1]
    means = nnx.avg_pool(x * mask[..., None], (length,))[:, 0]
    return means * length / jnp.maximum(mask.sum(1, keepdims=True), 1)


@call
def average_of_windows(x):
    return nnx.avg_pool(x[None, :, None], (3,), strides=(1,), padding=((1, 1),))[0, :, 0]


@call
def largest_after_dropout(rate):
    return nnx.Dropout(rate, rngs=nnx.Rngs(0))(jnp.ones(1000)).max()


@call
def largest_after_dropping_all(rate):
    return largest_after_dropout(rate)


@call
def smallest_after_dropout(rate):
    y = nnx.Dropout(rate, rngs=nnx.Rngs(0))(jnp.full(1000, jnp.nan))
    return np.fmin.reduce(np.asarray(y))


@call
def spread_of_linear():
    return round(float(nnx.Linear(300, 100, rngs=nnx.Rngs(0)).kernel.value.std()), 2)


@call
def spread_of_embedding():
    return round(float(nnx.Embed(1000, 50, rngs=nnx.Rngs(0)).embedding.value.std()), 2)


def array(values, dtype):
    return jnp.asarray(values, dtype=dtype)


def gradients(function, arrays, names, dy):
    fixed = {name: x for name, x in arrays.items() if name not in names}
    varied = {name: x for name, x in arrays.items() if name in names}
    y, backward = jax.vjp(lambda varied: function(**varied, **fixed), varied)
    return y, backward(dy.astype(y.dtype))[0]


main(Library(array, gradients=gradients, compiled=jax.jit))
