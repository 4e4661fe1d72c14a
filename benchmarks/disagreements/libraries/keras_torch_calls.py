# /// script
# requires-python = ">=3.11"
# dependencies = ["keras==3.15.1", "torch==2.13.0", "numpy==2.4.6"]
# ///
"""Keras' answers, on its backend for PyTorch."""

import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import keras_layers  # noqa: F401 - its calls
import keras_training  # noqa: F401 - its calls
import torch
from calls import Library, main
from keras import ops


def array(values, dtype):
    # Layers and losses compute float64 arrays in float32.
    return torch.tensor(values, dtype=getattr(torch, dtype.replace("64", "32")) if dtype else None)


def to_numpy(y):
    return ops.convert_to_numpy(y) if isinstance(y, torch.Tensor) else y


def gradients(function, arrays, names, dy):
    for name in names:
        arrays[name].requires_grad_()
    y = function(**arrays)
    y.backward(dy)
    return y, {name: arrays[name].grad for name in names}


keras.utils.set_random_seed(0)  # for initial weights and dropout
main(Library(array, to_numpy, gradients))
