"""Probabilities that mean something: the temperature of logits, fitted on samples held out."""

import numpy as np

from npformer.losses import SoftmaxCrossEntropy
from npformer.trainable import SequenceClassifier
from npformer.training import Data

COLDEST, HOTTEST = 0.05, 20.0


def temperature(logits: np.ndarray, y: np.ndarray) -> float:
    """Return the T for which softmax(logits / T) has the lowest loss (Guo et al., 2017).

    The mean loss is convex in 1 / T, and its derivative there is the mean of E[z] - z_y, where E is
    the mean under softmax(z / T). It grows with 1 / T, so its zero is found by halving.
    """
    z = logits.astype("float64")
    own = np.take_along_axis(z, y[:, None], axis=1)[:, 0]
    low, high = np.log(1.0 / HOTTEST), np.log(1.0 / COLDEST)
    for _ in range(40):
        middle = 0.5 * (low + high)
        p = np.exp(SoftmaxCrossEntropy().log_probabilities(z * np.exp(middle)))
        if ((p * z).sum(axis=1) - own).mean() > 0.0:
            high = middle
        else:
            low = middle
    return float(np.exp(-low))


def calibrate(model: SequenceClassifier, held_out: Data) -> float:
    """Divide a model's logits by their temperature on samples held out, and return it.

    The layers that make the logits are divided, so that the model itself says it everywhere.
    """
    x, y, mask = held_out
    logits = model.in_batches(np.asarray, x, mask)
    found = temperature(logits, y)
    model.scale_logits(1.0 / found)
    return found
