"""Explanation: which words of a text spoke for its label, and which against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.core import array_module, to_numpy
from npformer.core.support.tables import align_columns
from npformer.data.tokenizers.word_places import WordPlaces
from npformer.models.losses import SoftmaxCrossEntropy
from npformer.models.trainable import SequenceClassifier
from npformer.tasks.wide import WideSequenceClassifier
from npformer.tasks.wide.evidence import evidence_for, strongest

WIDE = """\
Numbers are what words and pairs of neighbours add to the logit of {label}, minus the mean
of what they add to the others. The encoder, which reads the words in order, says
{label} with probability {encoder:.3f}; words and pairs alone, {words:.3f}."""

LEFT_OUT = """\
Numbers are by how much the log odds of {label} fall if a word is left out."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a text got its label; printed, it is a table.

    Attributes
    ----------
    text : str
    label : str, int or bool
        The most probable class.
    probabilities : dict of label to float
        Of all classes.
    values : dict of str to float
        What each word, and with a wide part each known pair of words, adds to the label: in nats,
        positive if it speaks for the label.
    note : str
        What the numbers are.
    """

    text: str
    label: Any
    probabilities: dict[Any, float]
    values: dict[str, float]
    note: str

    def __str__(self) -> str:
        """Return the label, the words for it and against it, and what the numbers are."""
        by_probability = sorted(self.probabilities.items(), key=lambda item: -item[1])
        answers = ", ".join(f"{label} {p:.3f}" for label, p in by_probability[:3])
        pro, contra = strongest(self.values)
        rows = [[f"for {self.label}", "", "against it", ""]]
        for i in range(max(len(pro), len(contra), 1)):
            rows.append([*_cells(pro, i), *_cells(contra, i)])
        table = align_columns(rows, "<><>")
        return "\n".join([self.text, f"{self.label}: {answers}", "", *table, "", self.note])

    __repr__ = __str__


def _cells(ranked: Sequence[tuple[str, float]], i: int) -> list[str]:
    """Return the word at a place of a list, and what it adds; "" behind the end."""
    if i >= len(ranked):
        return ["nothing" if i == 0 else "", ""]
    word, value = ranked[i]
    return [word, f"{value:+.2f}"]


def explain_text(
    text: str,
    x: np.ndarray,
    mask: np.ndarray,
    words: WordPlaces,
    models: Sequence[SequenceClassifier],
    classes: Sequence[Any],
) -> Explanation:
    """Return why models, whose probabilities are averaged, give a text its label.

    Parameters
    ----------
    text : str
    x, mask : array, shape (1, length)
        Its ids.
    words : WordPlaces
        Its words, with the places of their tokens.
    models : sequence of SequenceClassifier
    classes : sequence
        The labels.
    """
    p = np.mean([model.predict_probabilities(x, mask)[0] for model in models], axis=0)
    answer = int(p.argmax())
    wide_models = [model for model in models if isinstance(model, WideSequenceClassifier)]
    if wide_models:
        values = _mean_of([_added(model, x, mask, answer, words) for model in wide_models])
        encoder, of_words = np.mean(
            [_both(model, x, mask, answer) for model in wide_models], axis=0
        )
        note = WIDE.format(label=classes[answer], encoder=encoder, words=of_words)
    else:
        values = _mean_of([_lost(model, x, mask, answer, words) for model in models])
        note = LEFT_OUT.format(label=classes[answer])
    return Explanation(
        text, classes[answer], dict(zip(classes, p.tolist(), strict=True)), values, note
    )


def _mean_of(values_of_models: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the mean of what each word adds in several models; one without it adds 0."""
    names = dict.fromkeys(name for values in values_of_models for name in values)
    n = len(values_of_models)
    return {name: sum(v.get(name, 0.0) for v in values_of_models) / n for name in names}


def _added(
    model: WideSequenceClassifier, x: np.ndarray, mask: np.ndarray, answer: int, words: WordPlaces
) -> dict[str, float]:
    """Return what each word and pair adds to a class in the wide part of a model."""
    xp = array_module(model.wide.weight.value)
    return evidence_for(model.wide, xp.asarray(x), xp.asarray(mask), np.array([answer]), [words])[0]


def _both(
    model: WideSequenceClassifier, x: np.ndarray, mask: np.ndarray, answer: int
) -> list[float]:
    """Return the probability of a class in the encoder's answer, and in that of the words."""
    outputs = model.predict_in_batches(to_numpy, x, mask)[0]  # [2, n_classes]
    return SoftmaxCrossEntropy().probabilities(outputs)[:, answer].tolist()  # type: ignore[no-any-return]


def _lost(
    model: SequenceClassifier, x: np.ndarray, mask: np.ndarray, answer: int, words: WordPlaces
) -> dict[str, float]:
    """Return by how much the log odds of a class fall if each word is left out.

    A word that occurs several times is left out everywhere at once. Without its only word there is
    no text, so that has no number.
    """
    places_of_word: dict[str, list[int]] = {}
    for word, places in words:
        places_of_word.setdefault(word, []).extend(places)
    if len(places_of_word) < 2:
        return {}
    masks = np.repeat(mask, 1 + len(places_of_word), axis=0)
    for row, places in enumerate(places_of_word.values(), start=1):
        masks[row, places] = False
    p = model.predict_probabilities(np.repeat(x, len(masks), axis=0), masks)[:, answer]
    p = np.clip(p.astype("float64"), 1e-12, 1.0 - 1e-12)
    log_odds = np.log(p) - np.log1p(-p)
    return dict(zip(places_of_word, (log_odds[0] - log_odds[1:]).tolist(), strict=True))
