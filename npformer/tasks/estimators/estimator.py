"""Estimator: a model together with what turns samples into arrays, in scikit-learn's protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, ClassVar, Self

from npformer.core import backends, checks, describe
from npformer.core.support.explained_errors import drop_class_from_names
from npformer.data.held_out import validation_share
from npformer.data.samples import Data
from npformer.layers import POOLINGS
from npformer.models import EncoderConfig
from npformer.tasks.estimators.defaults import fit_arguments
from npformer.training.fit import fit
from npformer.training.history import History

OWN = ("model", "data", "seed")
"""Arguments of `npformer.fit` that an estimator sets itself."""


HOOKS = frozenset(
    [
        "arrays",
        "begin",
        "build",
        "check",
        "check_measurable",
        "check_optional",
        "check_samples",
        "check_trained",
        "complete_config",
        "estimator_type",
        "example",
        "kind",
        "max_len_of_settings",
        "model_part",
        "names",
        "preparation",
        "predict_probabilities",
        "reader",
        "restore",
        "sizes",
        "take",
        "train",
        "unknown",
    ]
)
"""What subclasses define, and the package calls: tab completion leaves them out."""


class NotTrainedError(ValueError, AttributeError):
    """A model was used before `fit` had trained it."""


@drop_class_from_names
class Ensemble:
    """One model or several, with the histories of their trainings.

    Attributes
    ----------
    models_ : list of Model
        One, or the members of an ensemble.
    histories_ : list of History
        The training history of each; empty after loading.
    settings_ : dict
        The arguments of `npformer.fit` in the last training.
    """

    models_: list[Any]
    histories_: list[History]
    settings_: dict[str, Any]
    backend = "numpy"

    def begin(self) -> None:
        """Forget the models of an earlier training."""
        self.models_, self.histories_ = [], []

    def train(self, model: Any, data: Data, settings: Mapping[str, Any], **own: Any) -> History:
        """Train a model on the backend, and keep it with its history."""
        self.models_.append(model)  # now, so that weights are kept if the training is stopped
        self.settings_ = fit_arguments(settings, len(data[0]))
        self.histories_.append(fit(model.to(self.backend), data, **self.settings_, **own))
        return self.histories_[-1]

    @property
    def model(self) -> Any:
        """The model, or the first one of an ensemble."""
        self.check_trained()
        return self.models_[0]

    def check_trained(self) -> None:
        """Raise NotTrainedError if there is no model."""
        if not getattr(self, "models_", None):
            raise NotTrainedError(
                f"the {type(self).__name__} has not been trained; expected fit(...) first, or "
                "npformer.load(path)"
            )

    @property
    def history_(self) -> History:
        """The training history, or that of the first member of an ensemble."""
        if not getattr(self, "histories_", None):
            raise NotTrainedError(
                "there is no history: a model's file has none. npformer train writes history.json"
            )
        return self.histories_[0]


@drop_class_from_names
@dataclass(kw_only=True, eq=False, repr=False)
class Estimator(Ensemble, ABC):
    """An estimator that reads samples as people write them, and that `npformer.save` writes.

    It keeps scikit-learn's protocol: `__init__` stores its arguments as they are, `fit` checks
    them, and what it learns ends in ``_``.
    """

    config: EncoderConfig | Mapping[str, Any] | None = field(default=None, kw_only=False)
    seed: int = 0
    dtype: str = "float32"
    backend: str = "numpy"

    estimator_type: ClassVar[str | None] = None
    """What scikit-learn calls it."""

    def __dir__(self) -> list[str]:
        """Return the names that users need; those of `HOOKS` work, and are left out."""
        return [name for name in super().__dir__() if name not in HOOKS]

    def __repr__(self) -> str:
        trained = getattr(self, "models_", None)
        known = f"{len(self.model.parameters())} arrays" if trained else "not trained yet"
        return f"{type(self).__name__}({known})"

    @abstractmethod
    def preparation(self) -> dict[str, Any]:
        """Return what turns samples into arrays, and arguments of `__init__`, ready for JSON."""

    @abstractmethod
    def restore(self, values: Mapping[str, Any]) -> None:
        """Take over what `preparation` returned."""

    @abstractmethod
    def fit(self, *data: Any, **settings: Any) -> Self:
        """Train on raw samples, and return self."""

    @abstractmethod
    def example(self, *data: Any) -> Any:
        """Return the first sample of the data that `fit` takes, as the inputs of a model."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of `__init__`; `deep` is for scikit-learn and changes nothing."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change arguments of `__init__`, and return self."""
        for name, value in params.items():
            checks.choice("a parameter", name, self.get_params())
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn, which alone calls this, wants to know about an estimator."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        kind = self.estimator_type
        return Tags(
            estimator_type=kind,
            target_tags=TargetTags(required=kind is not None),
            classifier_tags=ClassifierTags() if kind == "classifier" else None,
            input_tags=InputTags(two_d_array=False, one_d_array=True, string=True),
        )

    def check(self) -> None:
        """Raise ValueError or TypeError for a wrong argument of `__init__`; `fit` calls it."""
        if self.config is not None and not isinstance(self.config, EncoderConfig | Mapping):
            raise TypeError(
                f"config is {describe(self.config)}; expected an EncoderConfig, or some of its "
                "settings, such as {'mixer': 'fourier'}"
            )
        if isinstance(self.config, Mapping):
            for name in self.config:
                checks.choice("a setting in config", name, EncoderConfig.__dataclass_fields__)
        if (pooling := getattr(self, "pooling", None)) is not None:
            POOLINGS.parse(pooling, "pooling")
        checks.choice("dtype", self.dtype, checks.FLOATS)
        checks.choice("backend", self.backend, backends())
        checks.whole("seed", self.seed, at_least=0)

    def check_optional(self, *names: str, **limits: int) -> None:
        """Check arguments of `__init__` that are whole numbers or None."""
        for name in names:
            if getattr(self, name) is not None:
                checks.whole(name, getattr(self, name), **{"at_least": 1, **limits})

    def max_len_of_settings(self) -> int | None:
        """Return the longest sample, if the configuration or an argument says it."""
        if isinstance(self.config, EncoderConfig):
            return self.config.max_len
        max_len: int | None = (self.config or {}).get("max_len", getattr(self, "max_len", None))
        return max_len

    def complete_config(self, default_settings: Mapping[str, Any]) -> EncoderConfig:
        """Return the configuration: the given settings, and `default_settings` for the rest."""
        if isinstance(self.config, EncoderConfig):
            return self.config
        return EncoderConfig(**{**default_settings, **(self.config or {})})

    def take(self, models: list[Any], classes: list[Any] | None = None) -> None:
        """Take over trained models, from a file; ValueError if one does not fit."""
        if not models:
            raise ValueError("there is no model; expected at least one")
        for name, expected in self.sizes().items():
            for model in models:
                if (size := getattr(model, name)) != expected:
                    raise ValueError(f"a model has {name} {size}; expected {expected}")
        self.models_, self.histories_ = models, []

    @abstractmethod
    def check_measurable(self, name: str, *data: Any) -> None:
        """Raise ValueError or TypeError if `evaluate` would raise one for some data.

        It may be called when training begins, so that nothing is computed in vain.
        """

    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Return what the models must have by their attributes, such as ``vocab_size``."""

    def to(self, backend: str) -> Self:
        """Move the models to a backend, and return self."""
        for model in self.models_:
            model.to(backend)
        self.backend = backend
        return self


def check_training(training: Mapping[str, Any], validation: Any, parts: str = "") -> None:
    """Check that the arguments of `npformer.fit` are the caller's to give, and go together.

    Separate data to validate on have two `parts`.
    """
    if wrong := [name for name in training if name in OWN]:
        raise TypeError(f"{wrong[0]} is given to fit, which sets it itself; leave it out")
    for name in ("patience", "metric"):
        if validation is None and training.get(name) is not None:
            raise ValueError(
                f"{name} is {training[name]!r} and there is no validation; expected some, because "
                "it decides which epoch is better: validation=0.1, or --validation 0.1 on the "
                "command line"
            )
    pair = isinstance(validation, tuple | list) and len(validation) == 2
    if parts and not pair and validation is not None and validation_share(validation) is None:
        raise TypeError(
            f"validation is {describe(validation)}; expected a fraction of the data, such as "
            f"0.1, or {parts}"
        )
