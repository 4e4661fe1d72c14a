"""A bug of the museum in a model: as a layer of its own, in the first block. Nothing is patched."""

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
    *("FourierThatIgnoresTheMask", "FourierWithACorner", "attention_that_looks_ahead"),
    *("attention_with_the_mask_turned_round", "DropoutWithoutAReturn", "GELUWithAPower"),
)
"""Bugs that do no harm to a classifier of digits: it mixes by attention, which is not causal, its
pictures have no padding, its steps are in training, and a power is only slow."""

HAVE_A_PLACE: dict[str, dict[str, Any]] = {
    name: PLACE | dict(bug.config)
    for name, bug in BUGS.items()
    if bug.inputs and name not in UNSEEN
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
    theirs = wrong.parameters()
    for name, value in right.parameters().items():
        if name in theirs:
            value[...] = theirs[name]
    found: list[dict[str, np.ndarray]] = []
    for model in (right, wrong):
        gradients, batch = Gradients(model), model.batch(x, y, None)
        context = Context(training=True, generator=np.random.default_rng(0))
        accumulate(model, model.loss, batch, context, gradients)
        found.append({n: np.asarray(g, "float64").ravel() for n, g in gradients.items()})
    both = found[0].keys() & found[1].keys()
    groups = [[name for name in names if name in both] for names in of]
    return [
        _angle(*(np.concatenate([each[n] for n in names] or [np.zeros(1)]) for each in found))
        for names in groups
    ]


def _angle(a: np.ndarray, b: np.ndarray) -> float | None:
    lengths = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    if not (all(lengths) and np.isfinite(lengths).all()):
        return None
    a, b = a / lengths[0], b / lengths[1]  # by the tangent: a cosine near 1 has lost its digits
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
    equal = len(blocks) > 1 and len({type(each.mixer) for each in blocks}) == 1
    return equal or not issubclass(kind, Encoder)
