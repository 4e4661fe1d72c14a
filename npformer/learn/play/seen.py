"""What a model says about one sample, in values that a page shows without computing anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.core import to_numpy
from npformer.data.tokenizers import Tokenizer, WordTokenizer
from npformer.layers import CrossAttention
from npformer.learn.play.questions.tensors import MOST, tensor
from npformer.mixers import Mixer
from npformer.models.losses import Classification
from npformer.training.generation.choosing import softmax
from npformer.training.inspection import explain
from npformer.training.inspection.trace import trace
from npformer.training.trainable import EncoderDecoder, LanguageModel, SequenceClassifier

SIDE = MOST[1]
"""The most tokens in a picture of what tokens take from each other."""

CANDIDATES = 12

LEFT_OUT = (0, 1, 2)
"""Ids in pairs that are not tokens: padding, beginning and end."""


@dataclass(frozen=True)
class Names:
    """What tokens and classes are called; without a name they are numbers.

    Attributes
    ----------
    tokens : list of str, optional
        By id: those of the source, for pairs.
    classes : list of str, optional
    targets : list of str, optional
        Tokens of the other side of pairs.
    tokenizer : Tokenizer, optional
        What turns texts into ids; it gives `tokens` if they are not given.
    """

    tokens: list[str] | None = None
    classes: list[str] | None = None
    targets: list[str] | None = None
    tokenizer: Tokenizer | None = None

    def __post_init__(self) -> None:
        if self.tokens is None and self.tokenizer is not None:
            ids = range(self.tokenizer.vocab_size)
            object.__setattr__(self, "tokens", self.tokenizer.tokens(ids))

    def words(self, ids: Any, *, targets: bool = False) -> list[str]:
        """Return the names of some ids."""
        names = self.targets or self.tokens if targets else self.tokens
        return [str(int(id)) if names is None else names[int(id)] for id in ids]

    def text(self, ids: Any) -> str:
        """Return ids as a text, as the tokenizer decodes them; parts of words are left out."""
        if isinstance(self.tokenizer, WordTokenizer):
            parts = set(self.tokenizer.parts())
            return " ".join(self.words(id for id in ids if int(id) not in parts))
        if self.tokenizer is not None:
            return self.tokenizer.decode([int(id) for id in ids])
        return " ".join(self.words(ids))

    def said(self, ids: Any, *, targets: bool = False) -> str:
        """Return one side of a pair; letters have no spaces between them."""
        kept = [id for id in np.asarray(to_numpy(ids)).tolist() if id not in LEFT_OUT]
        words = self.words(kept, targets=targets)
        return ("" if all(len(word) == 1 for word in words) else " ").join(words)

    def label(self, y: Any, model: Any) -> str | None:
        """Return the right answer: a class (the last token's if each has one), or a target."""
        if isinstance(model, EncoderDecoder):
            return self.said(y, targets=True)
        if not isinstance(model, SequenceClassifier):
            return None
        y = np.ravel(np.asarray(to_numpy(y)))[-1]
        if y.dtype.kind == "f":
            return f"{float(y):.4g}"
        return str(int(y)) if self.classes is None else self.classes[int(y)]


def answer_of(model: Any, x: np.ndarray, y: Any, names: Names) -> dict[str, Any]:
    """Return what a model says about a sample: `says`, `items` with probabilities, and `groups`.

    Each group has a title, names of rows and columns, and the matrices of some layers.
    """
    if isinstance(model, LanguageModel):
        return _next_token(model, x, names)
    if isinstance(model, EncoderDecoder):
        return _translation(model, x, names)
    found: dict[str, Any] = {"says": None, "items": [], "groups": []}
    x = x.astype(model.dtype) if x.dtype.kind == "f" else x
    if isinstance(model, SequenceClassifier) and not isinstance(model.loss, Classification):
        y = np.ravel(to_numpy(model(x[None]))).tolist()
        found["says"] = f"The model says {', '.join(f'{each:.4g}' for each in y)}."
    elif isinstance(model, SequenceClassifier):
        p = np.atleast_2d(to_numpy(model.predict_probabilities(x[None]))[0])[-1]
        found["items"] = _items(p, names.classes)
        best = next(each["name"] for each in found["items"] if each["best"])
        found["says"] = f"The model says {best}."
    words = names.words(x[:SIDE]) if x.ndim == 1 else [f"token {t + 1}" for t in range(len(x))]
    found["groups"] = [_group(None, matrices_of(model, x[None]), words, words)]
    return found


def _next_token(model: LanguageModel, x: np.ndarray, names: Names) -> dict[str, Any]:
    x = x[: min(SIDE // 2, model.config.max_len)]
    p = softmax(np.asarray(to_numpy(model(x[None])))[:, -1].astype("float64"))[0]
    words = names.words(x)
    best = np.argsort(-p)[:CANDIDATES]
    return {
        "says": "What comes next, according to the model:",
        "items": _items(p[best], names.words(best)),
        "groups": [_group(None, matrices_of(model, x[None]), words, words)],
    }


def _translation(model: EncoderDecoder, x: np.ndarray, names: Names) -> dict[str, Any]:
    x = x[x != LEFT_OUT[0]]
    most = min(SIDE // 2, model.config.max_len - 1)  # one less, for the token of the beginning
    written = [int(id) for id in model.generate(x[None], max_len=most)[0]]
    target = np.array([[1, *written]])
    source_words, target_words = names.words(x), ["begin", *names.words(written, targets=True)]
    found = matrices_of(model, (x[None], target))
    across = [each for each in found if isinstance(each[0].layer, CrossAttention)]
    itself = [each for each in found if not isinstance(each[0].layer, CrossAttention)]
    encoder, decoder = (
        [each for each in itself if each[0].name.startswith(side)] for side in ("enc", "dec")
    )
    groups = [
        _group(
            "The encoder: what the source takes from itself", encoder, source_words, source_words
        ),
        _group(
            "The decoder: what the target takes from what comes before",
            decoder,
            target_words,
            target_words,
        ),
        _group("Across: what the target takes from the source", across, target_words, source_words),
    ]
    says = f"The model writes {names.said(written, targets=True)}."
    return {"says": says, "items": [], "groups": groups}


def matrices_of(model: Any, x: Any) -> list[tuple[Any, np.ndarray]]:
    """Return the calls of a model's mixers and cross-attentions, each with its matrices."""
    found = []
    for call in trace(model, x):
        if isinstance(call.layer, Mixer | CrossAttention):
            found.append((call, np.asarray(to_numpy(explain.matrices_of(call)))[0]))
    return found


def _group(
    title: str | None, found: Sequence[Any], rows: list[str], columns: list[str]
) -> dict[str, Any]:
    mixing = [
        {"layer": k, "kind": type(call.layer).__name__, "heads": tensor(call.name, matrices)}
        for k, (call, matrices) in enumerate(found)
    ]
    return {"title": title, "rows": rows, "columns": columns, "mixing": mixing}


def _items(p: np.ndarray, names: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return probabilities with their names, the largest marked; of many classes, only some."""
    few = len(p) <= CANDIDATES
    shown = range(len(p)) if few else np.argsort(-p, kind="stable")[:CANDIDATES].tolist()
    best = int(np.argmax(p))
    return [{"name": _visible(k, names), "p": float(p[k]), "best": k == best} for k in shown]


def _visible(k: int, names: Sequence[str] | None) -> str:
    """Return a name with its white space made visible."""
    name = str(k) if names is None else names[k]
    return name.replace(" ", "\u2423").replace("\n", "\u21b5")


def plain(value: Any) -> Any:
    """Return a NumPy number as Python's."""
    return value.item() if isinstance(value, np.generic) else value
