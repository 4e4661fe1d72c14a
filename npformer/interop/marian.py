"""Marian's folders: an `EncoderDecoder`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from npformer.core import Seed, checks, constants
from npformer.interop.family import Arrays, Family
from npformer.interop.settings import check_fits, foreign_settings, their_settings
from npformer.models import EncoderConfig
from npformer.training.trainable import EncoderDecoder

IDS = {
    "padding_id": "pad_token_id",
    "begin_id": "decoder_start_token_id",
    "end_id": "eos_token_id",
}
"""{our name of a token's id: theirs}."""

TABLE = "model.shared.weight"
COPIES = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"
"""Other names of the table, in files that have it more than once."""


class Marian(Family):
    """Marian (Junczys-Dowmunt et al., 2018)."""

    def __init__(self, model_type: str) -> None:
        super().__init__(model_type)
        settings = self.architecture.settings.items()
        self.sides = [
            replace(self.architecture, settings={o: t.format(side=side) for o, t in settings})
            for side in ("encoder", "decoder")
        ]

    def in_full(self, config: Mapping[str, Any], state: Arrays) -> tuple[Mapping[str, Any], Arrays]:
        """Return the settings and weights, with one table for all uses, and without sinusoids."""
        found = dict(state)
        for name in COPIES:
            if name not in found:
                continue
            copy = found.pop(name)
            if not np.array_equal(found.setdefault(TABLE, copy), copy):
                raise ValueError(
                    f"{name!r} differs from {TABLE!r}; expected one table for both languages and "
                    "the output, all that npformer supports"
                )
        for name in [name for name in found if name.endswith(".embed_positions.weight")]:
            table = found.pop(name)
            exact = constants.sinusoids(*table.shape, halves=True) if table.ndim == 2 else np.nan
            if not np.allclose(table, exact, rtol=0.0, atol=_rounding(table)):
                raise ValueError(f"{name!r} differs from sinusoids; expected those of Marian")
        return config, found

    def model(self, config: Mapping[str, Any], dtype: str, seed: Seed) -> EncoderDecoder:
        """Return a model of these sizes, its weights not drawn yet."""
        checks.flag("scale_embedding", scaled := config.get("scale_embedding", False))
        scale = {"scale_embeddings": scaled}
        encoder, decoder = (self.settings(config, side) | scale for side in self.sides)
        size = config["vocab_size"]
        ids = {
            ours: checks.whole(theirs, config.get(theirs), at_least=0, at_most=size - 1)
            for ours, theirs in IDS.items()
        }
        return EncoderDecoder(
            EncoderConfig(**encoder, causal=False),
            size,
            size,
            decoder=EncoderConfig(**decoder, causal=True),
            tied=True,
            output_bias=True,
            **ids,
            seed=seed,
            dtype=dtype,
        )

    def their_weights(self, model: EncoderDecoder) -> dict[str, np.ndarray]:
        """Return the weights; their bias of the logits has shape (1, vocab_size)."""
        found = super().their_weights(model)
        return found | {"final_logits_bias": found["final_logits_bias"][None]}

    def config_of(self, model: EncoderDecoder) -> dict[str, Any]:
        """Return the content of config.json."""
        sides = [*zip(self.sides, (model.config, model.decoder_config), strict=True)]
        one, other = model.config, model.decoder_config
        found = [each for side, config in sides for each in foreign_settings(side, config)]
        common = [o for o, t in self.architecture.settings.items() if "{side}" not in t]
        found += [
            f"{name} that differs between sides"
            for name in (*common, "scale_embeddings")
            if getattr(one, name) != getattr(other, name)
        ]
        found += [f"{name} = False" for name in ("tied", "output_bias") if not getattr(model, name)]
        check_fits(self.architecture, found)
        written: dict[str, Any] = {}
        for side, config in sides:
            written |= their_settings(side, config)
        return {
            **written,
            "scale_embedding": one.scale_embeddings,
            "vocab_size": model.source_vocab,
            "decoder_vocab_size": model.target_vocab,
            **{theirs: getattr(model, ours) for ours, theirs in IDS.items()},
            "forced_eos_token_id": model.end_id,
            "is_encoder_decoder": True,
            "share_encoder_decoder_embeddings": True,
            "tie_word_embeddings": True,
        }


def _rounding(table: np.ndarray) -> float:
    """Return how far numbers up to 1 may be from exact ones, by the bits that they have."""
    if not np.any(table.astype("<f4").view("<u4") & 0xFFFF):  # of bfloat16
        return 2.0**-8
    return 2.0**-11 if (table == table.astype("float16")).all() else 1e-6
