"""The section of a report on words: what the wide part of a model found in some texts."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from npformer.tasks.reports.answers import Answers
from npformer.tasks.reports.elements import e, section
from npformer.tasks.reports.views import answer, target
from npformer.tasks.wide import WideSequenceClassifier
from npformer.tasks.wide.evidence import evidence_for, strongest


def words_section(models: Sequence[Answers], chosen: Sequence[int], n_worst: int) -> Element | None:
    """Return which words and pairs speak for the answers to some samples and the worst mistakes."""
    children = [_words_of_model(judged, chosen, n_worst) for judged in models]
    if all(child is None for child in children):
        return None
    return section("words", children)


def _words_of_model(judged: Answers, chosen: Sequence[int], n_worst: int) -> Element | None:
    """Return what speaks for the answers of a model; None without a wide part or answers."""
    if not isinstance(judged.model, WideSequenceClassifier) or judged.predicted is None:
        return None
    rows = list(dict.fromkeys([*chosen, *judged.worst(n_worst)]))
    rows = [i for i in rows if judged.predicted[i] >= 0]
    (inputs,) = judged.samples.select(rows).inputs
    values_of_samples = evidence_for(
        judged.model.wide,
        inputs.x,
        inputs.mask,
        judged.predicted[rows],
        [judged.called.words(i, judged.samples.inputs[0].x[i]) for i in rows],
    )
    cards = [_card(judged, i, values) for i, values in zip(rows, values_of_samples, strict=True)]
    return e("div", e("h3", judged.name), e("ul", cards, class_="evidence"))


def _card(judged: Answers, i: int, values: dict[str, float]) -> Element:
    """Return a sample with the words for the answer to it, and those against it."""
    pro, contra = strongest(values)
    largest = max((abs(value) for _, value in (*pro, *contra)), default=1.0)
    name = judged.called.label(judged.predicted[i])  # type: ignore[index]
    caption = "; ".join(filter(None, [f"sample {i}", target(judged, i), answer(judged, i)]))
    text = judged.called.sample(i)
    return e(
        "li",
        e("p", text, class_="text") if text else None,
        e("p", caption, class_="answer"),
        _words_line(f"for {name}", pro, largest, "for"),
        _words_line("against it", contra, largest, "against"),
    )


def _words_line(
    title: str, ranked: Sequence[tuple[str, float]], largest: float, kind: str
) -> Element:
    """Return words with what they add, the more of it the darker."""
    words = [
        e(
            "span",
            f"{word} ",
            e("b", f"{value:+.2f}"),
            style=f"--strength: {100 * abs(value) / largest:.0f}%",
        )
        for word, value in ranked
    ]
    return e("p", e("strong", title), words or " nothing", class_=f"words {kind}")
