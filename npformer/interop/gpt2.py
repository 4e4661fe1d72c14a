"""GPT-2's folders: a `LanguageModel`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from npformer.core import checks, to_numpy
from npformer.interop.architecture import Arrays, Settings, Weights
from npformer.interop.family import Family
from npformer.models import EncoderConfig
from npformer.training.trainable import LanguageModel


class GPT2(Family):
    """GPT-2 (Radford et al., 2019)."""

    models = (LanguageModel,)

    def in_full(self, hf_config: Settings, state: Weights) -> tuple[Settings, Arrays]:
        """Return the settings and weights; an output that differs from the table is not tied."""
        head, table = self.layers["output.weight"], f"{self.layers['embed.tokens']}.weight"
        found = {name: array for name, array in state.items() if not name.endswith(self.buffers)}
        if not any(name.startswith(self.prefix) for name in found):
            found = {n if n == head else self.prefix + n: array for n, array in found.items()}
        if hf_config.get("tie_word_embeddings") is not False and head in found:
            if np.array_equal(found.setdefault(table, found[head]), found[head]):
                del found[head]
            else:
                hf_config = {**hf_config, "tie_word_embeddings": False}
        return hf_config, found

    def maker(self, hf_config: Settings, state: Arrays, padding: str) -> Callable[..., Any]:
        """Return what makes a model of these settings."""
        ours, inner = self.our_settings(hf_config), hf_config.get("n_inner")
        ours["d_ff"] = 4 * ours["d_model"] if inner is None else checks.positive("n_inner", inner)
        checks.flag("tie_word_embeddings", tied := hf_config.get("tie_word_embeddings", True))
        return partial(LanguageModel, EncoderConfig(**ours), hf_config["vocab_size"], tied=tied)

    def foreign(self, model: LanguageModel) -> list[str]:
        """Return descriptions of what a model has and GPT-2 has not."""
        biased = not model.tied and np.any(to_numpy(model.parameters()["output.bias"]))
        return self.foreign_settings(model.config) + ["an output with a bias"] * bool(biased)

    def settings_of(self, model: LanguageModel, before: Settings) -> dict[str, Any]:
        """Return the settings as config.json has them."""
        config = model.config
        return {
            **self.their_settings(config),
            "embd_pdrop": config.dropout,
            "n_inner": None if config.d_ff == 4 * config.d_model else config.d_ff,
            "vocab_size": model.vocab_size,
            "tie_word_embeddings": model.tied,
        }
