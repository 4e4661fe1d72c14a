"""SourceFolder: the files of a pretrained folder besides weights, to write a similar folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from npformer.data.tokenizers import LibraryTokenizer, Tokenizer
from npformer.interop.architecture import Settings
from npformer.interop.sentences import SentenceSettings

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
    "source.spm",
    "target.spm",
    "generation_config.json",
)
"""Files that are written exactly as they were read."""


@dataclass(frozen=True)
class SourceFolder:
    """The content of a folder besides weights.

    Attributes
    ----------
    folder : str
    hf_config : mapping
        The content of config.json.
    tokenizer_files : mapping of str to bytes, or to content for JSON
    unused_positions : array, shape (rows, d_model), or None
        Rows of the position table before the row of the first token; None: zeros.
    sentences : SentenceSettings or None
        None if the folder is not a sentence encoder.
    """

    folder: str = ""
    hf_config: Settings = field(default_factory=dict)
    tokenizer_files: Mapping[str, Any] = field(default_factory=dict)
    unused_positions: np.ndarray | None = None
    sentences: SentenceSettings | None = None


def read_tokenizer_files(folder: Path) -> dict[str, bytes]:
    """Return the files of a tokenizer, unchanged."""
    files = [folder / name for name in TOKENIZER_FILES]
    return {file.name: file.read_bytes() for file in files if file.is_file()}


def tokenizer_or_error(read: Callable[[Path], Tokenizer], folder: Path, vocab_size: int) -> Any:
    """Return a folder's tokenizer, or the error: weights can be used without a tokenizer."""
    try:
        tokenizer = read(folder)
    except (ImportError, OSError) as error:
        return error
    check_vocabulary(tokenizer, vocab_size)
    return tokenizer


def check_vocabulary(tokenizer: Tokenizer, vocab_size: int) -> None:
    """Check that a model has a vector for each id of a tokenizer; it may have more."""
    if tokenizer.vocab_size > vocab_size:
        raise ValueError(
            f"the tokenizer has {tokenizer.vocab_size} ids, and the model {vocab_size}; expected "
            "a tokenizer that belongs to the model"
        )


def files_of(tokenizer: LibraryTokenizer, max_len: int, token_types: bool) -> dict[str, Any]:
    """Return {name: content} of the files from which transformers makes a tokenizer."""
    usual_names = {
        "unk_token": ("[UNK]", "<unk>"),
        "cls_token": ("[CLS]", "<s>"),
        "sep_token": ("[SEP]", "</s>"),
        "mask_token": ("[MASK]", "<mask>"),
    }
    inputs = ["input_ids", "attention_mask"]
    if token_types:
        inputs.insert(1, "token_type_ids")
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_len,
        "model_input_names": inputs,
        "pad_token": tokenizer.padding,
        "truncation_side": tokenizer.truncation_side,
    }
    for key, names in usual_names.items():
        tokens = [name for name in names if tokenizer.library.token_to_id(name) is not None]
        if tokens:
            settings[key] = tokens[0]
    return {
        "tokenizer.json": tokenizer.library.to_str().encode(),
        "tokenizer_config.json": settings,
    }
