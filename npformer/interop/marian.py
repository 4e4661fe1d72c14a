"""Marian's folders: an `EncoderDecoder`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from npformer.core import checks, constants
from npformer.interop.architecture import Arrays, Settings, Weights
from npformer.interop.family import Family
from npformer.models import EncoderConfig
from npformer.models.trainable import EncoderDecoder

IDS = {
    "padding_id": "pad_token_id",
    "begin_id": "decoder_start_token_id",
    "end_id": "eos_token_id",
}
"""{our name of a token's id: theirs}."""

TABLE, BIAS = "model.shared.weight", "final_logits_bias"
COPIES = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"
"""Other names of the table, in files that have it more than once."""


class Marian(Family):
    """Marian (Junczys-Dowmunt et al., 2018)."""

    models = (EncoderDecoder,)

    def in_full(self, hf_config: Settings, state: Weights) -> tuple[Settings, Arrays]:
        """Return the settings and weights, with one table for all uses, and without sinusoids."""
        arrays = dict(state)
        for name in COPIES:
            if name in arrays:
                _remove_copy(arrays, name)
        for name in [name for name in arrays if name.endswith(".embed_positions.weight")]:
            _check_sinusoids(name, arrays.pop(name))
        if BIAS in arrays:  # theirs is (1, vocab_size)
            arrays[BIAS] = arrays[BIAS].reshape(-1)
        return hf_config, arrays

    def maker(self, hf_config: Settings, state: Arrays, padding: str) -> Callable[..., Any]:
        """Return what makes a model of these settings."""
        scaled = checks.flag("scale_embedding", hf_config.get("scale_embedding", False))
        encoder = self.our_settings(hf_config, "encoder")
        decoder = self.our_settings(hf_config, "decoder")
        size = hf_config["vocab_size"]
        decoder_config = EncoderConfig(**decoder, scale_embeddings=scaled, causal=True)
        ids: dict[str, Any] = {
            ours: checks.whole(theirs, hf_config.get(theirs), at_least=0, at_most=size - 1)
            for ours, theirs in IDS.items()
        }
        return partial(
            EncoderDecoder,
            EncoderConfig(**encoder, scale_embeddings=scaled),
            size,
            size,
            decoder=decoder_config,
            tied=True,
            output_bias=True,
            **ids,
        )

    def foreign(self, model: EncoderDecoder) -> list[str]:
        """Return descriptions of what a model has and Marian has not."""
        differences = []
        for config in (model.config, model.decoder_config):
            # a decoder looks back, and scaled embeddings are a setting of both
            usual = replace(config, causal=False, scale_embeddings=True)
            differences += self.foreign_settings(usual)
        common = [ours for ours, theirs in self.settings.items() if "{side}" not in theirs]
        for name in (*common, "scale_embeddings"):
            if getattr(model.config, name) != getattr(model.decoder_config, name):
                differences.append(f"{name} that differs between sides")
        for name in ("tied", "output_bias"):
            if not getattr(model, name):
                differences.append(f"{name} = False")
        return differences

    def settings_of(self, model: EncoderDecoder, before: Settings) -> dict[str, Any]:
        """Return the settings as config.json has them."""
        return {
            **self.their_settings(model.config, "encoder"),
            **self.their_settings(model.decoder_config, "decoder"),
            "scale_embedding": model.config.scale_embeddings,
            "vocab_size": model.source_vocab,
            "decoder_vocab_size": model.target_vocab,
            **{theirs: getattr(model, ours) for ours, theirs in IDS.items()},
            "forced_eos_token_id": model.end_id,
            "is_encoder_decoder": True,
            "share_encoder_decoder_embeddings": True,
            "tie_word_embeddings": True,
        }

    def theirs(self, values: Weights) -> Arrays:
        """Return our arrays under their names and in their layout: copies, on the host."""
        arrays = super().theirs(values)
        return arrays | {BIAS: arrays[BIAS][None]}


def _remove_copy(arrays: Arrays, name: str) -> None:
    """Remove another name of the table; ValueError if that is another table."""
    copy = arrays.pop(name)
    table = arrays.setdefault(TABLE, copy)
    if not np.array_equal(table, copy):
        raise ValueError(
            f"{name!r} differs from {TABLE!r}; expected one table for both languages and the "
            "output, all that npformer supports"
        )


def _check_sinusoids(name: str, table: np.ndarray) -> None:
    """Raise ValueError if a table of positions is not the one that npformer computes."""
    exact = constants.sinusoids(*table.shape, halves=True) if table.ndim == 2 else np.nan
    if not np.allclose(table, exact, rtol=0.0, atol=_rounding(table)):
        raise ValueError(f"{name!r} differs from sinusoids; expected those of Marian")


def _rounding(table: np.ndarray) -> float:
    """Return how far numbers up to 1 may be from exact ones, by the bits that they have."""
    if not np.any(table.astype("<f4").view("<u4") & 0xFFFF):  # of bfloat16
        return 2.0**-8
    return 2.0**-11 if (table == table.astype("float16")).all() else 1e-6
