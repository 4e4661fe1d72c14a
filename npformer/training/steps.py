"""What wraps a step and an update: workers, and clipping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from npformer.core import Array, Gradients
from npformer.engine.team import Team
from npformer.models.batch import Batch
from npformer.optim import Optimizer, clip_by_global_norm


@dataclass
class TeamStep:
    """A `Step` that workers share. Dropout's masks depend on the `generator` alone."""

    team: Team
    generator: Any

    @property
    def shared_by(self) -> str:
        """Who computed the last step, such as "2 threads"."""
        return self.team.shared_by

    def __call__(self, batch: Batch) -> tuple[Array, Gradients]:
        """Return the loss of a batch, and its gradients."""
        return self.team.step(batch, self.generator)


class Update(Protocol):
    """What updates the weights by gradients: an `Optimizer`, or what does something before it."""

    def step(self, gradients: Gradients) -> None:
        """Update every parameter once, in place."""


@dataclass
class ClippedUpdate:
    """An update by gradients whose global norm is at most `max_norm`.

    It wraps the update and not the step, because callbacks see, and may change, the gradients
    between the two.
    """

    optimizer: Optimizer
    max_norm: float

    def step(self, gradients: Gradients) -> None:
        """Clip the gradients, in place, and update every parameter."""
        clip_by_global_norm(gradients, self.max_norm)
        self.optimizer.step(gradients)
