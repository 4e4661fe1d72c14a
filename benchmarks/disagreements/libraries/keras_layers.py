"""Keras' layers and operations, for the scripts of all its backends."""

import keras
import numpy as np
from calls import call
from keras import layers, ops

dtype_of = keras.backend.standardize_dtype


@call
def linear(x, W, b):
    layer = layers.Dense(W.shape[1], dtype=dtype_of(x.dtype))
    layer.build(x.shape)
    return layer.stateless_call([W, b], [], x)[0]


@call
def linear_shape(d_in, d_out):
    layer = layers.Dense(d_out)
    layer.build((None, d_in))
    return tuple(layer.kernel.shape)


@call
def layer_norm_default(x):
    layer = layers.LayerNormalization(dtype=dtype_of(x.dtype))
    layer.build(x.shape)
    return layer(x)


@call
def layer_norm(x, gamma, beta, eps):
    layer = layers.LayerNormalization(epsilon=eps, dtype=dtype_of(x.dtype))
    layer.build(x.shape)
    return layer.stateless_call([gamma, beta], [], x)[0]


@call
def rms_norm_default(x):
    layer = layers.RMSNormalization(dtype=dtype_of(x.dtype))
    layer.build(x.shape)
    return layer(x)


@call
def rms_norm(x, gamma, eps):
    return ops.rms_normalization(x, gamma, epsilon=eps)


@call
def gelu_default(x):
    return ops.gelu(x)


@call
def gelu(x, approximate):
    return ops.gelu(x, approximate=approximate == "tanh")


@call
def sigmoid(x):
    return keras.activations.sigmoid(x)


@call
def silu(x):
    return keras.activations.silu(x)


@call
def relu(x):
    return keras.activations.relu(x)


@call
def maximum(x):
    return ops.maximum(x, 0)


@call
def softmax_without_axis(x):
    return ops.reshape(keras.activations.softmax(x), [-1])[0]


@call
def softmax(x, axis):
    return ops.softmax(x, axis=axis)


@call
def log_softmax(x):
    return ops.log_softmax(x)


@call
def largest(x):
    return ops.max(x)


@call
def max_pooling(x):
    winner = ops.argmax(x, axis=1)[:, None, :]
    return ops.take_along_axis(x, winner, axis=1)[:, 0, :]


@call
def place_of_largest(x):
    return ops.argmax(x)


@call
def attention_default(query, key, value, mask):
    query, key, value = (ops.swapaxes(x, 1, 2) for x in (query, key, value))
    if mask.dtype == bool:
        y = ops.dot_product_attention(query, key, value, mask=mask)
    else:
        y = ops.dot_product_attention(query, key, value, bias=mask)
    return ops.swapaxes(y, 1, 2)


@call
def attention(query, key, value, mask):
    scores = query @ ops.swapaxes(key, -1, -2) / query.shape[-1] ** 0.5
    weights = ops.softmax(ops.where(mask, scores, -1e30))
    return ops.where(ops.any(mask, axis=-1, keepdims=True), weights @ value, 0.0)


@call
def causal_attention_default(query, key, value):
    query, key, value = (ops.swapaxes(x, 1, 2) for x in (query, key, value))
    return ops.swapaxes(ops.dot_product_attention(query, key, value, is_causal=True), 1, 2)


@call
def causal_attention(query, key, value, begin):
    mask = begin + ops.arange(query.shape[-2])[:, None] >= ops.arange(key.shape[-2])
    scores = query @ ops.swapaxes(key, -1, -2) / query.shape[-1] ** 0.5
    return ops.softmax(ops.where(mask, scores, -1e30)) @ value


@call
def grouped_attention_default(query, key, value):
    layer = layers.GroupQueryAttention(1, 4, 2, use_bias=False)
    query, key, value = (ops.reshape(x, [1, 1, -1]) for x in (query, key, value))
    layer.build(query.shape, value.shape, key.shape)
    weights = [np.ones(w.shape) for w in layer.weights]
    weights[2] = np.eye(2)[:, :, None]  # head h of the values is feature h
    weights[-1] = np.eye(4)[:, None, :]
    layer.set_weights(weights)
    return ops.reshape(layer(query, value, key), [1, 4, 1, 1])


@call
def grouped_attention(query, key, value):
    times = query.shape[1] // key.shape[1]
    key, value = ops.repeat(key, times, axis=1), ops.repeat(value, times, axis=1)
    return ops.softmax(query @ ops.swapaxes(key, -1, -2) / query.shape[-1] ** 0.5) @ value


