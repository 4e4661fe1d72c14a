"""One sample in a report: its picture or its tokens, and what was predicted."""

from xml.etree.ElementTree import Element

import numpy as np

from npformer.tasks.reports.answers import Answers
from npformer.tasks.reports.elements import e
from npformer.tasks.reports.png import data_address, shrink

MOST_TOKENS = 128
"""The most tokens of a sequence that are written out."""

SIDE = 128
"""Rows and columns of the largest picture."""


def sample_view(judged: Answers, i: int, mark: bool = False) -> Element:
    """Return a picture of feature vectors, or the tokens by name.

    `mark` shows which tokens were predicted wrongly, if there is a label for each.
    """
    x, is_kept = judged.samples.inputs[0].x[i], judged.token_mask(i)
    n = length_to_show(is_kept)
    return _picture(x[:n], is_kept[:n]) if x.ndim == 2 else _tokens(judged, i, is_kept, mark)


def _picture(x: np.ndarray, kept: np.ndarray) -> Element:
    finite = x[kept][np.isfinite(x[kept])]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    shown, known = shrink(x, np.broadcast_to(kept[:, None], x.shape), SIDE)
    address = data_address(shown, known, "ink", low, high)
    words = f"x: {len(x)} tokens as rows, {x.shape[1]} features as columns, {low:.3g} to {high:.3g}"
    style = f"aspect-ratio: {min(max(x.shape[1] / len(x), 0.25), 2.5):.3g}"
    image = e("img", src=address, alt=words, title=words, style=style, class_=size_class(len(x)))
    return e("figure", image, e("figcaption", f"x: a row for each of {len(x)} tokens"))


def _tokens(judged: Answers, i: int, kept: np.ndarray, mark: bool) -> Element:
    n_shown = min(length_to_show(kept), MOST_TOKENS)
    items = [_token(judged, i, place, bool(kept[place]), mark) for place in range(n_shown)]
    n_left = length_to_show(kept) - n_shown
    more = e("p", f"and {n_left} more tokens", class_="note") if n_left else None
    return e("div", e("ol", items, class_="tokens"), more, class_="tokens-box")


def _token(judged: Answers, i: int, place: int, kept: bool, mark: bool) -> Element:
    """Return a token with its place above it, and below it its label, if it has one."""
    called, y = judged.called, np.asarray(judged.samples.y)[i]
    name = called.token(judged.samples.inputs[0].x[i][place])
    token = [e("small", str(place)), e("b", name)]
    if not kept:
        return e("li", token, class_="token padding")
    has_label = y.ndim == 1 and y.dtype.kind in "iu" and y[place] >= 0
    if not has_label:
        return e("li", token, class_="token")
    label = called.label(y[place])
    if mark and judged.predicted is not None and judged.predicted[i, place] != y[place]:
        predicted = called.label(judged.predicted[i, place])
        return e("li", token, e("i", f"{label}, not {predicted}"), class_="token wrong")
    return e("li", token, e("i", label), class_="token")


def length_to_show(kept: np.ndarray) -> int:
    """Return how many tokens of a sample are shown: all but the padding after them."""
    return int(np.flatnonzero(kept).max(initial=0)) + 1


def answer(judged: Answers, i: int) -> str:
    """Return a model's answer for a sample, and its loss, as text."""
    y = np.asarray(judged.samples.y)[i]
    loss = "" if np.isnan(judged.losses[i]) else f"loss {judged.losses[i]:.3g}"
    if judged.predicted is None or judged.probability is None:
        return loss
    if y.ndim == 1:
        wrong, of = int(judged.wrong()[i].sum()), int((y >= 0).sum())
        return f"{wrong} of {of} labels wrong, {loss}" if of else "no label"
    verdict = "right" if judged.predicted[i] == y else "wrong"
    prediction, p = judged.called.label(judged.predicted[i]), judged.probability[i]
    return f"predicted {prediction} (p {p:.2f}), {verdict}, {loss}"


def target(judged: Answers, i: int) -> str:
    """Return a text with a sample's label; "" if it has one for each token."""
    y = np.asarray(judged.samples.y)[i]
    if judged.predicted is not None:
        return f"label {judged.called.label(y)}" if y.ndim == 0 else ""
    flat = y.reshape(-1)
    more = ", …" if flat.size > 6 else ""
    return f"target {', '.join(f'{v:.3g}' for v in flat[:6].tolist())}{more}"


def size_class(length: int) -> str:
    """Return the class of a picture whose rows are `length` tokens."""
    if length <= 16:
        return "small"
    return "middle" if length <= 64 else "large"
