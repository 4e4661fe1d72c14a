"""Attention weights, and the mixing weights of other mixers, as pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from npformer.core import to_numpy
from npformer.core.inputs import rows_of
from npformer.mixers import Mixer
from npformer.tasks.reports.answers import Answers
from npformer.tasks.reports.axes import MOST_TOKENS, add_axes, heads
from npformer.tasks.reports.elements import TEXTS, e, section
from npformer.tasks.reports.names import Words
from npformer.tasks.reports.png import data_address, scale_for, shrink
from npformer.tasks.reports.views import (
    SIDE,
    answer,
    length_to_show,
    sample_view,
    size_class,
    target,
)
from npformer.training.inspection.explain import matrices_of
from npformer.training.inspection.trace import Call

MOST_PICTURES = 600
"""If there would be more pictures of matrices, heads are left out, but never a layer's first."""

MOST_PIXELS = 2_000_000
"""Pictures of matrices are shrunk so that they have no more pixels in total."""


def show_mixing(models: Sequence[Answers], chosen: Sequence[int], left_out: list[str]) -> Element:
    """Return the chosen samples, and beside each the matrices of all models."""
    first = models[0]
    x, y = first.samples.inputs[0].x, np.asarray(first.samples.y)
    pictures = _pictures(models, chosen, left_out)
    articles = []
    for place, i in enumerate(chosen):
        cards = []
        for judged, layers in zip(models, pictures, strict=True):
            words = e("p", answer(judged, i), class_="answer")
            cards.append(e("div", e("h4", judged.name), words, layers[place], class_="card"))
        label, text = target(first, i), first.called.sample(i)
        title = e("h3", f"Sample {i}{': ' if label else ''}{label}")
        sample = e("div", sample_view(first, i), class_="sample")
        side = "beside" if x.ndim == 3 else "below"
        card = e("div", sample, e("div", cards, class_="cards"), class_=side)
        articles.append(e("article", title, e("p", text, class_="text") if text else None, card))
    of_tokens = x.ndim == 2 and y.ndim == 2 and y.dtype.kind in "iu"
    labels = " Each token has its place above it and its label below." if of_tokens else ""
    has_words = first.called.words_of_sample is not None
    return section(
        "mixing",
        _pieces(first, chosen),
        _legend(),
        articles,
        labels=labels,
        words=TEXTS["mixing"]["words"] if has_words else "",
    )


