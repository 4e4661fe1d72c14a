"""Is my backward pass right?
==========================

Write a forward and a backward function and compare them with central differences; then break the
backward function, and see what the report says.
"""

from contextlib import suppress

import numpy as np

import npformer as nf


def swish(x):
    """y = x sigmoid(x), in NumPy."""
    s = 1.0 / (1.0 + np.exp(-x))
    return x * s, (x, s)


def swish_backward(dy, cache):
    x, s = cache
    # y = x * s(x), and s' = s (1 - s)
    return dy * (s + x * s * (1.0 - s))


def swish_backward_wrong(dy, cache):
    x, s = cache
    return dy * (s + x * s)  # forgot (1 - s)


x = np.random.default_rng(0).normal(size=(3, 4))
print(nf.gradcheck((swish, swish_backward), x))
print()

try:
    nf.gradcheck((swish, swish_backward_wrong), x)
except nf.GradcheckError as error:
    print(error.report)
print()

# A whole model: every parameter is checked, and dropout draws the same masks each time.
config = nf.EncoderConfig(d_model=8, n_layers=2, n_heads=2, d_ff=16, max_len=5, dropout=0.1)
model = nf.SequenceClassifier(config, n_classes=3, n_features=4, dtype="float64")
x = np.random.default_rng(0).normal(size=(2, 5, 4))
report = nf.gradcheck(model, x, training=True)
print(f"{report.title}: {len(report.tensors)} tensors, largest relative error {report.error:.1e}")

with suppress(ImportError):  # a picture, where matplotlib is installed
    import matplotlib.pyplot as plt

    x = np.linspace(-5.0, 5.0, 200)
    y, cache = swish(x)
    by_differences = (swish(x + 1e-6)[0] - swish(x - 1e-6)[0]) / 2e-6
    figure, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
    axis.plot(x, by_differences, lw=5, alpha=0.4, label="central differences")
    axis.plot(x, swish_backward(np.ones_like(x), cache), label="swish_backward")
    axis.plot(x, swish_backward_wrong(np.ones_like(x), cache), "--", label="without (1 - s)")
    axis.set(xlabel="x", ylabel="dy / dx")
    axis.legend()
    plt.show()
