"""Families of models that write text, which are read as a `LanguageModel`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from npformer.core import checks, to_numpy
from npformer.interop.architecture import Arrays, Settings, Weights
from npformer.interop.family import Family
from npformer.models import EncoderConfig
from npformer.models.trainable import LanguageModel


class LanguageModelFamily(Family):
    """Llama and its relatives."""

    models = (LanguageModel,)

    def standardize(self, hf_config: Settings, state: Weights) -> tuple[Settings, Arrays]:
        """Return the settings and weights; an output unlike the embeddings is not tied."""
        head = self.layers["output.weight"]
        table = f"{self.layers['embed.tokens']}.weight"
        arrays = {name: array for name, array in state.items() if not name.endswith(self.buffers)}
        if not any(name.startswith(self.prefix) for name in arrays):
            arrays = {self._full_name(name): array for name, array in arrays.items()}
        if hf_config["tie_word_embeddings"] is False or head not in arrays:
            return hf_config, arrays
        arrays.setdefault(table, arrays[head])
        if not np.array_equal(arrays[table], arrays[head]):
            return {**hf_config, "tie_word_embeddings": False}, arrays
        del arrays[head]
        return hf_config, arrays

    def _full_name(self, name: str) -> str:
        """Return a name with the prefix, except for the output, which has none."""
        return name if name == self.layers["output.weight"] else self.prefix + name

    def model_factory(self, hf_config: Settings, state: Arrays, padding: str) -> Callable[..., Any]:
        """Return a function that makes a model of these settings."""
        config = EncoderConfig(**self.our_settings(hf_config))
        tied = checks.flag("tie_word_embeddings", hf_config["tie_word_embeddings"])
        return partial(LanguageModel, config, hf_config["vocab_size"], tied=tied)

    def foreign(self, model: LanguageModel) -> list[str]:
        """Return descriptions of what a model has and the family does not have."""
        differences = self.foreign_settings(model.config)
        bias = model.parameters().get("output.bias")
        if bias is not None and np.any(to_numpy(bias)):
            differences.append("an output with a bias")
        return differences

    def settings_of(self, model: LanguageModel, before: Settings) -> dict[str, Any]:
        """Return the settings as config.json has them."""
        settings = self.their_settings(model.config)
        return settings | {"vocab_size": model.vocab_size, "tie_word_embeddings": model.tied}


class GPT2(LanguageModelFamily):
    """GPT-2 (Radford et al., 2019)."""

    def our_settings(self, hf_config: Settings, side: str = "") -> dict[str, Any]:
        """Return our settings; by default d_ff is four times d_model."""
        ours = super().our_settings(hf_config, side)
        d_ff = hf_config.get("n_inner")
        ours["d_ff"] = 4 * ours["d_model"] if d_ff is None else checks.positive("n_inner", d_ff)
        return ours

    def settings_of(self, model: LanguageModel, before: Settings) -> dict[str, Any]:
        """Return the settings as config.json has them."""
        config = model.config
        d_ff = None if config.d_ff == 4 * config.d_model else config.d_ff
        settings = super().settings_of(model, before)
        return settings | {"n_inner": d_ff, "embd_pdrop": config.dropout}
