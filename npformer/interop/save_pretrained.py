"""save_pretrained: a folder from which Hugging Face's transformers loads what was trained here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from npformer.core import a_type, checks
from npformer.data.tokenizers import LibraryTokenizer
from npformer.interop.architecture import (
    ARCHITECTURES,
    POSITIONS,
    Architecture,
    their_layout,
)
from npformer.interop.dense_head import dense_files
from npformer.interop.folder import CONFIG, OF_A_FILE, WEIGHTS, write_contents
from npformer.interop.heads import head_config, head_for
from npformer.interop.huggingface import values_of
from npformer.interop.origin import Origin, check_vocabulary, files_of
from npformer.interop.sentences import SentenceSettings, sentence_files
from npformer.interop.settings import check_fits, foreign_settings, their_settings
from npformer.interop.writers import FAMILIES, write_writer
from npformer.training.trainable import EncoderDecoder, LanguageModel, SequenceClassifier
from npformer.training.trainable.text_encoder import TextEncoder

OF_A_HEAD = ("architectures", "id2label", "label2id", "problem_type")
"""Keys of config.json that belong to a head."""


def save_pretrained(
    model: TextEncoder | SequenceClassifier | LanguageModel | EncoderDecoder,
    folder: str | os.PathLike[str],
    *,
    tokenizer: LibraryTokenizer | None = None,
    classes: Sequence[object] | None = None,
    architecture: str | None = None,
    head: bool = True,
    overwrite: bool = False,
) -> None:
    """Write a model as transformers does: config.json, model.safetensors and the tokenizer's files.

    ``transformers.AutoModel.from_pretrained(folder)`` then loads a `TextEncoder`, and
    ``AutoModelForSequenceClassification`` a `SequenceClassifier` with ``pooling="pooler"``, or
    ``AutoModelForTokenClassification`` one with ``pooling="none"``. For "mean", "first" and "max"
    transformers has no class with a head: there `AutoModel` loads the encoder, and
    ``sentence_transformers.SentenceTransformer`` computes the logits, by a Dense after its Pooling.

    A `LanguageModel` becomes a folder of GPT-2, and an `EncoderDecoder` one of Marian, if its
    settings are those of that model; then only `folder` and `overwrite` apply.

    A model that was made from a `PretrainedEncoder` is better written by its `save`, which keeps
    the rest of its folder.

    Parameters
    ----------
    model : TextEncoder, SequenceClassifier, LanguageModel or EncoderDecoder
        With settings that one of the families has: those of BERT, for example, are
        ``norm="post", positions="learned", scale_embeddings=False, embedding_norm=True,
        n_token_types=2``.
    folder : str or path
        Created if it does not exist.
    tokenizer : LibraryTokenizer, optional
    classes : sequence, optional
        The names of the classes.
    architecture : str, optional
        A name in `ARCHITECTURES`, such as "roberta"; None: the first one that fits.
    head : bool
        Whether to write the classifier's head, too. Without it, `model` may have any pooling.
    overwrite : bool
        Whether to replace existing files.

    Raises
    ------
    ValueError
        transformers has no such model; the message says which setting is in the way.
    FileExistsError
        The folder has such files, and `overwrite` is False.
    """
    if isinstance(model, LanguageModel | EncoderDecoder):
        given = tokenizer, classes, architecture
        if any(each is not None for each in given) or head is not True:
            raise ValueError(
                "a model that writes is saved with its settings and weights alone; expected only "
                "folder and overwrite. The save method of what npformer.from_pretrained returned "
                "keeps the tokenizer's files"
            )
        family = FAMILIES["gpt2" if isinstance(model, LanguageModel) else "marian"]
        write_writer(model, folder, family, {}, {}, overwrite=overwrite)
        return
    _check_kind(model)
    chosen = _architecture_for(model, architecture)
    files: dict[str, Any] = {}
    padding_id = getattr(model, "padding_id", None)
    if tokenizer is not None:
        checks.instance("tokenizer", tokenizer, LibraryTokenizer)
        check_vocabulary(tokenizer, model.vocab_size or 0)
        padding_id = tokenizer.padding_id
        files = files_of(tokenizer, model.config.max_len, chosen.token_types)
    origin = Origin(hf_config={} if padding_id is None else {"pad_token_id": padding_id})
    write_folder(model, folder, chosen, origin, files, classes, head=head, overwrite=overwrite)


def write_folder(
    model: TextEncoder | SequenceClassifier,
    folder: str | os.PathLike[str],
    architecture: Architecture,
    origin: Origin,
    files: Mapping[str, Any],
    classes: Sequence[object] | None = None,
    *,
    head: bool = True,
    overwrite: bool = False,
    others: Mapping[str, Any] | None = None,
) -> None:
    """Write a model in a family's layout.

    `files` are further files: bytes, or content for JSON. `others` are parameters that the family's
    encoder has and the model lacks.
    """
    from safetensors.numpy import save

    checks.flag("head", head)
    checks.flag("overwrite", overwrite)
    path = checks.path("folder", folder)
    _check_kind(model)
    found = foreign_settings(architecture, model.config)
    if model.vocab_size is None:
        found.append("feature vectors instead of token ids")
    check_fits(architecture, found)
    before = origin.hf_config
    config = {key: v for key, v in before.items() if key not in (*OF_A_HEAD, *OF_A_FILE)}
    config |= their_settings(architecture, model.config)
    config |= {"vocab_size": int(model.vocab_size or 0), "dtype": model.dtype}
    if config.get("pad_token_id") is None:
        own = model.config.position_padding_id
        config["pad_token_id"] = architecture.defaults["pad_token_id"] if own is None else own
    config[architecture.settings["max_len"]] += (unused := architecture.unused_positions(config))
    config["architectures"] = [architecture.class_name()]
    stored, more = architecture, dict(files)
    if isinstance(model, SequenceClassifier) and head:
        chosen = head_for(architecture, model)
        config |= head_config(architecture, chosen, model, classes)
        if chosen.task:
            stored = architecture.with_head(chosen)
        else:  # transformers has no class for it, and sentence-transformers has a module
            settings = origin.sentences or SentenceSettings(max_len=model.config.max_len)
            settings = replace(settings, pooling=model.pooling, normalize=False)
            more |= sentence_files(settings, model.config.d_model, dense=True) | dense_files(model)
    elif classes is not None:
        raise ValueError("classes is given, but no head is written; expected None")
    elif origin.sentences is not None:
        more |= sentence_files(origin.sentences, model.config.d_model)
    values = {**(others or {}), **values_of(model)}
    places = stored.places(values)
    theirs = their_layout(places, values)
    if unused:  # rows that no token uses
        name, first = places[POSITIONS].key, origin.unused_positions
        if first is None:
            first = np.zeros((unused, theirs[name].shape[1]))
        theirs[name] = np.concatenate([first.astype(theirs[name].dtype), theirs[name]])
    weights = bytes(save(theirs, metadata={"format": "pt"}))
    write_contents(path, {WEIGHTS: weights, **more, CONFIG: config}, overwrite)


def _architecture_for(model: TextEncoder | SequenceClassifier, name: str | None) -> Architecture:
    """Return the family with a name, or the first one that a model fits."""
    if name is not None:
        checks.choice("architecture", name, ARCHITECTURES)
        return ARCHITECTURES[name]
    fitting = [a for a in ARCHITECTURES.values() if not foreign_settings(a, model.config)]
    nearest = "fnet" if set(model.config.mixers()) == {"fourier"} else "bert"
    return fitting[0] if fitting else ARCHITECTURES[nearest]


def _check_kind(model: object) -> None:
    if not isinstance(model, TextEncoder | SequenceClassifier):
        raise TypeError(
            f"model is {a_type(model)}; expected a TextEncoder, a SequenceClassifier, a "
            "LanguageModel or an EncoderDecoder"
        )
