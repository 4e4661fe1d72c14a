"""GPT-2's folders: a `LanguageModel`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from npformer.core import Seed, checks, to_numpy
from npformer.interop.family import Arrays, Family
from npformer.interop.settings import check_fits, foreign_settings, their_settings
from npformer.models import EncoderConfig
from npformer.training.trainable import LanguageModel

TABLE, HEAD = "transformer.wte.weight", "lm_head.weight"
BUFFERS = re.compile(r"\.attn\.(masked_)?bias$")
"""Constants in older files: which tokens are later ones, and -10000."""


class GPT2(Family):
    """GPT-2 (Radford et al., 2019)."""

    def in_full(self, config: Mapping[str, Any], state: Arrays) -> tuple[Mapping[str, Any], Arrays]:
        """Return the settings and weights; an output that differs from the table is not tied."""
        found = {name: array for name, array in state.items() if not BUFFERS.search(name)}
        if not any(name.startswith("transformer.") for name in found):
            found = {n if n == HEAD else f"transformer.{n}": array for n, array in found.items()}
        if config.get("tie_word_embeddings") is not False and HEAD in found:
            table = found.setdefault(TABLE, found[HEAD])
            if np.array_equal(table, found[HEAD]):
                del found[HEAD]
            else:
                config = {**config, "tie_word_embeddings": False}
        return config, found

    def model(self, config: Mapping[str, Any], dtype: str, seed: Seed) -> LanguageModel:
        """Return a model of these sizes, its weights not drawn yet."""
        ours, inner = self.settings(config), config.get("n_inner")
        ours["d_ff"] = 4 * ours["d_model"] if inner is None else checks.positive("n_inner", inner)
        checks.flag("tie_word_embeddings", tied := config.get("tie_word_embeddings", True))
        size = config["vocab_size"]
        return LanguageModel(EncoderConfig(**ours), size, tied=tied, seed=seed, dtype=dtype)

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
