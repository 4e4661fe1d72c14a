"""Losses, transforms and single operators of ONNX, for all runtimes."""

import numpy as np
from calls import call
from onnx_graph import int64
from onnx_operators import run


@call
def cross_entropy_default(logits, labels):
    return run("SoftmaxCrossEntropyLoss", [logits, labels], ignore_index=-1)


@call
def cross_entropy_weighted(logits, labels, class_weights):
    return run("SoftmaxCrossEntropyLoss", [logits, labels, class_weights])


@call
def cross_entropy(logits, labels, class_weights, label_smoothing):
    # SoftmaxCrossEntropyLoss has no smoothing.
    q = (np.arange(logits.shape[-1]) == labels[:, None]).astype(logits.dtype)  # no class is -1
    smooth = q * (1 - label_smoothing) + label_smoothing / logits.shape[-1]
    losses = -(class_weights * smooth * run("LogSoftmax", [logits])).sum(-1)
    return (losses * (labels >= 0)).sum() / (class_weights * q).sum()


@call
def binary_cross_entropy(logits, targets):
    logits, targets = logits.astype("float32"), targets.astype("float32")
    return run("ReduceMean", [run("Softplus", [logits]) - targets * logits], keepdims=0)


@call
def squared_error(prediction, target):
    difference = run("Sub", [prediction, target])
    return run("ReduceMean", [run("Mul", [difference, difference])], keepdims=0)


@call
def clip(a, b, max_norm):
    gradient = np.concatenate([a, b])
    norm = run("ReduceL2", [gradient])
    factor = run("Div", [np.full_like(norm, max_norm), norm + norm.dtype.type(1e-6)])
    return gradient * run("Min", [factor, np.ones_like(factor)])


def transform_of(x):
    """Return the real and imaginary parts of the transform along the last two axes."""
    rows = np.stack([x, np.zeros_like(x)], axis=-1).reshape(-1, *x.shape[-2:], 2)
    for axis in (1, 2):
        rows = run("DFT", [rows], opset=17, axis=axis)  # OpenVINO takes 1 for opset 20
    return rows[..., 0].reshape(x.shape), rows[..., 1].reshape(x.shape)


@call
def fourier(x):
    real, _ = transform_of(x)
    return real


@call
def hartley(x):
    real, imaginary = transform_of(x)
    return real - imaginary


@call
def variance(x):
    centred = x - run("ReduceMean", [x, int64(-1)])
    return run("ReduceMean", [run("Mul", [centred, centred]), int64(-1)], keepdims=0)


@call
def mean(x):
    return run("ReduceMean", [x], keepdims=0)


@call
def mean_variance_normalization(x):
    return run("MeanVarianceNormalization", [x], axes=[1])


@call
def group_normalization(x):
    ones = np.ones(x.shape[1], x.dtype)
    return run("GroupNormalization", [x, ones, 0 * ones], opset=21, num_groups=1)


@call
def top_k(x):
    return run("TopK", [x, int64(1)], n_outputs=2)


@call
def rounded(x):
    return run("Round", [x])


@call
def clip_of_nan(x):
    return run("Clip", [x, np.array(0, x.dtype), np.array(1, x.dtype)])


@call
def reduce_log_sum_exp(x):
    return run("ReduceLogSumExp", [x])


@call
def softplus(x):
    return run("Softplus", [x])


@call
def mod_of_negative(a, b):
    return run("Mod", [a, b])


@call
def maximum_of_nan(a, b):
    return run("Max", [a, b])


@call
def operators(x, low, high, divisor):
    x = x.astype("float32")
    ones = np.ones(x.shape[1], "float32")
    bounds = [np.array(low, "float32"), np.array(high, "float32")]
    whole = np.round(x).astype("int64")
    results = [
        run("MeanVarianceNormalization", [x], axes=[1]),
        run("GroupNormalization", [x[..., None], ones, 0 * ones], opset=21, num_groups=1),
        run("TopK", [x, int64(1)], n_outputs=2),
        run("Round", [x]),
        run("Clip", [x, *bounds]),
        run("ReduceLogSumExp", [x, int64(1)]),
        run("Softplus", [x]),
        run("Mod", [whole, np.full_like(whole, divisor)]),
        run("Max", [x, bounds[0]]),
    ]
    return np.concatenate([result.astype("float32").ravel() for result in results])
