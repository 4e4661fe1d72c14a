"""What the questions are asked about: a run at this moment."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from npformer.core import Layer
from npformer.learn.play.works import Work
from npformer.training.callbacks import TrainingState


@dataclass
class Now:
    """A run between two steps. Questions change nothing in it: they work on `plain`.

    Attributes
    ----------
    work : Work
        The settings, the data, and the way from samples to arrays.
    training : TrainingState
    """

    work: Work
    training: TrainingState

    @property
    def plain(self) -> Any:
        """A copy of the model, with the weights as they are."""
        return copy.deepcopy(self.training.model)


def groups_of(model: Layer) -> list[tuple[str, list[str]]]:
    """Return the layers whose gradients are shown together, with the names of their parameters.

    They are the parts of each block, with their norms, and the layers outside of blocks.
    """
    found: dict[str, list[str]] = {}
    for name in model.parameters():
        parts = name.split(".")
        depth = parts.index("blocks") + 3 if "blocks" in parts else 1
        found.setdefault(".".join(parts[:depth]).removesuffix("_norm"), []).append(name)
    return [*found.items()]
