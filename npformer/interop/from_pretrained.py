"""from_pretrained: a pretrained model from a folder in Hugging Face's layout."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.data.json_file import read_json_if_there
from npformer.interop.architecture import POSITIONS, Arrays, Settings
from npformer.interop.dense_head import read_dense_head
from npformer.interop.encoders import EncoderFamily
from npformer.interop.families import family_of
from npformer.interop.family import Family
from npformer.interop.folder import (
    CONFIG,
    check_floats,
    checked_folder,
    read_config,
    read_weights,
)
from npformer.interop.heads import TrainedHead, read_head
from npformer.interop.masked_head import read_masked_head
from npformer.interop.origin import Origin, read_tokenizer_files, tokenizer_or_error
from npformer.interop.pretrained_encoder import PretrainedEncoder
from npformer.interop.sentences import (
    POOLINGS,
    SentenceSettings,
    module_paths,
    read_sentence_settings,
)
from npformer.interop.tokenizers import MarianTokenizer, read_tokenizer
from npformer.interop.tokenizers.read_tokenizer import END_OF_TEXT
from npformer.interop.writers import PretrainedTranslator, PretrainedWriter
from npformer.models.trainable import EncoderDecoder, LanguageModel


def from_pretrained(
    folder: str | os.PathLike[str],
    dtype: str | None = None,
    *,
    pooling: str | None = None,
    normalize: bool | None = None,
    max_len: int | None = None,
    padding: str = "per_length",
) -> Any:
    """Return the model that a folder holds, with its tokenizer.

    Nothing is downloaded, and no code from the folder is run. BERT, MiniLM and other sentence
    encoders of BERT's layout, DistilBERT, RoBERTa, XLM-RoBERTa, CamemBERT, FNet and ModernBERT can
    be read; `ARCHITECTURES` lists them. So can models that write: GPT-2, Llama, Qwen3 and Marian.

    Parameters
    ----------
    folder : str or path
        With config.json; model.safetensors, or model.safetensors.index.json and its parts; and
        tokenizer.json, vocab.txt, or vocab.json and merges.txt. Files of sentence-transformers
        (modules.json, 1_Pooling, sentence_bert_config.json) are respected.
    dtype : {"float32", "float64"}, optional
        None: float64 if the file is, and otherwise float32, also for float16 and bfloat16.
    pooling : {"mean", "first", "max"}, optional
        How `PretrainedEncoder.embed` turns a text's tokens into one vector. None: as the folder
        says, or the mean.
    normalize : bool, optional
        Whether these vectors are scaled to norm 1. None: yes for sentence encoders, unless their
        modules.json has no Normalize.
    max_len : int, optional
        The most tokens of a text, special ones included; None: as the folder says.
    padding : {"refuse", "per_length", "zero"}
        What FNet does about padding: see `EncoderConfig`. With "per_length" a text has the same
        vectors whatever else is in its batch: those that transformers gives it alone.

    Returns
    -------
    pretrained : PretrainedEncoder, PretrainedWriter or PretrainedTranslator
        `PretrainedEncoder.embed` turns texts into vectors. GPT-2, Llama and Qwen3 become a
        `PretrainedWriter`, Marian a `PretrainedTranslator`, whose `generate` takes texts and
        returns texts. For these, leave out all arguments but `dtype`.

    Raises
    ------
    FileNotFoundError
        There is no such folder, or a file of it is missing.
    ValueError
        The folder holds something else: another kind of model, other files of weights, weights
        that do not fit its config.json.
    """
    path = checked_folder(folder)
    if dtype is not None:
        checks.choice("dtype", dtype, checks.FLOATS)
    sentences = read_sentence_settings(path)
    inside = module_paths(path).get("Transformer", path)  # the encoder may have its own folder
    stated = read_config(inside)
    family = family_of(stated, str(inside / CONFIG))
    encodes = isinstance(family, EncoderFamily)
    options: dict[str, Any] = {"pooling": pooling, "normalize": normalize, "max_len": max_len}
    options = {name: value for name, value in options.items() if value is not None}
    if options and not encodes:
        raise ValueError(
            f"{min(options)} is given and {path} holds a model that writes; expected none, because "
            "it is only for vectors of texts"
        )
    state = read_weights(inside, dtype, stated)
    try:
        check_floats(state, family.buffers)
        model = family.read(stated, state, padding)
        head = read_head(family, stated, state) if encodes else None
        masked = read_masked_head(family, stated, state, model) if encodes else None
        if encodes and sentences is not None:
            dense = read_dense_head(path, stated, sentences.pooling, model)
            head = _only_head(head, dense)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{inside} cannot be read: {error}. (hf_config is its {CONFIG}, state its weights.)"
        ) from error
    origin = Origin(str(path), stated, read_tokenizer_files(inside))
    if isinstance(model, LanguageModel):
        read = partial(read_tokenizer, padding=END_OF_TEXT)
        tokenizer = tokenizer_or_error(read, inside, model.vocab_size)
        return PretrainedWriter(model, family, origin, tokenizer)
    if isinstance(model, EncoderDecoder):
        tokenizer = tokenizer_or_error(MarianTokenizer.read, inside, model.source_vocab)
        return PretrainedTranslator(model, family, origin, tokenizer)
    settings = replace(sentences or SentenceSettings(), **options)
    settings = _checked_settings(settings, max_len, inside, model.config.max_len)
    origin = replace(
        origin,
        sentences=None if sentences is None else settings,
        unused_positions=_unused_positions(family, stated, state),
    )
    tokenizer = tokenizer_or_error(read_tokenizer, inside, model.vocab_size)
    return PretrainedEncoder(model, family, origin, tokenizer, settings, head, masked)


def _only_head(own: TrainedHead | None, dense: TrainedHead | None) -> TrainedHead | None:
    """Return the head that there is; ValueError if there are two."""
    if own is not None and dense is not None:
        raise ValueError("it has two heads, one of its own and one in modules.json; expected one")
    return own or dense


def _checked_settings(
    settings: SentenceSettings, max_len: int | None, folder: Path, n_positions: int
) -> SentenceSettings:
    """Check the settings of an encoder, and return them with the length of the longest text."""
    if max_len is not None:
        checks.whole("max_len", max_len, at_least=3, at_most=n_positions)
    checks.choice("pooling", settings.pooling, POOLINGS)
    checks.flag("normalize", settings.normalize)
    return replace(settings, max_len=max_len or _stated_length(folder, settings, n_positions))


def _unused_positions(family: Family, hf_config: Settings, state: Arrays) -> np.ndarray | None:
    """Return the rows of the table of positions that no token uses; None without a table."""
    for table in family.places([POSITIONS]):
        rows = state[table if table in state else family.prefix + table]
        n_unused = family.unused_positions(family.completed(hf_config))
        return rows[:n_unused].copy()
    return None


def _stated_length(folder: Path, settings: SentenceSettings, n_positions: int) -> int:
    """Return how many tokens a text may have: as the folder says, but at most one per position."""
    stated = read_json_if_there(folder / "tokenizer_config.json").get("model_max_length")
    if stated is not None:
        checks.number("model_max_length in tokenizer_config.json", stated, above=2.0)
    return int(min(n_positions, settings.max_len or stated or n_positions))
