"""Guard that a model is in one training at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from npformer.core import Layer

_trainings: dict[int, object] = {}
"""A mark for each model that is being trained, by its id."""


@contextmanager
def only_training_of(model: Layer) -> Iterator[None]:
    """Mark a model as being trained inside the `with` block; raise if it already is."""
    mark = object()
    try:
        if _trainings.setdefault(id(model), mark) is not mark:
            raise ValueError(IN_TRAINING)
        yield
    finally:
        if _trainings.get(id(model)) is mark:
            del _trainings[id(model)]


def check_not_in_training(model: Layer) -> None:
    """Raise ValueError if a model is being trained."""
    if id(model) in _trainings:
        raise ValueError(IN_TRAINING)


IN_TRAINING = (
    "model is being trained already, by a fit that has not returned: this call comes from one of "
    "its callbacks, or runs beside it; expected one training at a time. Call it after that "
    "fit, or train a copy, copy.deepcopy(model)"
)
