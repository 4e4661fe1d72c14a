"""What the questions are asked about: a run at this moment."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npformer.core import Layer, to_numpy
from npformer.learn.play.task_works import Work
from npformer.training.callbacks import TrainingState

MOST_KEPT = 32
"""Steps whose weights are kept, of a small model."""

BYTES_KEPT = 64_000_000


@dataclass
class Now:
    """A run between two steps. Questions change nothing in it: they work on `plain`.

    Attributes
    ----------
    work : Work
        The settings, the data, and the way from samples to arrays.
    training : TrainingState
    kept : dict of int to dict
        The weights after some earlier steps.
    """

    work: Work
    training: TrainingState
    kept: dict[int, dict[str, np.ndarray]] = field(default_factory=dict)
    every: int = 1

    @property
    def plain(self) -> Any:
        """A copy of the model, with the weights as they are."""
        return copy.deepcopy(self.training.model)

    def steps(self) -> list[int]:
        """Return the steps whose weights are known, the present one last."""
        return [*(step for step in self.kept if step < self.training.step), self.training.step]

    def plain_at(self, step: int | None) -> Any:
        """Return a copy of the model with the weights after a step; None: as they are."""
        model = self.plain
        if step is not None and step != self.training.step:
            if step not in self.kept:
                raise ValueError(f"at is {step!r}; expected a step of {self.steps()}")
            for name, value in model.parameters().items():
                value[...] = self.kept[step][name]
        return model

    def keep(self) -> None:
        """Keep the weights as they are, of all steps of a run so many that it is bounded.

        The distance between two that are kept doubles whenever there are too many.
        """
        model, step = self.training.model, self.training.step
        for late in [each for each in self.kept if each >= step]:  # it goes on from a checkpoint
            del self.kept[late]
        if step % self.every:
            return
        most = min(MOST_KEPT, BYTES_KEPT // (4 * model.n_parameters() + 1))
        if len(self.kept) >= most > 1:
            self.every *= 2
            self.kept = {k: each for k, each in self.kept.items() if k % self.every == 0}
        if most > 1 and step % self.every == 0:
            now = model.parameters().items()
            self.kept[step] = {name: to_numpy(value).copy() for name, value in now}


def groups_of(model: Layer) -> list[tuple[str, list[str]]]:
    """Return the layers whose gradients are shown together, with the names of their parameters.

    They are the parts of each block, with their norms, and the layers outside of blocks.
    """
    groups: dict[str, list[str]] = {}
    for name in model.parameters():
        words = name.split(".")
        depth = words.index("blocks") + 3 if "blocks" in words else 1
        groups.setdefault(".".join(words[:depth]).removesuffix("_norm"), []).append(name)
    return [*groups.items()]
