"""GPT-2's folders: a `LanguageModel`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from npformer.core import checks, initializers, to_numpy
from npformer.interop.family import Family
from npformer.interop.settings import check_fits, foreign_settings, their_settings
from npformer.models import EncoderConfig
from npformer.training.trainable import LanguageModel


class GPT2(Family):
    """GPT-2 (Radford et al., 2019)."""

    def with_full_names(self, state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the weights under the names of the model with its head."""
        found = {name: array for name, array in state.items() if not name.endswith("masked_bias")}
        if "wte.weight" in found:
            found = {f"transformer.{name}": array for name, array in found.items()}
        return found

    def model(self, config: Mapping[str, Any], dtype: str) -> LanguageModel:
        """Return a model of these sizes, its weights not drawn yet."""
        ours, inner = self.settings(config), config.get("n_inner")
        ours["d_ff"] = 4 * ours["d_model"] if inner is None else checks.positive("n_inner", inner)
        tied = bool(config.get("tie_word_embeddings", True))
        made, size, seed = EncoderConfig(**ours), config["vocab_size"], initializers.undrawn()
        return LanguageModel(made, size, tied=tied, seed=seed, dtype=dtype)

    def config_of(self, model: LanguageModel) -> dict[str, Any]:
        """Return the content of config.json."""
        config = model.config
        found = foreign_settings(self.architecture, config)
        if not model.tied and np.any(to_numpy(model.parameters()["output.bias"])):
            found.append("an output with a bias")
        check_fits(self.architecture, found)
        return {
            **their_settings(self.architecture, config),
            "embd_pdrop": config.dropout,
            "n_inner": None if config.d_ff == 4 * config.d_model else config.d_ff,
            "vocab_size": model.vocab_size,
            "tie_word_embeddings": model.tied,
        }
