"""Encoders' folders: a `TextEncoder`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from npformer.core import checks
from npformer.interop.architecture import POSITIONS, Arrays, Settings, Weights
from npformer.interop.family import Family
from npformer.models import EncoderConfig
from npformer.models.trainable import MaskedLanguageModel, SequenceClassifier
from npformer.models.trainable.text_encoder import TextEncoder

OF_TASKS = ("classifier.", "pre_classifier.", "qa_outputs.")
"""Prefixes of layers on top of the encoder that were trained for a task; it has none of them."""


class EncoderFamily(Family):
    """BERT and its relatives."""

    models = TextEncoder, SequenceClassifier, MaskedLanguageModel

    def in_full(self, hf_config: Settings, state: Weights) -> tuple[Settings, Arrays]:
        """Return the settings, and the encoder's weights under newer names without prefix.

        Rows of the table of positions that no token uses are left out.
        """
        advice = "Write {k: v.numpy() for k, v in model.state_dict().items()}"
        checks.instance("state", state, Mapping, advice)
        for name in state:
            checks.text("a name in state", name)
        prefixed = any(name.startswith(self.prefix) for name in state)
        found: Arrays = {}
        for name, array in state.items():
            if name.startswith((*OF_TASKS, *self.pretraining)) or name.endswith(self.buffers):
                continue
            short = name.removeprefix(self.prefix) if prefixed else name
            newer = newer_name(short)
            if newer in found:
                raise ValueError(f"state has {newer} under two names; expected one")
            found[newer] = array
        for positions in self.places([POSITIONS]):  # rotary ones have no table
            if positions in found:
                found[positions] = found[positions][self.unused_positions(hf_config) :]
        return hf_config, found

    def maker(self, hf_config: Settings, state: Arrays, padding: str) -> Callable[..., TextEncoder]:
        """Return what makes an encoder of these settings, with a pooler if the weights have one."""
        ours = self.our_settings(hf_config)
        ours["max_len"] -= (unused := self.unused_positions(hf_config))
        if ours["max_len"] < 1:
            raise ValueError(
                f"hf_config has {ours['max_len'] + unused} positions, and the first {unused} of "
                "them are before that of the first token; expected more"
            )
        more = {**self.unused, "position_padding_id": unused - 1 if unused else None}
        config = EncoderConfig(**ours, **more, padding=padding)
        pooler = f"{self.layers.get('pool.dense')}.weight" in state
        return partial(TextEncoder, config, int(hf_config["vocab_size"]), pooler=pooler)

    def foreign(self, model: TextEncoder | SequenceClassifier | MaskedLanguageModel) -> list[str]:
        """Return descriptions of what a model has and the family has not."""
        vectors = ["feature vectors instead of token ids"] if model.vocab_size is None else []
        return self.foreign_settings(model.config) + vectors

    def settings_of(
        self, model: TextEncoder | SequenceClassifier | MaskedLanguageModel, before: Settings
    ) -> dict[str, Any]:
        """Return the settings as config.json has them."""
        own = getattr(model, "padding_id", None), model.config.position_padding_id
        ids = before.get("pad_token_id"), *own, self.defaults["pad_token_id"]
        size = model.vocab_size or 0
        written = {
            **self.their_settings(model.config),
            "vocab_size": size,
            "pad_token_id": next((id for id in ids if id is not None and id < size), None),
        }
        written[self.settings["max_len"]] += self.unused_positions(written)
        return written


def newer_name(name: str) -> str:
    """Return the name that a parameter of a layer norm has in newer files."""
    older = name.replace("LayerNorm.gamma", "LayerNorm.weight")
    return older.replace("LayerNorm.beta", "LayerNorm.bias")
