"""Families of encoders, which are read as a `TextEncoder`."""

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

TASK_PREFIXES = ("classifier.", "pre_classifier.", "qa_outputs.")
"""Prefixes of the layers for a task, which are not part of the encoder."""


class EncoderFamily(Family):
    """BERT and its relatives."""

    models = TextEncoder, SequenceClassifier, MaskedLanguageModel

    def standardize(self, hf_config: Settings, state: Weights) -> tuple[Settings, Arrays]:
        """Return the settings, and the encoder's weights under newer names without prefix.

        Rows of the position table that no token uses are removed.
        """
        advice = "Write {k: v.numpy() for k, v in model.state_dict().items()}"
        checks.instance("state", state, Mapping, advice)
        for name in state:
            checks.text("a name in state", name)
        arrays = self._standardize_names(state)
        for positions in self.places([POSITIONS]):  # none with rotary encoding
            if positions in arrays:
                arrays[positions] = arrays[positions][self.n_unused_positions(hf_config) :]
        return hf_config, arrays

    def _standardize_names(self, state: Weights) -> Arrays:
        """Return the encoder's weights under newer names without prefix."""
        ignored_prefixes = (*TASK_PREFIXES, *self.pretraining)
        prefix = self.prefix if any(name.startswith(self.prefix) for name in state) else ""
        arrays: Arrays = {}
        for name, array in state.items():
            if name.startswith(ignored_prefixes) or name.endswith(self.buffers):
                continue
            newer = newer_name(name.removeprefix(prefix))
            if newer in arrays:
                raise ValueError(f"state has {newer} under two names; expected one")
            arrays[newer] = array
        return arrays

    def model_factory(
        self, hf_config: Settings, state: Arrays, padding: str
    ) -> Callable[..., TextEncoder]:
        """Return a function that makes an encoder of these settings.

        It has a pooler if the weights have one.
        """
        ours = self.our_settings(hf_config)
        n_unused = self.n_unused_positions(hf_config)
        if ours["max_len"] <= n_unused:
            raise ValueError(
                f"hf_config has {ours['max_len']} positions, and no token uses the first "
                f"{n_unused}; expected more positions"
            )
        ours["max_len"] -= n_unused
        config = EncoderConfig(
            **ours,
            **self.unused,
            position_padding_id=n_unused - 1 if n_unused else None,
            padding=padding,
        )
        pooler = f"{self.layers.get('pool.dense')}.weight" in state
        return partial(TextEncoder, config, int(hf_config["vocab_size"]), pooler=pooler)

    def foreign(self, model: TextEncoder | SequenceClassifier | MaskedLanguageModel) -> list[str]:
        """Return descriptions of what a model has and the family does not have."""
        differences = self.foreign_settings(model.config)
        if model.vocab_size is None:
            differences.append("feature vectors instead of token ids")
        return differences

    def settings_of(
        self, model: TextEncoder | SequenceClassifier | MaskedLanguageModel, before: Settings
    ) -> dict[str, Any]:
        """Return the settings as config.json has them."""
        vocab_size = model.vocab_size or 0
        possible_padding_ids = (
            before.get("pad_token_id"),
            getattr(model, "padding_id", None),
            model.config.position_padding_id,
            self.defaults["pad_token_id"],
        )
        padding_ids = [id for id in possible_padding_ids if id is not None and id < vocab_size]
        settings = self.their_settings(model.config)
        settings["vocab_size"] = vocab_size
        settings["pad_token_id"] = padding_ids[0] if padding_ids else None
        if before.get(self.half_window) is not None:
            settings[self.half_window] = settings[self.settings["window"]] // 2
        settings[self.settings["max_len"]] += self.n_unused_positions(settings)
        return settings


def newer_name(name: str) -> str:
    """Return the name of a parameter in newer files; those of LayerNorm differ in older ones."""
    older = name.replace("LayerNorm.gamma", "LayerNorm.weight")
    return older.replace("LayerNorm.beta", "LayerNorm.bias")
