"""Family: how transformers stores a family of models that write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from npformer.core import checks, to_numpy
from npformer.interop.huggingface import values_of
from npformer.interop.huggingface_config import ACTIVATIONS as OF_ENCODERS
from npformer.models import EncoderConfig

ACTIVATIONS = {**OF_ENCODERS, "swish": "silu", "silu": "silu"}
"""{their name: our name}."""


@dataclass(frozen=True)
class Place:
    """Where one of our parameters lies in their weights.

    Attributes
    ----------
    ours, theirs : str
    turned : bool
        Whether theirs is (out, in), and ours (in, out).
    part : int or None
        Which of the three this is, if theirs holds queries, keys and values side by side.
    """

    ours: str
    theirs: str
    turned: bool = False
    part: int | None = None


class Family(ABC):
    """A family of models that write.

    Attributes
    ----------
    model_type, class_name : str
        In config.json.
    """

    model_type: ClassVar[str]
    class_name: ClassVar[str]

    @abstractmethod
    def model(self, config: Mapping[str, Any], state: Mapping[str, Any], dtype: str) -> Any:
        """Return a model whose weights are still to be read; ValueError if npformer has none."""

    @abstractmethod
    def places(self, model: Any) -> Iterator[Place]:
        """Yield where each of a model's parameters lies."""

    @abstractmethod
    def config_of(self, model: Any) -> dict[str, Any]:
        """Return the content of config.json for a model; ValueError if transformers has none."""

    def read(self, config: Mapping[str, Any], state: Mapping[str, np.ndarray]) -> Any:
        """Return the model with the weights of a folder."""
        state = self.named(state)
        kinds = {array.dtype.name for array in state.values() if array.dtype.kind == "f"}
        if len(kinds) != 1:
            raise ValueError(f"the weights have the dtypes {sorted(kinds)}; expected one")
        model = self.model(config, state, kinds.pop())
        parameters = model.named_parameters()
        for place in self.places(model):
            if place.theirs not in state:
                raise ValueError(f"the weights have no {place.theirs!r}; copy the folder again")
            array, wanted = state[place.theirs], parameters[place.ours].value
            if place.part is not None and array.shape[-1] % 3 == 0:
                array = np.split(array, 3, axis=-1)[place.part]
            array = array.T if place.turned else array
            if array.size != wanted.size or array.reshape(wanted.shape).shape != wanted.shape:
                raise ValueError(
                    f"{place.theirs!r} has shape {state[place.theirs].shape}; expected one that "
                    f"fits config.json, where {place.ours} has {wanted.shape}"
                )
            wanted[...] = array.reshape(wanted.shape)
        return model

    def written(self, model: Any) -> dict[str, np.ndarray]:
        """Return the weights under their names and in their layout."""
        values = {name: to_numpy(value) for name, value in values_of(model).items()}
        parts: dict[str, list[np.ndarray]] = {}
        for place in self.places(model):
            array = values[place.ours]
            parts.setdefault(place.theirs, []).append(array.T if place.turned else array)
        return {
            name: np.array(arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=-1))
            for name, arrays in parts.items()
        }

    def named(self, state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the weights under the names of the whole model."""
        return dict(state)


def pair_of(ours: str, theirs: str, *, turned: bool) -> Iterator[Place]:
    """Yield the places of a linear layer's weight and bias."""
    yield Place(f"{ours}.weight", f"{theirs}.weight", turned)
    yield Place(f"{ours}.bias", f"{theirs}.bias")


def norm(ours: str, theirs: str) -> Iterator[Place]:
    """Yield the places of a layer norm's gamma and beta."""
    yield Place(f"{ours}.gamma", f"{theirs}.weight")
    yield Place(f"{ours}.beta", f"{theirs}.bias")


def check_only(config: Mapping[str, Any], only: Mapping[str, Any]) -> None:
    """Raise ValueError for a setting whose value is not the only one that npformer supports."""
    for key, value in only.items():
        if config.get(key) is not None and config[key] != value:
            raise ValueError(
                f"it has {key} = {config[key]!r}; expected {value!r}, all that npformer supports"
            )


def of_settings(config: Mapping[str, Any], settings: Mapping[str, str]) -> dict[str, Any]:
    """Return our settings from theirs, {ours: theirs}."""
    found: dict[str, Any] = {}
    for ours, theirs in settings.items():
        if "dropout" in ours:
            found[ours] = float(config.get(theirs) or 0.0)
        elif ours == "norm_eps":
            found[ours] = float(config.get(theirs, 1e-5))
        elif theirs not in config:
            raise ValueError(
                f"it has no {theirs!r}; expected all of {', '.join(settings.values())}"
            )
        else:
            found[ours] = checks.positive(theirs, config[theirs])
    return found


def activation_of(config: Mapping[str, Any], key: str) -> str:
    """Return our name of an activation."""
    checks.choice(key, config.get(key), ACTIVATIONS)
    return ACTIVATIONS[config[key]]


def their_activation(class_name: str, config: EncoderConfig) -> str:
    """Return their name of an activation; ValueError if there is none."""
    names = {ours: theirs for theirs, ours in reversed([*ACTIVATIONS.items()])}
    if config.activation not in names:
        raise ValueError(
            f"transformers' {class_name} cannot hold this model: it has activation = "
            f"{config.activation!r}. npformer.save writes any model"
        )
    return names[config.activation]


def check_fits(class_name: str, config: EncoderConfig, fixed: Mapping[str, Any]) -> None:
    """Raise ValueError for a setting that their models do not have."""
    given = {"share_layers": False, "embedding_norm": False, "n_token_types": 0, **fixed}
    for name, value in given.items():
        own = set(config.mixers()) if name == "mixer" else getattr(config, name)
        if own != ({value} if name == "mixer" else value):
            raise ValueError(
                f"transformers' {class_name} cannot hold this model: it has {name} = "
                f"{getattr(config, name)!r}; expected {value!r}. npformer.save writes any model"
            )
