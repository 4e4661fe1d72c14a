"""What a model says about one sample, in values that a page shows without computing anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.core import to_numpy
from npformer.data.tokenizers import Tokenizer, WordTokenizer
from npformer.layers import CrossAttention
from npformer.learn.play.tensors import MOST, tensor
from npformer.mixers import Mixer
from npformer.models.losses import Classification
from npformer.models.trainable import EncoderDecoder, LanguageModel, SequenceClassifier
from npformer.training.inspection.calls import Call
from npformer.training.inspection.explain import matrices_of
from npformer.training.inspection.trace import trace

SIDE = MOST[1]
"""The most tokens in a picture of attention weights."""

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
            object.__setattr__(self, "tokens", tokens_by_id(self.tokenizer))

    def words(self, ids: Any, *, targets: bool = False) -> list[str]:
        """Return the names of some ids."""
        names = self.targets or self.tokens if targets else self.tokens
        return [str(int(id)) if names is None else names[int(id)] for id in ids]

    def answer(self, k: int) -> str:
        """Return what output k of the model means: a class, or a token."""
        names = self.classes or self.targets or self.tokens
        return str(k) if names is None else names[k]

    def text(self, ids: Any) -> str:
        """Return ids as a text, as the tokenizer decodes them; parts of words are left out."""
        if isinstance(self.tokenizer, WordTokenizer):
            ngrams = set(self.tokenizer.ngram_ids())
            return " ".join(self.words(id for id in ids if int(id) not in ngrams))
        if self.tokenizer is not None:
            return self.tokenizer.decode([int(id) for id in ids])
        return " ".join(self.words(ids))

    def said(self, ids: Any, *, targets: bool = False) -> str:
        """Return one side of a pair; letters have no spaces between them."""
        left = [id for id in np.asarray(to_numpy(ids)).tolist() if id not in LEFT_OUT]
        words = self.words(left, targets=targets)
        return ("" if all(len(word) == 1 for word in words) else " ").join(words)

    def label(self, y: Any, model: Any) -> str | None:
        """Return the right answer: a class (the last token's if each has one), or a target."""
        if isinstance(model, EncoderDecoder):
            return self.said(y, targets=True)
        if not isinstance(model, SequenceClassifier):
            return None
        y = np.ravel(np.asarray(to_numpy(y)))[-1]
        return f"{float(y):.4g}" if y.dtype.kind == "f" else self.answer(int(y))


def tokens_by_id(tokenizer: Tokenizer) -> list[str]:
    """Return all tokens."""
    return tokenizer.tokens(range(tokenizer.vocab_size))


def estimator_names(estimator: Any) -> Names:
    """Return what the tokens and classes of an estimator are called."""
    if tokenizers := getattr(estimator, "tokenizers_", None):
        source, target = map(tokens_by_id, tokenizers)
        return Names(source, targets=target)
    classes = getattr(estimator, "classes_", None)
    named = None if classes is None else [str(label) for label in classes]
    return Names(classes=named, tokenizer=getattr(estimator, "tokenizer_", None))


def sample_to_show(
    model: Any, names: Names, i: int, x: np.ndarray, y: Any, text: str | None = None
) -> dict[str, Any]:
    """Return sample i without padding: its right answer, and its words and text, or its picture."""
    sample = {"index": i, "label": names.label(y, model), "shape": x.shape}
    if isinstance(model, EncoderDecoder):
        words = names.words(id for id in x if id not in LEFT_OUT)
        return sample | {"words": words, "text": names.said(x)}
    if x.ndim == 1:
        return sample | {"words": names.words(x), "text": text or names.text(x)}
    return sample | {"image": tensor(f"sample {i}", x)}


def answer_of(model: Any, x: np.ndarray, names: Names) -> dict[str, Any]:
    """Return what a model says about a sample: `says`, `items` with probabilities, and `groups`.

    Each group has a title, names of rows and columns, and the matrices of some layers.
    """
    if isinstance(model, EncoderDecoder):
        return _translation(model, x, names)
    answer: dict[str, Any] = {"says": None, "items": []}
    if writes := isinstance(model, LanguageModel):
        x = x[: min(SIDE // 2, model.config.max_len)]
    calls = trace(model, x[None].astype(model.dtype) if x.dtype.kind == "f" else x[None])
    if writes:
        answer["says"] = "What comes next, according to the model:"
        p = answer_probabilities(model, calls)
        best = np.argsort(-p, kind="stable")[:CANDIDATES]
        answer["items"] = _items(p[best], names.words(best))
    elif isinstance(model, SequenceClassifier) and not isinstance(model.loss, Classification):
        y = np.ravel(to_numpy(calls[0].output)).tolist()
        answer["says"] = f"The model says {', '.join(f'{item:.4g}' for item in y)}."
    elif isinstance(model, SequenceClassifier):
        answer["items"] = _items(answer_probabilities(model, calls), names.classes)
        likeliest = next(item["name"] for item in answer["items"] if item["best"])
        answer["says"] = f"The model says {likeliest}."
    words = names.words(x[:SIDE]) if x.ndim == 1 else [f"token {t + 1}" for t in range(len(x))]
    group = {"title": None, "rows": words, "columns": words, "mixing": mixing(calls)}
    return answer | {"groups": [group]}


def answer_probabilities(model: Any, calls: Sequence[Call]) -> np.ndarray:
    """Return the probabilities of the answers to the first sample of a pass; the last token's."""
    p: np.ndarray = to_numpy(model.loss.probabilities(calls[0].output))[0]
    return np.asarray(p.reshape(-1, p.shape[-1])[-1])


def _translation(model: EncoderDecoder, x: np.ndarray, names: Names) -> dict[str, Any]:
    x = x[x != LEFT_OUT[0]]
    most = min(SIDE // 2, model.config.max_len - 1)  # one less, for the token of the beginning
    written = [int(id) for id in model.generate(x[None], max_len=most)[0]]
    maps = attentions(model, (x[None], np.array([[1, *written]])))
    source, target = names.words(x), ["begin", *names.words(written, targets=True)]
    sides = {
        "encoder": ("The encoder: attention weights within the source", source, source),
        "decoder": ("The decoder: attention weights within the target", target, target),
        "cross": ("Cross-attention: weights of the source for the target", target, source),
    }
    groups = [
        {"title": title, "rows": rows, "columns": columns, "mixing": maps[side]}
        for side, (title, rows, columns) in sides.items()
    ]
    says = f"The model writes {names.said(written, targets=True)}."
    return {"says": says, "items": [], "groups": groups}


def mixing(calls: Iterable[Call]) -> list[dict[str, Any]]:
    """Return the matrices of the mixers and cross-attentions among the calls for one sample."""
    return [
        {
            "layer": call.name,
            "kind": type(call.layer).__name__,
            "heads": tensor(call.name, matrices_of(call)),
        }
        for call in calls
        if isinstance(call.layer, Mixer | CrossAttention)
    ]


def attentions(model: EncoderDecoder, x: Any) -> dict[str, list[dict[str, Any]]]:
    """Return the same for the encoder, the decoder, and "cross": what joins them."""
    maps: dict[str, list[dict[str, Any]]] = {"encoder": [], "decoder": [], "cross": []}
    for mixing_of_layer in mixing(trace(model, x)):
        cross = mixing_of_layer["kind"] == CrossAttention.__name__
        maps["cross" if cross else mixing_of_layer["layer"].partition(".")[0]].append(
            mixing_of_layer
        )
    return maps


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