@call
def multihead_shape(d_model, n_heads):
    layer = layers.MultiHeadAttention(n_heads, d_model // n_heads)
    layer.build((1, 1, d_model), (1, 1, d_model))
    return tuple(layer.query_dense.kernel.shape)


@call
def multihead(x, W_query, b_query, W_key, b_key, W_value, b_value, W_output, b_output, n_heads):
    d_model = x.shape[-1]
    layer = layers.MultiHeadAttention(n_heads, d_model // n_heads, dtype=dtype_of(x.dtype))
    layer.build(x.shape, x.shape)
    weights = []
    for W, b in ((W_query, b_query), (W_key, b_key), (W_value, b_value)):
        weights += [W.reshape(d_model, n_heads, -1), b.reshape(n_heads, -1)]
    weights += [W_output.reshape(n_heads, -1, d_model), b_output]
    return layer.stateless_call(weights, [v.value for v in layer.non_trainable_variables], x, x)[0]


@call
def rotary(x, positions, theta, layout):
    d_head = x.shape[-1]
    rates = theta ** (-ops.arange(0, d_head, 2, dtype=dtype_of(x.dtype)) / d_head)
    angles = ops.cast(positions, dtype_of(x.dtype))[:, None] * rates
    cosines, sines = ops.cos(angles), ops.sin(angles)
    if layout == "halves":
        a, b = ops.split(x, 2, axis=-1)
    else:
        a, b = x[..., ::2], x[..., 1::2]
    turned = [a * cosines - b * sines, b * cosines + a * sines]
    if layout == "halves":
        return ops.concatenate(turned, axis=-1)
    return ops.reshape(ops.stack(turned, axis=-1), x.shape)


@call
def sinusoids(length, d_model, position):
    rates = 10000.0 ** (-ops.arange(0, d_model, 2, dtype="float64") / d_model)
    angles = position * rates
    return ops.reshape(ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1), [-1])


@call
def embedding(ids, table):
    layer = layers.Embedding(*table.shape, dtype=dtype_of(table.dtype))
    layer.build(ids.shape)
    return layer.stateless_call([table], [], ids)[0]


@call
def embedding_beyond(ids, table):
    return embedding(ids, table)


@call
def conv1d_default(x, W, padding):
    return ops.conv(x, W, padding=padding)


@call
def conv1d(x, W, padding):
    return ops.conv(x, W, padding=padding)


@call
def glu(x):
    return keras.activations.glu(x)


@call
def gated(x, W_gate, W_up, W_down):
    return (ops.silu(x @ W_gate) * (x @ W_up)) @ W_down


@call
def mean_pooling_default(x, mask):
    return layers.GlobalAveragePooling1D(dtype=dtype_of(x.dtype))(x, mask=mask)


@call
def mean_pooling(x, mask):
    weights = ops.cast(mask[..., None], dtype_of(x.dtype))
    return ops.sum(x * weights, axis=1) / ops.maximum(ops.sum(weights, axis=1), 1)


@call
def average_of_windows(x):
    return layers.AveragePooling1D(3, strides=1, padding="same")(x[None, :, None])[0, :, 0]


@call
def largest_after_dropout(rate):
    return ops.max(layers.Dropout(rate)(ops.ones(1000), training=True))


@call
def largest_after_dropping_all(rate):
    return largest_after_dropout(rate)


@call
def smallest_after_dropout(rate):
    x = ops.full([1000], np.nan)
    return np.fmin.reduce(ops.convert_to_numpy(layers.Dropout(rate)(x, training=True)))


@call
def spread_of_linear():
    layer = layers.Dense(100)
    layer.build((None, 300))
    return round(float(ops.std(layer.kernel)), 2)


@call
def spread_of_embedding():
    layer = layers.Embedding(1000, 50)
    layer.build()
    return round(float(ops.std(layer.embeddings)), 2)


@call
def fourier(x):
    return ops.fft2((x, ops.zeros_like(x)))[0]


@call
def inverse(x):
    return ops.ifft2((x[None], ops.zeros_like(x[None])))[0][0]


@call
def hartley(x):
    real, imaginary = ops.fft2((x, ops.zeros_like(x)))
    return real - imaginary


@call
def variance_default(x):
    return ops.var(x)


@call
def variance(x):
    return ops.var(x, axis=-1)


@call
def mean(x):
    return ops.mean(x)


@call
def sum_of_ones(n):
    return ops.sum(ops.ones(n))


@call
def median(x):
    return ops.median(x)
