"""Temperatures of probabilities, fitted on held-out samples (Guo et al., 2017)."""

import numpy as np

from npformer.core import Layer, to_numpy
from npformer.data.samples import Data
from npformer.models.losses import SoftmaxCrossEntropy
from npformer.models.trainable import SequenceClassifier
from npformer.tasks.wide import WideSequenceClassifier

LEAST, MOST = 0.01, 4.0
"""Of a factor on the logits, 1 / T. A few held-out samples, all of them right, want infinity."""


def calibrate(model: SequenceClassifier, held_out: Data) -> None:
    """Scale the logits of a model by the factor that gives the lowest loss on held-out samples.

    Each answer of a model with a wide part gets its own, so that the one that is right more often
    counts more. The layers that compute the logits are scaled, so the model itself returns the new
    probabilities everywhere.
    """
    x, y, mask = held_out
    z = model.predict_in_batches(to_numpy, x, mask).astype("float64")
    wide = [model.wide] if isinstance(model, WideSequenceClassifier) else []
    layers: list[Layer] = [model.classify, *wide]
    factor_of_layer = factors(z.reshape(len(y), len(layers), -1), y)
    for layer, factor in zip(layers, factor_of_layer.tolist(), strict=True):
        for parameter in layer.named_parameters().values():
            if not parameter.constant:
                parameter.value[...] *= factor


def factors(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return a factor for each answer, so that the mean of their logits has the lowest loss.

    z is (n, answers, n_classes). The loss is a convex function of the factors.
    """
    from scipy.optimize import minimize  # when needed: importing it takes long

    loss = SoftmaxCrossEntropy()

    def mean_loss(each: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient by the factors."""
        mean, cache = loss.forward((each[:, None] * z).mean(axis=1), y)
        dz = loss.backward(1.0 / z.shape[1], cache)  # [n, n_classes]
        return float(mean), (dz[:, None] * z).sum(axis=(0, 2))

    bounds = [(LEAST, MOST)] * z.shape[1]
    start = np.ones(z.shape[1])
    return np.asarray(minimize(mean_loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x)
