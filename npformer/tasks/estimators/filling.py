"""fill: the words that a masked language model puts in place of [MASK]."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from npformer.core import checks, to_numpy
from npformer.data.tokenizers import Tokenizer
from npformer.training.storage.models import checkpoint_name, load
from npformer.training.trainable import MaskedLanguageModel

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
    found = opened(model) if isinstance(model, str | os.PathLike) else model
    inside = getattr(found, "model", found)
    advice = "npformer pretrain, TextFiller().fit(texts) and npformer.from_pretrained make some"
    checks.instance("model", inside, MaskedLanguageModel, advice)
    if tokenizer is None:
        tokenizer = getattr(found, "tokenizer_", None) or getattr(found, "tokenizer", None)
    advice = "Pass that of the model's training: fill(model, text, tokenizer=...)"
    checks.instance("tokenizer", tokenizer, Tokenizer, advice)
    ids = _checked_ids(inside, tokenizer, text)
    places = np.flatnonzero(ids == inside.mask_id)
    mask = np.ones((1, len(ids)), dtype=bool) if inside.expects_mask else None
    p = inside.loss.probabilities(inside(ids[None], mask=mask)[0])[places]  # [masks, vocab_size]
    shown = np.delete(np.arange(inside.vocab_size), inside.masking().special())
    best = shown[np.argsort(-p[:, shown], axis=1, kind="stable")[:, :k]]
    return [
        [(tokenizer.token(int(id)).removeprefix("\u0120"), float(row[id])) for id in some]
        for row, some in zip(to_numpy(p), best, strict=True)
    ]


def opened(place: str | os.PathLike[str]) -> Any:
    """Return the model in a file, in a run's folder, or in a folder of Hugging Face's layout."""
    path = checks.path("model", place)
    if (path / CONFIG).exists():
        from npformer import interop  # when needed

        return interop.from_pretrained(path)
    return load(path / checkpoint_name() if path.is_dir() else path)


def _checked_ids(model: MaskedLanguageModel, tokenizer: Any, text: str) -> np.ndarray:
    """Return the ids of a text, after checking that it has something to guess and is not long."""
    if tokenizer.vocab_size > model.vocab_size or tokenizer.mask_id != model.mask_id:
        raise ValueError(
            f"the tokenizer has {tokenizer.vocab_size} ids, and the mask_id {tokenizer.mask_id}; "
            f"the model has {model.vocab_size} and {model.mask_id}. Expected the tokenizer with "
            "which the model was trained"
        )
    ids = np.array(tokenizer.ids(text), dtype="int64")
    word = tokenizer.token(model.mask_id)
    if model.mask_id not in ids:
        raise ValueError(
            f"text has no {word}: {text!r}; expected one in place of each word to guess, such as "
            f"'the film was {word}'"
        )
    if len(ids) > (most := model.config.max_len):
        raise ValueError(
            f"text has {len(ids)} tokens; expected at most {most}, the most that this model reads"
        )
    return ids
