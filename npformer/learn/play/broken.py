"""A bug of the museum in a model: as a separate layer, in the first block. Nothing is patched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer.core import Context, Gradients, Layer, checks
from npformer.layers import GELU
from npformer.learn.museum import BUGS
from npformer.learn.museum.attention_by import AttentionBy
from npformer.mixers import Attention
from npformer.models import Encoder
from npformer.models.step import accumulate
from npformer.models.trainable import SequenceClassifier

PLACE = {"mixers": ["attention", "attention"], "dropout": 0.2, "activation": "gelu"}

UNSEEN = (
    "FourierThatIgnoresTheMask",
    "FourierWithACorner",
    "attention_that_looks_ahead",
    "attention_with_the_mask_turned_round",
    "DropoutWithoutAReturn",
    "GELUWithAPower",
    "LayerNormThatFindsItsAxis",
)
"""Bugs that do no harm to a classifier of digits: it mixes by attention, which is not causal, its
pictures have no padding, its steps are in training, a power is only slow, and neither batches nor
pictures are as long as a token is wide."""

HAVE_A_PLACE: dict[str, dict[str, Any]] = {
    name: PLACE | dict(bug.config)
    for name, bug in BUGS.items()
    if bug.has_a_place and name not in UNSEEN
}
"""Bugs that a classifier of digits can have, and the settings that give them their place."""


class SequenceClassifierWithBug(SequenceClassifier):
    """A model that has a bug: its checkpoints say so, and are neither loaded nor resumed as those
    of a `SequenceClassifier`, whose parameters may have the same names.
    """


def put_bug(name: str, model: SequenceClassifier) -> None:
    """Put a bug into the first block of a model that has not been trained.

    Parameters of the layer that it replaces are taken over, so that a model without the bug begins
    with the same weights. Raises ValueError if the model has no place for it.
    """
    checks.choice("bug", name, HAVE_A_PLACE)
    if not _has_place(BUGS[name].wrong, model.encoder.blocks):
        raise ValueError(
            f"bug is {name!r} and the model has no place for it; expected settings such as "
            f"{HAVE_A_PLACE[name]}"
        )
    before = {key: parameter.value.copy() for key, parameter in model.named_parameters().items()}
    BUGS[name].put(model)
    for key, parameter in model.named_parameters().items():
        if key in before:
            parameter.value[...] = before[key]
    model.flatten()


def angles(
    wrong: SequenceClassifier,
    right: SequenceClassifier,
    x: Any,
    y: Any,
    of: Sequence[Sequence[str]],
) -> list[float | None]:
    """Return the angle between the right and the wrong gradient of some parameters, in degrees.

    Both models get the weights of the one with the bug, the same samples and the same dropout. An
    angle is None where one of the two gradients is 0, and has no direction.
    """
    weights = wrong.parameters()
    for name, value in right.parameters().items():
        if name in weights:
            value[...] = weights[name]
    right_gradients = _flat_gradients(right, x, y)
    wrong_gradients = _flat_gradients(wrong, x, y)
    return _angles_of_groups(right_gradients, wrong_gradients, of)


def angles_between_batches(
    model: SequenceClassifier,
    one: tuple[Any, Any],
    other: tuple[Any, Any],
    of: Sequence[Sequence[str]],
) -> list[float | None]:
    """Return the angle between the gradients of two batches (x, y), in degrees, as `angles` does.

    It says how much chance turns the step of a single batch.
    """
    return _angles_of_groups(_flat_gradients(model, *one), _flat_gradients(model, *other), of)


def _angles_of_groups(
    a: dict[str, np.ndarray], b: dict[str, np.ndarray], of: Sequence[Sequence[str]]
) -> list[float | None]:
    """Return the angle between two gradients in each group of parameters that both have."""
    angles_of_groups = []
    for group in of:
        names = [name for name in group if name in a and name in b]
        angles_of_groups.append(_angle(_join(a, names), _join(b, names)))
    return angles_of_groups


def _flat_gradients(model: SequenceClassifier, x: Any, y: Any) -> dict[str, np.ndarray]:
    """Return the gradients of the parameters as vectors in float64."""
    gradients = Gradients(model)
    context = Context(training=True, generator=np.random.default_rng(0))
    accumulate(model, model.loss, model.batch(x, y, None), context, gradients)
    return {name: np.asarray(g, "float64").ravel() for name, g in gradients.items()}


def _join(vectors: dict[str, np.ndarray], names: list[str]) -> np.ndarray:
    """Return the named vectors as one; a 0 if no name is given."""
    return np.concatenate([vectors[name] for name in names] or [np.zeros(1)])


def _angle(a: np.ndarray, b: np.ndarray) -> float | None:
    length_a, length_b = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    if not (length_a and length_b and np.isfinite([length_a, length_b]).all()):
        return None
    a, b = a / length_a, b / length_b  # by the tangent: a cosine near 1 has lost its digits
    return float(np.degrees(2.0 * np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b))))


def described(name: str) -> dict[str, str]:
    """Return what the museum says about a bug."""
    bug = BUGS[name]
    words = {"name": name, "title": bug.title, "code": bug.code}
    return words | {"why": bug.section("Why"), "cost": bug.section("Cost")}


def is_wrong(name: str | None, layer: Layer) -> bool:
    """Return whether a layer has the run's bug; `name` is None for a run without a bug."""
    return name is not None and (type(layer) is BUGS[name].wrong or isinstance(layer, AttentionBy))


def _has_place(kind: Any, blocks: Sequence[Any]) -> bool:
    """Return whether a model with these blocks has a layer that a wrong one can replace."""
    if not isinstance(kind, type) or issubclass(kind, Attention):
        return type(blocks[0].mixer) is Attention
    if issubclass(kind, GELU):
        return type(blocks[0].feed_forward.activation) is GELU
    # One block can only stand for several equal ones.
    equal = len(blocks) > 1 and len({type(block.mixer) for block in blocks}) == 1
    return equal or not issubclass(kind, Encoder)
