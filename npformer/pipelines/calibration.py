"""Temperatures of probabilities, fitted on samples held out (Guo et al., 2017)."""

from collections.abc import Callable

import numpy as np

from npformer import engine
from npformer.core import Context, to_numpy
from npformer.functional import mean_of_softmax
from npformer.losses import SoftmaxCrossEntropy
from npformer.trainable import SequenceClassifier
from npformer.training import Data

FACTORS = np.geomspace(0.01, 20.0, 153)
"""What logits are multiplied by: 1 / T, in steps of 5 %."""

BATCH = 256


def calibrate(model: SequenceClassifier, held_out: Data) -> None:
    """Multiply the logits of a model by what gives the lowest loss on samples held out.

    Each answer of a model with a wide part has a temperature of its own, so that neither is heard
    only because it is louder, and then both have one together. The layers that make the logits are
    multiplied, so the model itself says the new probabilities everywhere.
    """
    answers, y = _answers(model, held_out), held_out[1]
    factors = [best_factor(lambda f, z=z: loss_of(f * z, y)) for z in answers]
    if len(answers) == 2:
        a, b = (factor * z for factor, z in zip(factors, answers, strict=True))
        both = best_factor(lambda f: loss_of(mean_of_softmax(f * a, f * b)[0], y))
        factors = [both * factor for factor in factors]
    for layer, factor in zip(model.answering(), factors, strict=True):
        for parameter in layer.named_parameters().values():
            if not parameter.constant:
                parameter.value[...] *= factor


def best_factor(loss: Callable[[float], float]) -> float:
    """Return the factor of the lowest loss."""
    return min(FACTORS.tolist(), key=loss)


def loss_of(logits: np.ndarray, y: np.ndarray) -> float:
    """Return the mean of -log p of the right class, in nats."""
    measured = SoftmaxCrossEntropy().measure(logits, y)
    return measured.total / measured.divisor


def _answers(model: SequenceClassifier, data: Data) -> list[np.ndarray]:
    """Return the logits of each answer, in float64: texts of similar length go together."""
    x, _, mask = data
    batch, twin = model.check(x, mask=mask), engine.fast(model)
    order = np.argsort(batch.lengths()[:, 0], kind="stable")
    parts = []
    for begin in range(0, len(order), BATCH):
        some = batch.of_rows(order[begin : begin + BATCH]).cut()
        some = model.upload(some, model.backend)
        found = twin.answers(*some.arrays(), some.within(Context(keep=False)))
        parts.append([to_numpy(z).astype("float64") for z in found])
    back = np.argsort(order)
    return [np.concatenate(each)[back] for each in zip(*parts, strict=True)]
