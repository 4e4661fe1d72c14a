"""The family Marian, which is read as an `EncoderDecoder`."""

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
"""{our name of the id of a token: their name}."""

TABLE, BIAS = "model.shared.weight", "final_logits_bias"
COPIES = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"
"""Other names of the table, in files that store it more than once."""


class Marian(Family):
    """Marian (Junczys-Dowmunt et al., 2018)."""

    models = (EncoderDecoder,)

    def standardize(self, hf_config: Settings, state: Weights) -> tuple[Settings, Arrays]:
        """Return the settings, and the weights with the table once, and without sinusoids."""
        arrays = dict(state)
        for name in COPIES:
            if name in arrays:
                _remove_copy(arrays, name)
        position_tables = [name for name in arrays if name.endswith(".embed_positions.weight")]
        for name in position_tables:
            _check_sinusoids(name, arrays.pop(name))
        if BIAS in arrays:  # theirs is (1, vocab_size)
            arrays[BIAS] = arrays[BIAS].reshape(-1)
        return hf_config, arrays

    def model_factory(self, hf_config: Settings, state: Arrays, padding: str) -> Callable[..., Any]:
        """Return a function that makes a model of these settings."""
        scaled = checks.flag("scale_embedding", hf_config.get("scale_embedding", False))
        encoder_settings = self.our_settings(hf_config, "encoder")
        decoder_settings = self.our_settings(hf_config, "decoder")
        vocab_size = hf_config["vocab_size"]
        decoder_config = EncoderConfig(**decoder_settings, scale_embeddings=scaled, causal=True)
        ids: dict[str, Any] = {}
        for ours, theirs in IDS.items():
            id = hf_config.get(theirs)
            ids[ours] = checks.whole(theirs, id, at_least=0, at_most=vocab_size - 1)
        return partial(
            EncoderDecoder,
            EncoderConfig(**encoder_settings, scale_embeddings=scaled),
            source_vocab=vocab_size,
            target_vocab=vocab_size,
            decoder=decoder_config,
            tied=True,
            output_bias=True,
            **ids,
        )

    def foreign(self, model: EncoderDecoder) -> list[str]:
        """Return descriptions of what a model has and Marian does not have."""
        differences = []
        for config in (model.config, model.decoder_config):
            # a decoder is causal, and scale_embedding is a setting of Marian
            comparable = replace(config, causal=False, scale_embeddings=True)
            differences += self.foreign_settings(comparable)
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

    def their_arrays(self, values: Weights) -> Arrays:
        """Return our arrays under their names and in their layout: copies, on the host."""
        arrays = super().their_arrays(values)
        return arrays | {BIAS: arrays[BIAS][None]}


def _remove_copy(arrays: Arrays, name: str) -> None:
    """Remove the table under another name; ValueError if the two differ."""
    copy = arrays.pop(name)
    table = arrays.setdefault(TABLE, copy)
    if not np.array_equal(table, copy):
        raise ValueError(
            f"{name!r} differs from {TABLE!r}; expected one table for both languages and the "
            "output, all that npformer supports"
        )


def _check_sinusoids(name: str, table: np.ndarray) -> None:
    """Raise ValueError if a table of positions does not have the sinusoids of npformer."""
    exact = constants.sinusoids(*table.shape, halves=True) if table.ndim == 2 else np.nan
    if not np.allclose(table, exact, rtol=0.0, atol=_tolerance(table)):
        raise ValueError(f"{name!r} differs from sinusoids; expected the sinusoids of Marian")


def _tolerance(table: np.ndarray) -> float:
    """Return the largest rounding error of numbers up to 1 in the precision of a table."""
    if not np.any(table.astype("<f4").view("<u4") & 0xFFFF):  # bfloat16
        return 2.0**-8
    if (table == table.astype("float16")).all():
        return 2.0**-11
    return 1e-6
