"""fill: the words that a masked language model puts in place of [MASK]."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.data.tokenizers import Tokenizer
from npformer.models.trainable import MaskedLanguageModel
from npformer.training.storage.models import checkpoint_name, load

CONFIG = "config.json"
"""Every folder in Hugging Face's layout has it, and no run of npformer."""


def fill(
    model: Any, text: str, k: int = 5, *, tokenizer: Tokenizer | None = None
) -> list[list[tuple[str, float]]]:
    """Return the k likeliest words for each [MASK] of a text, with their probabilities.

    Parameters
    ----------
    model : MaskedLanguageModel, an estimator or a pretrained model with one inside, or a path
        A path is that of a file or a folder that npformer wrote, or of a folder in Hugging Face's
        layout.
    text : str
        With [MASK] in place of each word to guess, or what the tokenizer calls it. The words for
        several of them are guessed independently of each other.
    k : int
    tokenizer : Tokenizer, optional
        Needed for a model alone; other objects bring their own.

    Returns
    -------
    words : list of list of (str, float)
        A list for each [MASK], from the likeliest word on. The probabilities are among all ids;
        special ones are not shown.

    Examples
    --------
    >>> npformer.fill("films", "the film was [MASK]", k=2)
    [[('good', 0.06), ('funny', 0.05)]]
    """
    checks.text("text", text)
    k = checks.positive("k", k)
    estimator = open_model(model) if isinstance(model, str | os.PathLike) else model
    pretrained = getattr(estimator, "masked_language_model", None)
    inside = pretrained() if pretrained else getattr(estimator, "model", estimator)
    advice = "npformer pretrain, TextFiller().fit(texts) and npformer.from_pretrained make some"
    checks.instance("model", inside, MaskedLanguageModel, advice)
    own_tokenizer = getattr(estimator, "tokenizer_", getattr(estimator, "tokenizer", None))
    named: Any = own_tokenizer if tokenizer is None else tokenizer
    advice = "Pass that of the model's training: fill(model, text, tokenizer=...)"
    checks.instance("tokenizer", named, Tokenizer, advice)
    if named.vocab_size > inside.vocab_size or named.mask_id != inside.mask_id:
        raise ValueError(
            f"the tokenizer has {named.vocab_size} ids and the mask_id {named.mask_id}, the model "
            f"{inside.vocab_size} and {inside.mask_id}; expected that of the model's training"
        )
    ids, word = np.array(named.ids(text), dtype="int64"), named.token(inside.mask_id)
    places, most = np.flatnonzero(ids == inside.mask_id), inside.config.max_len
    if not len(places) or len(ids) > most:
        raise ValueError(
            f"text has {len(ids)} tokens and {len(places)} times {word}; expected at most {most} "
            f"tokens, with {word} in place of each word to guess: 'the film was {word}'"
        )
    mask = np.ones((1, len(ids)), dtype=bool) if inside.expects_mask else None
    p = inside.predict_probabilities(ids[None], mask)[0, places]  # [masks, vocab_size]
    hidden = [*inside.masking().special_ids, *named.ids_without_token(inside.vocab_size)]
    shown = np.delete(np.arange(inside.vocab_size), hidden)
    best = shown[np.argsort(-p[:, shown], axis=1, kind="stable")[:, :k]].tolist()
    return [
        [(named.token(id).removeprefix("\u0120"), float(row[id])) for id in best_ids]
        for row, best_ids in zip(p, best, strict=True)
    ]


def open_model(place: str | os.PathLike[str]) -> Any:
    """Return the model in a file, in a run's folder, or in a folder of Hugging Face's layout."""
    path = checks.path("model", place)
    if not path.exists():
        raise FileNotFoundError(
            f"{path} does not exist; expected a folder or a file that npformer wrote, or a folder "
            "in Hugging Face's layout"
        )
    if (path / CONFIG).exists():
        from npformer import interop  # when needed

        return interop.from_pretrained(path)
    return load(path / checkpoint_name() if path.is_dir() else path)
