"""Folders of models that write: a `LanguageModel`."""

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

    def in_full(self, hf_config: Settings, state: Weights) -> tuple[Settings, Arrays]:
        """Return the settings and weights; an output that differs from the table is not tied."""
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
        """Return a name with the prefix, which that of the output does not have."""
        return name if name == self.layers["output.weight"] else self.prefix + name

    def maker(self, hf_config: Settings, state: Arrays, padding: str) -> Callable[..., Any]:
        """Return what makes a model of these settings."""
        config = EncoderConfig(**self.our_settings(hf_config))
        tied = checks.flag("tie_word_embeddings", hf_config["tie_word_embeddings"])
        return partial(LanguageModel, config, hf_config["vocab_size"], tied=tied)

    def foreign(self, model: LanguageModel) -> list[str]:
        """Return descriptions of what a model has and the family has not."""
        bias = model.parameters().get("output.bias")
        biased = bias is not None and np.any(to_numpy(bias))
        return self.foreign_settings(model.config) + ["an output with a bias"] * bool(biased)

    def settings_of(self, model: LanguageModel, before: Settings) -> dict[str, Any]:
        """Return the settings as config.json has them."""
        own = {"vocab_size": model.vocab_size, "tie_word_embeddings": model.tied}
        return self.their_settings(model.config) | own


class GPT2(LanguageModelFamily):
    """GPT-2 (Radford et al., 2019)."""

    def our_settings(self, given: Settings, side: str = "") -> dict[str, Any]:
        """Return our settings; the inner size is usually four times the outer one."""
        ours, inner = super().our_settings(given, side), given.get("n_inner")
        ours["d_ff"] = 4 * ours["d_model"] if inner is None else checks.positive("n_inner", inner)
        return ours

    def settings_of(self, model: LanguageModel, before: Settings) -> dict[str, Any]:
        """Return the settings as config.json has them."""
        config = model.config
        inner = None if config.d_ff == 4 * config.d_model else config.d_ff
        own = {"n_inner": inner, "embd_pdrop": config.dropout}
        return super().settings_of(model, before) | own
