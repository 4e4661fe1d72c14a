"""Temperatures of probabilities, fitted on held-out samples (Guo et al., 2017)."""

import numpy as np

from npformer.core import Layer, to_numpy
from npformer.models import MeanOfAnswers
from npformer.trainable import SequenceClassifier, WideSequenceClassifier
from npformer.training import Data

FACTORS = np.geomspace(0.01, 20.0, 153)
"""Factors to try on the logits: 1 / T, in steps of 5 %."""


def calibrate(model: SequenceClassifier, held_out: Data) -> None:
    """Scale the logits of a model by the factor that gives the lowest loss on held-out samples.

    Each answer of a model with a wide part gets its own temperature, so that neither wins only
    because its logits are larger; then both get one in common. The layers that compute the logits
    are scaled, so the model itself returns the new probabilities everywhere.
    """
    x, y, mask = held_out
    z = model.in_batches(to_numpy, x, mask).astype("float64")
    layers: list[Layer] = [model.classify]
    if isinstance(model, WideSequenceClassifier):
        layers.append(model.wide)
    z = z.reshape(len(y), len(layers), -1)  # [n, answers, n_classes]
    factors = np.array([best_factor(z[:, [i]], y) for i in range(len(layers))])
    factors *= best_factor(factors[:, None] * z, y)
    for layer, factor in zip(layers, factors.tolist(), strict=True):
        for parameter in layer.named_parameters().values():
            if not parameter.constant:
                parameter.value[...] *= factor


def best_factor(z: np.ndarray, y: np.ndarray) -> float:
    """Return the factor that gives answers, (n, answers, n_classes), the lowest loss."""
    loss = MeanOfAnswers()

    def loss_with(factor: float) -> float:
        return loss.measure(factor * z, y).total

    return float(min(FACTORS.tolist(), key=loss_with))