def _pictures(
    models: Sequence[Answers], chosen: Sequence[int], left_out: list[str]
) -> list[list[list[Element]]]:
    """Return for each model and sample the pictures of all layers."""
    mixers_of_models = [_mixers_of(judged) for judged in models]
    n_heads = [mixer.n_heads for mixers in mixers_of_models for mixer in mixers]
    tokens = models[0].called.tokens
    weight = 2 if tokens else 1  # names at the axes weigh as much as the picture
    most_heads = max(1, MOST_PICTURES // (weight * max(len(n_heads), 1) * len(chosen)))
    shown = sum(min(n, most_heads) for n in n_heads)
    side = max(16, min(SIDE, math.isqrt(MOST_PIXELS // max(shown * len(chosen), 1))))
    pictures = []
    for judged, mixers in zip(models, mixers_of_models, strict=True):
        pictures.append(_pictures_of_model(judged, mixers, chosen, most_heads, side))
        left_out += _heads_left_out(judged, mixers, most_heads)
    if tokens and models[0].samples.inputs[0].x.shape[1] > MOST_TOKENS:
        left_out.append(f"of samples with more than {MOST_TOKENS} tokens, those after the first")
    return pictures


class _TracedMixer(NamedTuple):
    """What a trace says of a mixer, and how many matrices that has for a sample."""

    call: Call
    n_heads: int


def _mixers_of(judged: Answers) -> list[_TracedMixer]:
    """Return the mixers of a model, from the bottom up."""
    calls = [call for call in judged.trace if isinstance(call.layer, Mixer)]
    return [_TracedMixer(call, len(_matrices(call, 0))) for call in calls]


def _pictures_of_model(
    judged: Answers,
    mixers: Sequence[_TracedMixer],
    chosen: Sequence[int],
    most_heads: int,
    side: int,
) -> list[list[Element]]:
    """Return for each sample the pictures of all layers of a model."""
    heads_by_sample: list[list[Element]] = [[] for _ in chosen]
    for mixer in mixers:
        for place, i in enumerate(chosen):
            matrices = _matrices(mixer.call, place)[:most_heads]
            figures = [
                _figure(judged, i, head, matrix, side) for head, matrix in enumerate(matrices)
            ]
            heads_by_sample[place] += heads(mixer.call, figures)
    return heads_by_sample


def _heads_left_out(judged: Answers, mixers: Sequence[_TracedMixer], most_heads: int) -> list[str]:
    """Return a sentence on which heads of a model are not shown."""
    if not mixers:
        return [f"{judged.name}: it has no mixer, so there are no matrices"]
    return [
        f"{judged.name}, {mixer.call.name}: the first {most_heads} of {mixer.n_heads} heads are "
        "shown. To see the others, choose fewer samples"
        for mixer in mixers
        if mixer.n_heads > most_heads
    ]


def _matrices(call: Call, place: int) -> np.ndarray:
    """Return the matrices of a mixer's heads for one sample: those of all may need much memory."""
    rows, context = slice(place, place + 1), call.context
    one = replace(
        context,
        padding=rows_of(context.padding, rows),
        types=rows_of(context.types, rows),
    )
    return np.asarray(to_numpy(matrices_of(replace(call, input=call.input[rows], context=one)))[0])


def _figure(judged: Answers, i: int, head: int, matrix: np.ndarray, side: int) -> Element:
    """Return a head's matrix of a sample, with the names of tokens at its axes if they have any."""
    x, mask = judged.samples.inputs[0].x[i], judged.token_mask(i)
    length = length_to_show(mask)
    token_names = [judged.called.token(id) for id in x[:length]] if x.ndim == 1 else []
    names = token_names[:MOST_TOKENS] if judged.called.tokens else []
    if x.ndim == 1 and judged.called.words_of_sample is not None:
        words_of_sample = judged.called.words(i, x)
        matrix, mask = merge_words(matrix, words_of_sample), np.ones(len(words_of_sample), bool)
        token_names = [word for word, _ in words_of_sample]
        names = token_names[:MOST_TOKENS]
        length = len(token_names)
    length = min(length, len(names) or length)
    values, is_kept = matrix[:length, :length].real, np.outer(mask[:length], mask[:length])
    finite = np.where(is_kept & np.isfinite(values), values, 0.0)
    scale, low, high = scale_for(finite)
    words = "real part, " if matrix.dtype.kind == "c" else ""
    words += _largest(finite, token_names) if scale == "weights" else f"{-high:.2f} to {high:.2f}"
    block = -(-length // side)
    if block > 1 and not names:
        words += f"; a pixel is the largest of {block} x {block}"
    if not np.isfinite(values[is_kept]).all():
        words += "; it holds NaN or infinity"
    caption = e("figcaption", e("b", f"head {head}"), f" {words}")
    label = f"head {head}, {length} x {length}: {words}"
    if names:
        address = data_address(values, is_kept, scale, low, high)
        return e("figure", add_axes(address, names, names, label), caption, class_="map")
    shown, known = shrink(values, is_kept, side)
    picture = e("img", src=data_address(shown, known, scale, low, high), alt=label)
    return e("figure", picture, caption, class_=size_class(length))


def merge_words(matrix: np.ndarray, words: Words) -> np.ndarray:
    """Return weights between words, of a matrix (length, length) of weights between tokens.

    A word's row is the mean of its tokens' rows, and its column the sum of its tokens' columns: so
    rows that sum to 1 still do.
    """
    places = [places for _, places in words]
    columns = np.stack([matrix[:, of_word].sum(axis=1) for of_word in places], axis=1)
    return np.stack([columns[of_word].mean(axis=0) for of_word in places])


def _largest(numbers: np.ndarray, names: Sequence[str]) -> str:
    """Return a sentence on the largest weight of a matrix, and which token it gives to which."""
    row, column = divmod(int(np.argmax(np.abs(numbers))), numbers.shape[1])
    token, other = (f"{at} ({names[at]})" if names else str(at) for at in (row, column))
    return f"{numbers[row, column]:.2f}: {token} from {other}"


def _pieces(judged: Answers, chosen: Sequence[int]) -> Element | None:
    """Return what those tokens mean that are not words, with an example of each kind."""
    ids = judged.samples.inputs[0].x[list(chosen)]
    if ids.ndim == 3:
        return None
    example_of_sign: dict[str, str] = {}
    meanings: dict[str, str] = TEXTS["mixing"]["signs"]
    for token in map(judged.called.token, ids.ravel()):
        sign = next((sign for sign in meanings if token.startswith(sign)), "")
        if sign and token != "#":
            example_of_sign.setdefault(sign, token)
    words = "; ".join(
        meaning.format(example_of_sign[sign])
        for sign, meaning in meanings.items()
        if sign in example_of_sign
    )
    return e("p", f"Tokens: {words}.") if words else None


def _legend() -> Element:
    scale, known = np.arange(64)[None], np.ones((1, 64), bool)
    pictures = [data_address(scale, known, kind, 0, 63) for kind in ("weights", "signed")]
    pictures.append(data_address(scale[:, :1], ~known[:, :1], "weights", 0, 1))
    lines = zip(pictures, TEXTS["mixing"]["legend"].items(), strict=True)
    items = [
        e("li", e("img", src=address, alt=alt), f" {words}") for address, (alt, words) in lines
    ]
    return e("ul", items, class_="legend")
