"""save_pretrained: a folder from which Hugging Face's transformers loads what was trained here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from npformer.core import a_type, checks
from npformer.data.tokenizers import LibraryTokenizer
from npformer.interop.architecture import POSITIONS, Architecture, Weights, values_of
from npformer.interop.dense_head import dense_files
from npformer.interop.families import FAMILIES
from npformer.interop.family import Family
from npformer.interop.folder import CONFIG, WEIGHTS, write_contents
from npformer.interop.heads import check_settings, head_config, head_for
from npformer.interop.masked_head import masked_head_for, with_second_names
from npformer.interop.origin import Origin, check_vocabulary, files_of
from npformer.interop.sentences import SentenceSettings, sentence_files
from npformer.models.trainable import (
    EncoderDecoder,
    LanguageModel,
    MaskedLanguageModel,
    SequenceClassifier,
)
from npformer.models.trainable.text_encoder import TextEncoder


def save_pretrained(
    model: TextEncoder | SequenceClassifier | MaskedLanguageModel | LanguageModel | EncoderDecoder,
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

    ``AutoModelForMaskedLM`` loads a `MaskedLanguageModel`. A `LanguageModel` becomes a folder of
    GPT-2, Llama or Qwen3, and an `EncoderDecoder` one of Marian, if its settings are those of that
    model; then only `folder` and `overwrite` apply.

    A model that was made from a `PretrainedEncoder` is better written by its `save`, which keeps
    the rest of its folder.

    Parameters
    ----------
    model : TextEncoder, SequenceClassifier, MaskedLanguageModel, LanguageModel or EncoderDecoder
        With settings that one of the families has: those of BERT, for example, are
        ``norm="post", positions="learned", scale_embeddings=False, embedding_norm=True,
        n_token_types=2``.
    folder : str or path
        Created if it does not exist.
    tokenizer : LibraryTokenizer, optional
    classes : sequence, optional
        The names of the classes.
    architecture : str, optional
        The family, such as "roberta"; None: the first one that fits.
    head : bool
        Whether to write the model's head, too. Without it, `model` may have any pooling.
    overwrite : bool
        Whether to replace existing files.

    Raises
    ------
    ValueError
        transformers has no such model; the message says which setting is in the way.
    FileExistsError
        The folder has such files, and `overwrite` is False.
    """
    family, origin = _family_for(model, architecture), Origin()
    if isinstance(model, LanguageModel | EncoderDecoder):
        if tokenizer is not None or classes is not None or head is not True:
            raise ValueError(
                "a model that writes is saved with its settings and weights alone; expected only "
                "folder and overwrite. The save method of what npformer.from_pretrained returned "
                "keeps the tokenizer's files"
            )
    elif tokenizer is not None:
        checks.instance("tokenizer", tokenizer, LibraryTokenizer)
        check_vocabulary(tokenizer, model.vocab_size or 0)
        files = files_of(tokenizer, model.config.max_len, family.token_types)
        origin = Origin("", {"pad_token_id": tokenizer.padding_id}, files)
    write_folder(model, folder, family, origin, classes, head=head, overwrite=overwrite)


def write_folder(
    model: Any,
    folder: str | os.PathLike[str],
    family: Family,
    origin: Origin,
    classes: Sequence[object] | None = None,
    *,
    head: bool = True,
    overwrite: bool = False,
    others: Weights | None = None,
) -> None:
    """Write a model in a family's layout.

    `others` are parameters that the family's encoder has and the model lacks.
    """
    from safetensors.numpy import save

    checks.flag("head", head)
    checks.flag("overwrite", overwrite)
    path = checks.path("folder", folder)
    config = family.config_of(model, origin.hf_config)
    stored: Architecture = family
    files = dict(origin.tokenizer_files)
    if isinstance(model, SequenceClassifier) and head:
        classifier_head = head_for(family, model)
        check_settings(family, classifier_head, config)
        config |= head_config(family, classifier_head, model, classes)
        if classifier_head.task:
            stored = family.with_head(classifier_head)
        else:  # transformers has no class for it, and sentence-transformers has a module
            files |= _files_of_dense_head(model, origin)
    elif classes is not None:
        raise ValueError("classes is given, but no head is written; expected None")
    elif isinstance(model, MaskedLanguageModel) and head:
        masked_head, settings_of_head = masked_head_for(family, config, model)
        config |= settings_of_head
        stored = family.with_head(masked_head)
    elif origin.sentences is not None:
        files |= sentence_files(origin.sentences, model.config.d_model)
    arrays = stored.theirs({**(others or {}), **values_of(model)})
    if isinstance(model, MaskedLanguageModel) and head:
        arrays = with_second_names(arrays, family, masked_head)
    if n_unused := family.unused_positions(config):
        (name,) = stored.places([POSITIONS])
        unused = origin.unused_positions
        if unused is None:
            unused = np.zeros((n_unused, model.config.d_model))
        arrays[name] = np.concatenate([unused.astype(model.dtype), arrays[name]])
    weights = bytes(save(arrays, metadata={"format": "pt"}))
    write_contents(path, {WEIGHTS: weights, **files, CONFIG: config}, overwrite)


def _files_of_dense_head(model: SequenceClassifier, origin: Origin) -> dict[str, Any]:
    """Return {name: content} of the files that sentence-transformers reads a classifier from."""
    settings = origin.sentences or SentenceSettings(max_len=model.config.max_len)
    settings = replace(settings, pooling=model.pooling, normalize=False)
    return sentence_files(settings, model.config.d_model, dense=True) | dense_files(model)


def _family_for(model: Any, name: str | None) -> Family:
    """Return the family with a name, or the first one that a model fits."""
    families = [family for family in FAMILIES.values() if isinstance(model, family.models)]
    if not families:
        raise TypeError(
            f"model is {a_type(model)}; expected a TextEncoder, a SequenceClassifier, a "
            "MaskedLanguageModel, a LanguageModel or an EncoderDecoder"
        )
    if name is not None:
        checks.choice("architecture", name, [family.model_type for family in families])
        return FAMILIES[name]

    def distance(family: Family) -> tuple[int, bool]:
        """0 for a family that fits; of the others, those with its mixer are nearer."""
        own = set(model.config.mixers()) == {family.fixed["mixer"]}
        return len(family.foreign(model)), not own

    return min(families, key=distance)
