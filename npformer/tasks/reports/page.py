"""The page of a report, from its parts."""

from collections.abc import Mapping, Sequence

from npformer.core.inputs import as_given
from npformer.data.batch import Batch
from npformer.tasks.reports.elements import document, e
from npformer.tasks.reports.judged import judge
from npformer.tasks.reports.mixing import Looked, mixing_section
from npformer.tasks.reports.names import Called
from npformer.tasks.reports.style import STYLE
from npformer.tasks.reports.tables import (
    mistakes_section,
    models_section,
    opening_section,
    tensors_section,
)
from npformer.tasks.reports.words import words_section
from npformer.training.inspection.trace import trace
from npformer.training.trainable import SequenceClassifier

CONTENTS = {
    "models": "models",
    "mistakes": "mistakes",
    "words": "words",
    "mixing": "mixing",
    "tensors": "tensors and gradients",
}


def page(
    title: str,
    batches: Mapping[str, Batch],
    models: Mapping[str, SequenceClassifier],
    chosen: Sequence[int],
    called: Called,
    notes: dict[str, str],
    batch_size: int,
    opening: Sequence[str | Sequence[Sequence[str]]] = (),
) -> bytes:
    """Return the HTML file for samples and models that have been checked."""
    looked = []
    for name, model in models.items():
        batch = batches[name]
        some = batch.of_rows(list(chosen))
        x, mask, _ = as_given(some.inputs)
        found = trace(model, x, mask, labels=some.y)
        looked.append(Looked(judge(name, model, batch, batch_size), found))
    left_out: list[str] = []
    sections = [
        models_section(looked, notes),
        mistakes_section(looked, called, left_out),
        mixing_section(looked, chosen, called, left_out),
        tensors_section(looked, chosen),
    ]
    words = words_section(looked, chosen, called)
    if words is not None:
        sections.insert(2, words)  # after the mistakes
    if opening:
        sections.insert(0, opening_section(opening))
    if left_out:
        items = [e("li", words) for words in left_out]
        sections.append(e("section", e("h2", "Not shown"), e("ul", items), id="not-shown"))
    links = {"results": "results"} if opening else {}
    links |= CONTENTS if words is not None else {k: v for k, v in CONTENTS.items() if k != "words"}
    links |= {"not-shown": "not shown"} if left_out else {}
    return document(
        title,
        STYLE,
        e("h1", title),
        e("nav", [e("a", words, href=f"#{place}") for place, words in links.items()]),
        e("main", sections),
    )
