"""Estimator: a model together with what turns raw samples into arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from npformer.core import backends, checks, described
from npformer.data.user_arrays import Data
from npformer.models import EncoderConfig
from npformer.tasks.estimators.class_names import ClassNames
from npformer.training.fit import fit
from npformer.training.history import History

OWN = ("model", "data", "seed")
"""Arguments of `npformer.fit` that a Estimator sets itself."""


class NotTrainedError(ValueError):
    """A model was used before `fit` had trained it."""


class Estimator(ABC):
    """A model with everything needed to get from raw samples to arrays, and back.

    Attributes
    ----------
    models : list of Model
        One, or the members of an ensemble.
    histories : list of History
        The training history of each; empty after loading.
    settings : dict
        The arguments of `npformer.fit` in the last training.
    """

    def __init__(
        self,
        config: EncoderConfig | Mapping[str, Any] | None,
        *,
        seed: int,
        dtype: str,
        backend: str,
    ) -> None:
        if config is not None and not isinstance(config, EncoderConfig | Mapping):
            raise TypeError(
                f"config is {described(config)}; expected an EncoderConfig, or some of its "
                "settings, such as {'mixer': 'fourier'}"
            )
        if isinstance(config, Mapping):
            for name in config:
                checks.choice("a setting in config", name, EncoderConfig.__dataclass_fields__)
        checks.choice("dtype", dtype, checks.FLOATS)
        checks.choice("backend", backend, backends())
        self.config = config
        self.seed = checks.whole("seed", seed, at_least=0)
        self.dtype = dtype
        self.backend = backend
        self.models: list[Any] = []
        self.histories: list[History] = []
        self.settings: dict[str, Any] = {}

    @abstractmethod
    def preparation(self) -> dict[str, Any]:
        """Return what turns samples into arrays, and arguments of `__init__`, ready for JSON."""

    @classmethod
    @abstractmethod
    def prepared(cls, values: Mapping[str, Any], **arguments: Any) -> Self:
        """Return an instance without models from what `preparation` returned."""

    @abstractmethod
    def fit(self, *data: Any, **settings: Any) -> Self:
        """Train on raw samples, and return self."""

    @abstractmethod
    def example(self, *data: Any) -> Any:
        """Return the first sample of the data that `fit` takes, as the inputs of a model."""

    def configured(self, usual: Mapping[str, Any]) -> EncoderConfig:
        """Return the configuration: the given settings, and the `usual` ones for the rest."""
        if isinstance(self.config, EncoderConfig):
            return self.config
        return EncoderConfig(**{**usual, **(self.config or {})})

    def take(self, models: list[Any], names: ClassNames | None = None) -> None:
        """Take over trained models."""
        self.models = models

    def train(
        self, model: Any, data: Data, validation: Data | None, place: Path | None, **settings: Any
    ) -> History:
        """Train a model, and keep it with its history."""
        model = model.to(self.backend)
        self.models.append(model)  # now, so that weights are kept if the training is stopped
        self.histories.append(fit(model, data, validation=validation, checkpoint=place, **settings))
        return self.histories[-1]

    @property
    def model(self) -> Any:
        """The model, or the first one of an ensemble."""
        self.check_trained()
        return self.models[0]

    def check_trained(self) -> None:
        """Raise NotTrainedError if there is no model."""
        if not self.models:
            raise NotTrainedError(
                f"the {type(self).__name__} has not been trained; expected fit(...) first, or "
                "npformer.load(path)"
            )

    @property
    def history(self) -> History:
        """The training history, or that of the first member of an ensemble."""
        if not self.histories:
            raise NotTrainedError(
                "there is no history: a model's file has none. npformer train writes history.json"
            )
        return self.histories[0]

    def to(self, backend: str) -> Self:
        """Move the models to a backend, and return self."""
        for model in self.models:
            model.to(backend)
        self.backend = backend
        return self


def check_training(training: Mapping[str, Any]) -> None:
    """Raise TypeError for an argument of `npformer.fit` that the caller must not give."""
    if wrong := [name for name in training if name in OWN]:
        raise TypeError(f"{wrong[0]} is given to fit, which sets it itself; leave it out")
