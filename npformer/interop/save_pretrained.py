"""save_pretrained: write a trained model as a folder that Hugging Face's transformers loads."""

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
from npformer.interop.heads import check_settings, choose_head, head_config
from npformer.interop.masked_head import add_second_names, find_masked_head
from npformer.interop.sentences import SentenceSettings, sentence_files
from npformer.interop.source_folder import SourceFolder, check_vocabulary, files_of
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

    ``transformers.AutoModel.from_pretrained(folder)`` then loads a `TextEncoder`,
    ``AutoModelForSequenceClassification`` a `SequenceClassifier` with ``pooling="pooler"``, and
    ``AutoModelForTokenClassification`` one with ``pooling="none"``. For "mean", "first" and "max"
    transformers has no class with a head: `AutoModel` loads the encoder, and
    ``sentence_transformers.SentenceTransformer`` computes the logits, by a Dense after Pooling.

    ``AutoModelForMaskedLM`` loads a `MaskedLanguageModel`. A `LanguageModel` becomes a folder of
    GPT-2, Llama or Qwen3, and an `EncoderDecoder` a folder of Marian, if its settings are possible
    there; then only `folder` and `overwrite` apply.

    For a model made from a `PretrainedEncoder` use its `save`, which also writes the other files of
    its folder.

    Parameters
    ----------
    model : TextEncoder, SequenceClassifier, MaskedLanguageModel, LanguageModel or EncoderDecoder
        With the settings of one of the families. For example, BERT has
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
        Whether to write the model's head, too. If not, `model` may have any pooling.
    overwrite : bool
        Whether to replace existing files.

    Raises
    ------
    ValueError
        transformers has no such model; the message names the setting that prevents it.
    FileExistsError
        The folder has files with these names, and `overwrite` is False.
    """
    family = _choose_family(model, architecture)
    source_folder = SourceFolder()
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
        hf_config = {"pad_token_id": tokenizer.padding_id}
        source_folder = SourceFolder("", hf_config, files)
    write_folder(model, folder, family, source_folder, classes, head=head, overwrite=overwrite)


def write_folder(
    model: Any,
    folder: str | os.PathLike[str],
    family: Family,
    source_folder: SourceFolder,
    classes: Sequence[object] | None = None,
    *,
    head: bool = True,
    overwrite: bool = False,
    encoder_weights: Weights | None = None,
) -> None:
    """Write a model in a family's layout.

    `encoder_weights` may have parameters of the family's encoder that the model lacks.
    """
    from safetensors.numpy import save

    checks.flag("head", head)
    checks.flag("overwrite", overwrite)
    path = checks.path("folder", folder)
    config = family.config_of(model, source_folder.hf_config)
    layout: Architecture = family
    files = dict(source_folder.tokenizer_files)
    if isinstance(model, SequenceClassifier) and head:
        classifier_head = choose_head(family, model)
        check_settings(family, classifier_head, config)
        config |= head_config(family, classifier_head, model, classes)
        if classifier_head.task:
            layout = family.add_head(classifier_head)
        else:  # transformers has no class for it, but sentence-transformers has a module
            files |= _files_of_dense_head(model, source_folder)
    elif classes is not None:
        raise ValueError("classes is given, but no head is written; expected None")
    elif isinstance(model, MaskedLanguageModel) and head:
        masked_head, head_settings = find_masked_head(family, config, model)
        config |= head_settings
        layout = family.add_head(masked_head)
    elif source_folder.sentences is not None:
        files |= sentence_files(source_folder.sentences, model.config.d_model)
    arrays = layout.their_arrays({**(encoder_weights or {}), **values_of(model)})
    if isinstance(model, MaskedLanguageModel) and head:
        arrays = add_second_names(arrays, family, masked_head)
    n_unused = family.n_unused_positions(config)
    if n_unused:
        (name,) = layout.places([POSITIONS])
        rows = source_folder.unused_positions
        if rows is None:
            rows = np.zeros((n_unused, model.config.d_model))
        arrays[name] = np.concatenate([rows.astype(model.dtype), arrays[name]])
    weights = bytes(save(arrays, metadata={"format": "pt"}))
    write_contents(path, {WEIGHTS: weights, **files, CONFIG: config}, overwrite)


def _files_of_dense_head(model: SequenceClassifier, source_folder: SourceFolder) -> dict[str, Any]:
    """Return {name: content} of the files of a classifier for sentence-transformers."""
    settings = source_folder.sentences or SentenceSettings(max_len=model.config.max_len)
    settings = replace(settings, pooling=model.pooling, normalize=False)
    return sentence_files(settings, model.config.d_model, dense=True) | dense_files(model)


def _choose_family(model: Any, name: str | None) -> Family:
    """Return the family with a name; None: the first family that a model fits."""
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
        """Return the number of differences, and whether the mixer differs."""
        same_mixer = set(model.config.mixers()) == {family.fixed["mixer"]}
        return len(family.foreign(model)), not same_mixer

    return min(families, key=distance)
