"""Gradient checks of everything in npformer that has a gradient.

``npformer gradcheck`` runs them and prints a table; the tests run the same ones.
"""

from collections.abc import Callable, Iterator

from npformer.proof.cases import averaging, decoders, functional, mixers, models
from npformer.proof.cases.case import Case
from npformer.proof.cases.layers import layers

__all__ = ["GROUPS", "SUBJECTS", "Case", "cases"]

GROUPS = ("functional", "layers", "mixers", "models")

SUBJECTS: list[Callable[[], Iterator[Case]]] = [
    *functional.SUBJECTS,
    *averaging.SUBJECTS,
    layers,
    *mixers.SUBJECTS,
    *models.SUBJECTS,
    *decoders.SUBJECTS,
]
"""Functions that yield cases. Modules of later rooms append theirs when they are imported:
`npformer.models.trainable.cases`, `npformer.tasks.wide.cases` and
`npformer.learn.museum.published_cases`."""


def cases() -> list[Case]:
    """Return all cases, from functions up to models. Their names differ."""
    return [case for subject in SUBJECTS for case in subject()]
