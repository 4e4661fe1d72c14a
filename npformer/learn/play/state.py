"""What the questions are asked about: a run at this moment."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from npformer.learn.play.settings import Settings
from npformer.learn.play.works import Work
from npformer.training.callbacks import TrainingState
from npformer.training.trainable import Model


@dataclass
class Now:
    """A run between two steps. Questions change nothing in it: they work on `plain`.

    Attributes
    ----------
    work : Work
        The data, and the way from samples to arrays.
    training : TrainingState
    """

    work: Work
    training: TrainingState

    @property
    def settings(self) -> Settings:
        """The settings of the run."""
        return self.work.settings

    @property
    def model(self) -> Model:
        """The model that is trained; ask `plain` for one to compute with."""
        return self.training.model

    @property
    def plain(self) -> Any:
        """A copy of the model, with the weights as they are."""
        return copy.deepcopy(self.model)
