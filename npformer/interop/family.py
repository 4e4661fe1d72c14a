"""Family: how a model that writes is made from a folder's settings and weights, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from npformer.core import Seed, initializers
from npformer.interop.architecture import EVERY, Architecture, their_layout
from npformer.interop.huggingface import values_of
from npformer.interop.settings import our_settings

Arrays = dict[str, np.ndarray]


class Family(ABC):
    """A family of models that write; `architecture` is its table."""

    def __init__(self, model_type: str) -> None:
        self.architecture: Architecture = EVERY[model_type]

    @abstractmethod
    def model(self, config: Mapping[str, Any], dtype: str, seed: Seed) -> Any:
        """Return a model whose weights are still to be read; ValueError if npformer has none."""

    @abstractmethod
    def config_of(self, model: Any) -> dict[str, Any]:
        """Return the content of config.json for a model; ValueError if transformers has none."""

    def settings(
        self, config: Mapping[str, Any], architecture: Architecture | None = None
    ) -> dict[str, Any]:
        """Return our settings from those of a config.json, which may leave some out."""
        chosen = architecture or self.architecture
        usual = {key: v for key, v in chosen.defaults.items() if config.get(key) is None}
        return our_settings(chosen, {**config, **usual}, "it")

    def read(self, config: Mapping[str, Any], state: Arrays) -> Any:
        """Return the model with the weights of a folder."""
        config, state = self.in_full(config, state)
        kinds = {array.dtype.name for array in state.values() if array.dtype.kind == "f"}
        if len(kinds) != 1:
            raise ValueError(f"the weights have the dtypes {sorted(kinds)}; expected one")
        # A file may state any size.
        most = 4 * sum(array.size for array in state.values()) + (1 << 20)
        model = self.model(config, kinds.pop(), initializers.undrawn(most))
        parameters = model.named_parameters()
        places = self.architecture.places(parameters)
        if unknown := state.keys() - {place.key for place in places.values()}:
            raise ValueError(
                f"the weights have {min(unknown)!r}, which a {self.architecture.class_name()} of "
                "this config.json does not have; expected its own alone"
            )
        for ours, place in places.items():
            if place.key not in state:
                raise ValueError(f"the weights have no {place.key!r}; copy the folder again")
            array, wanted = place.ours(state[place.key]), parameters[ours].value
            if array.size != wanted.size or array.reshape(wanted.shape).shape != wanted.shape:
                raise ValueError(
                    f"{place.key!r} has shape {state[place.key].shape}; expected one that "
                    f"fits config.json, where {ours} has {wanted.shape}"
                )
            wanted[...] = array.reshape(wanted.shape)
        return model

    def their_weights(self, model: Any) -> dict[str, np.ndarray]:
        """Return the weights under their names and in their layout."""
        values = values_of(model)
        return their_layout(self.architecture.places(values), values)

    @abstractmethod
    def in_full(self, config: Mapping[str, Any], state: Arrays) -> tuple[Mapping[str, Any], Arrays]:
        """Return a folder's settings and weights, each of these once, under its full name.

        ValueError if two that are one array in the model differ in the folder.
        """
