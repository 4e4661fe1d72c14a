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
        arrays = self._without_prefix(state)
        for positions in self.places([POSITIONS]):  # rotary ones have no table
            if positions in arrays:
                arrays[positions] = arrays[positions][self.unused_positions(hf_config) :]
        return hf_config, arrays

    def _without_prefix(self, state: Weights) -> Arrays:
        """Return the encoder's weights under newer names without prefix."""
        left_out = (*OF_TASKS, *self.pretraining)
        prefix = self.prefix if any(name.startswith(self.prefix) for name in state) else ""
        arrays: Arrays = {}
        for name, array in state.items():
            if name.startswith(left_out) or name.endswith(self.buffers):
                continue
            newer = newer_name(name.removeprefix(prefix))
            if newer in arrays:
                raise ValueError(f"state has {newer} under two names; expected one")
            arrays[newer] = array
        return arrays

    def maker(self, hf_config: Settings, state: Arrays, padding: str) -> Callable[..., TextEncoder]:
        """Return what makes an encoder of these settings, with a pooler if the weights have one."""
        ours = self.our_settings(hf_config)
        unused = self.unused_positions(hf_config)
        if ours["max_len"] <= unused:
            raise ValueError(
                f"hf_config has {ours['max_len']} positions, and the first {unused} of them are "
                "before that of the first token; expected more"
            )
        ours["max_len"] -= unused
        config = EncoderConfig(
            **ours,
            **self.unused,
            position_padding_id=unused - 1 if unused else None,
            padding=padding,
        )
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
        ids = (
            before.get("pad_token_id"),
            getattr(model, "padding_id", None),
            model.config.position_padding_id,
            self.defaults["pad_token_id"],
        )
        size = model.vocab_size or 0
        written = {
            **self.their_settings(model.config),
            "vocab_size": size,
            "pad_token_id": next((id for id in ids if id is not None and id < size), None),
        }
        if before.get(self.half_window) is not None:
            written[self.half_window] = written[self.settings["window"]] // 2
        written[self.settings["max_len"]] += self.unused_positions(written)
        return written


def newer_name(name: str) -> str:
    """Return the name that a parameter of a layer norm has in newer files."""
    older = name.replace("LayerNorm.gamma", "LayerNorm.weight")
    return older.replace("LayerNorm.beta", "LayerNorm.bias")
