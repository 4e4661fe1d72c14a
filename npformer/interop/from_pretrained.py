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
    check_folder,
    read_config,
    read_weights,
)
from npformer.interop.heads import TrainedHead, read_head
from npformer.interop.masked_head import read_masked_head
from npformer.interop.pretrained_encoder import PretrainedEncoder
from npformer.interop.sentences import (
    POOLINGS,
    SentenceSettings,
    module_paths,
    read_sentence_settings,
)
from npformer.interop.source_folder import SourceFolder, read_tokenizer_files, tokenizer_or_error
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
        None: float64 if the file has only float64, otherwise float32, also for 16 bits.
    pooling : {"mean", "first", "max"}, optional
        How `PretrainedEncoder.embed` turns a text's tokens into one vector. None: the pooling in
        the folder's files, or the mean.
    normalize : bool, optional
        Whether these vectors are scaled to norm 1. None: yes for sentence encoders, unless their
        modules.json has no Normalize.
    max_len : int, optional
        Maximum number of tokens of a text, with special tokens. None: the limit in the folder's
        files.
    padding : {"refuse", "per_length", "zero"}
        How FNet handles padding: see `EncoderConfig`. With "per_length" a text has the same vectors
        in every batch: those that transformers computes for the text alone.

    Returns
    -------
    pretrained : PretrainedEncoder, PretrainedWriter or PretrainedTranslator
        `PretrainedEncoder.embed` turns texts into vectors. GPT-2, Llama and Qwen3 become a
        `PretrainedWriter`, Marian a `PretrainedTranslator`, whose `generate` takes texts and
        returns texts. For these, leave out all arguments but `dtype`.

    Raises
    ------
    FileNotFoundError
        The folder, or a file in it, does not exist.
    ValueError
        The folder holds another type of model, weights in another format, or weights that do not
        fit config.json.
    """
    path = check_folder(folder)
    if dtype is not None:
        checks.choice("dtype", dtype, checks.FLOATS)
    sentences = read_sentence_settings(path)
    model_folder = module_paths(path).get(
        "Transformer", path
    )  # the encoder may have its own folder
    hf_config = read_config(model_folder)
    family = family_of(hf_config, str(model_folder / CONFIG))
    is_encoder = isinstance(family, EncoderFamily)
    arguments = {"pooling": pooling, "normalize": normalize, "max_len": max_len}
    sentence_arguments: dict[str, Any] = {
        name: value for name, value in arguments.items() if value is not None
    }
    if sentence_arguments and not is_encoder:
        raise ValueError(
            f"{min(sentence_arguments)} is given and {path} holds a model that writes; expected "
            "none, because it is only for vectors of texts"
        )
    state = read_weights(model_folder, dtype, hf_config)
    try:
        check_floats(state, family.buffers)
        model = family.read(hf_config, state, padding)
        head = read_head(family, hf_config, state) if is_encoder else None
        masked = read_masked_head(family, hf_config, state, model) if is_encoder else None
        if is_encoder and sentences is not None:
            dense = read_dense_head(path, hf_config, sentences.pooling, model)
            head = _only_head(head, dense)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{model_folder} cannot be read: {error}. (hf_config is its {CONFIG}, state its "
            "weights.)"
        ) from error
    source_folder = SourceFolder(str(path), hf_config, read_tokenizer_files(model_folder))
    if isinstance(model, LanguageModel):
        read = partial(read_tokenizer, padding=END_OF_TEXT)
        tokenizer = tokenizer_or_error(read, model_folder, model.vocab_size)
        return PretrainedWriter(model, family, source_folder, tokenizer)
    if isinstance(model, EncoderDecoder):
        tokenizer = tokenizer_or_error(MarianTokenizer.read, model_folder, model.source_vocab)
        return PretrainedTranslator(model, family, source_folder, tokenizer)
    settings = replace(sentences or SentenceSettings(), **sentence_arguments)
    settings = _check_settings(settings, max_len, model_folder, model.config.max_len)
    source_folder = replace(
        source_folder,
        sentences=None if sentences is None else settings,
        unused_positions=_read_unused_positions(family, hf_config, state),
    )
    tokenizer = tokenizer_or_error(read_tokenizer, model_folder, model.vocab_size)
    return PretrainedEncoder(model, family, source_folder, tokenizer, settings, head, masked)


def _only_head(head: TrainedHead | None, dense: TrainedHead | None) -> TrainedHead | None:
    """Return the head that is not None; ValueError if both are heads."""
    if head is not None and dense is not None:
        raise ValueError(
            "it has two heads, one in its weights and one in modules.json; expected one"
        )
    return head or dense


def _check_settings(
    settings: SentenceSettings, max_len: int | None, folder: Path, n_positions: int
) -> SentenceSettings:
    """Return the settings of an encoder with the maximum length of a text, after checking them."""
    if max_len is not None:
        checks.whole("max_len", max_len, at_least=3, at_most=n_positions)
    checks.choice("pooling", settings.pooling, POOLINGS)
    checks.flag("normalize", settings.normalize)
    return replace(settings, max_len=max_len or _read_max_len(folder, settings, n_positions))


def _read_unused_positions(family: Family, hf_config: Settings, state: Arrays) -> np.ndarray | None:
    """Return the rows of the position table that no token uses; None without a table."""
    for table in family.places([POSITIONS]):
        rows = state[table if table in state else family.prefix + table]
        n_unused = family.n_unused_positions(family.fill_defaults(hf_config))
        return rows[:n_unused].copy()
    return None


def _read_max_len(folder: Path, settings: SentenceSettings, n_positions: int) -> int:
    """Return the maximum length in a folder's files, but at most the number of positions."""
    max_len = read_json_if_there(folder / "tokenizer_config.json").get("model_max_length")
    if max_len is not None:
        checks.number("model_max_length in tokenizer_config.json", max_len, above=2.0)
    return int(min(n_positions, settings.max_len or max_len or n_positions))
