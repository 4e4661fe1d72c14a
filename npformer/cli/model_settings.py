"""Options that were given, and the settings of models that they make."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from npformer.core import split_names
from npformer.data.tokenizers import TOKENIZERS
from npformer.interop.tokenizers import read_tokenizer
from npformer.models import EncoderConfig
from npformer.tasks.estimators import Estimator, TextClassifier
from npformer.tasks.sources import file_kinds
from npformer.tasks.sources.file_task import FileTask

OF_FOLDER = ("tokenizer", "vocab_size", "ngrams", "max_len", "dtype")
"""Options that a folder with pretrained weights decides, besides the configuration."""


def options_typed(options: argparse.Namespace, names: Any) -> dict[str, Any]:
    """Return those of the named options that were given."""
    return {name: v for name, v in vars(options).items() if name in names and v is not None}


def mixer_setting(words: str) -> str | tuple[str, ...]:
    """Return the mixer that --mixer names, or one for each layer."""
    mixers = split_names(words)
    return mixers[0] if len(mixers) == 1 else tuple(mixers)


def model_for(options: argparse.Namespace, task: FileTask) -> Estimator:
    """Return an untrained estimator with the settings that were given."""
    kind = file_kinds.KINDS[task.kind].estimator
    typed = options_typed(options, kind.__dataclass_fields__)
    encoder = EncoderConfig.__dataclass_fields__.keys() - kind.__dataclass_fields__.keys()
    config = options_typed(options, encoder)
    if typed.get("pretrained") is not None:
        decided = config | options_typed(options, OF_FOLDER)
        if wrong := [name for name, v in decided.items() if v != options.defaults.get(name)]:
            known = {action.dest: action.option_strings for action in options.parser._actions}
            raise ValueError(
                f"{known[wrong[0]][0]} is given together with pretrained weights, whose folder "
                "decides it; expected only --from"
            )
        return TextClassifier(**{n: v for n, v in typed.items() if n not in OF_FOLDER})
    config["mixer"] = mixer_setting(config["mixer"])
    if (name := typed.get("tokenizer")) is not None:
        if task.kind in ("texts", "unlabelled") and name not in TOKENIZERS and Path(name).exists():
            typed["tokenizer"] = read_tokenizer(name)
        elif task.kind == "pairs" and len(tokenizer_names := split_names(name)) > 1:
            typed["tokenizer"] = tokenizer_names
    return kind(config, **typed)  # type: ignore[no-any-return]
