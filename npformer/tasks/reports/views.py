"""One sample in a report: its picture or its tokens, and what was predicted."""

from xml.etree.ElementTree import Element

import numpy as np

from npformer.data.samples import Batch
from npformer.tasks.reports.answers import Answers
from npformer.tasks.reports.elements import e
from npformer.tasks.reports.names import Glossary
from npformer.tasks.reports.png import data_address, shrink

MOST_TOKENS = 128
"""The most tokens of a sequence that are written out."""

SIDE = 128
"""Rows and columns of the largest picture."""


def sample_view(
    samples: Batch, i: int, called: Glossary, answers: Answers | None = None
) -> Element:
    """Return a picture of feature vectors, or the tokens by name.

    `answers` marks the tokens whose labels were predicted wrongly, if there is a label for each.
    """
    x = samples.inputs[0].x[i]
    kept = np.ones(len(x), dtype=bool)
    if samples.inputs[0].padding is not None:
        kept = np.asarray(samples.inputs[0].padding.on_host()[i])
    n = shown_length(kept)
    return _picture(x[:n], kept[:n]) if x.ndim == 2 else _tokens(samples, i, kept, called, answers)


def _picture(x: np.ndarray, kept: np.ndarray) -> Element:
    low, high = extent(x[kept])
    shown, known = shrink(x, np.broadcast_to(kept[:, None], x.shape), SIDE)
    address = data_address(shown, known, "ink", low, high)
    words = f"x: {len(x)} tokens as rows, {x.shape[1]} features as columns, {low:.3g} to {high:.3g}"
    wide = min(max(x.shape[1] / len(x), 0.25), 2.5)
    style = f"aspect-ratio: {wide:.3g}"
    return e(
        "figure",
        e("img", src=address, alt=words, title=words, style=style, class_=size_class(len(x))),
        e("figcaption", f"x: a row for each of {len(x)} tokens"),
    )


def _tokens(
    samples: Batch, i: int, kept: np.ndarray, called: Glossary, answers: Answers | None
) -> Element:
    ids, y = samples.inputs[0].x[i], np.asarray(samples.y)[i]
    items = []
    for place in range(min(shown_length(kept), MOST_TOKENS)):
        kind, label = "token", None
        if not kept[place]:
            kind = "token padding"
        elif y.ndim == 1 and y.dtype.kind in "iu" and y[place] >= 0:
            label = called.label(y[place])
            if answers is not None and answers.predicted is not None:
                predicted = answers.predicted[i, place]
                if predicted != y[place]:
                    kind, label = "token wrong", f"{label}, not {called.label(predicted)}"
        name = called.token(ids[place])
        items.append(
            e(
                "li",
                e("small", str(place)),
                e("b", name),
                None if label is None else e("i", label),
                class_=kind,
            )
        )
    left = shown_length(kept) - len(items)
    more = e("p", f"and {left} more tokens", class_="note") if left else None
    return e("div", e("ol", items, class_="tokens"), more, class_="tokens-box")


def shown_length(kept: np.ndarray) -> int:
    """Return how many tokens of a sample are shown: all but the padding after them."""
    return int(np.flatnonzero(kept).max(initial=0)) + 1


def answer(judged: Answers, i: int, called: Glossary) -> str:
    """Return a model's answer for a sample, and its loss, in words."""
    y = np.asarray(judged.samples.y)[i]
    loss = "" if np.isnan(judged.losses[i]) else f"loss {judged.losses[i]:.3g}"
    if judged.predicted is None or judged.probability is None:
        return loss
    if y.ndim == 1:
        wrong, of = int(judged.wrong()[i].sum()), int((y >= 0).sum())
        return f"{wrong} of {of} labels wrong, {loss}" if of else "no label"
    verdict = "right" if judged.predicted[i] == y else "wrong"
    said, p = called.label(judged.predicted[i]), judged.probability[i]
    return f"predicted {said} (p {p:.2f}), {verdict}, {loss}"


def target(judged: Answers, i: int, called: Glossary) -> str:
    """Return a sample's label in words; "" if it has one for each token."""
    y = np.asarray(judged.samples.y)[i]
    if judged.predicted is not None:
        return f"label {called.label(y)}" if y.ndim == 0 else ""
    flat = y.reshape(-1)
    more = ", …" if flat.size > 6 else ""
    return f"target {', '.join(f'{v:.3g}' for v in flat[:6].tolist())}{more}"


def extent(values: np.ndarray) -> tuple[float, float]:
    """Return the smallest and the largest finite number; 0 and 0 if there is none."""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def size_class(length: int) -> str:
    """Return the class of a picture whose rows are `length` tokens."""
    return "small" if length <= 16 else "middle" if length <= 64 else "large"
