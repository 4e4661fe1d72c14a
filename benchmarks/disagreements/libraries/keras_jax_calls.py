# /// script
# requires-python = ">=3.11"
# dependencies = ["keras==3.15.1", "jax==0.10.2", "numpy==2.4.6"]
# ///
"""Keras' answers, on its backend for JAX."""

import os

os.environ["KERAS_BACKEND"] = "jax"
import jax
import jax.numpy as jnp
import keras
import keras_layers  # noqa: F401 - its calls
import keras_training  # noqa: F401 - its calls
import numpy as np
from calls import Library, main

jax.config.update("jax_enable_x64", True)


def array(values, dtype):
    # Layers and losses compute float64 arrays in float32.
    return jnp.asarray(values, dtype=dtype.replace("64", "32") if dtype else None)


def gradients(function, arrays, names, dy):
    fixed = {name: x for name, x in arrays.items() if name not in names}
    varied = {name: x for name, x in arrays.items() if name in names}
    y, backward = jax.vjp(lambda varied: function(**varied, **fixed), varied)
    return y, backward(dy.astype(y.dtype))[0]


keras.utils.set_random_seed(0)  # for initial weights and dropout
main(Library(array, np.asarray, gradients, compiled=jax.jit))
