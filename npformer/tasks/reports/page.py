"""The page of a report, from its parts."""

from collections.abc import Mapping, Sequence

from npformer.core.inputs import as_given
from npformer.data.samples import Batch
from npformer.tasks.reports.elements import TEXTS, document, e, section
from npformer.tasks.reports.judged import judge
from npformer.tasks.reports.mixing import Looked, mixing_section
from npformer.tasks.reports.names import Called
from npformer.tasks.reports.tables import (
    mistakes_section,
    models_section,
    opening_section,
    tensors_section,
)
from npformer.tasks.reports.words import words_section
from npformer.training.inspection.trace import trace
from npformer.training.trainable import SequenceClassifier


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
        opening_section(opening) if opening else None,
        models_section(looked, notes),
        mistakes_section(looked, called, left_out),
        words_section(looked, chosen, called),
        mixing_section(looked, chosen, called, left_out),
        tensors_section(looked, chosen),
    ]
    if left_out:
        items = [e("li", words) for words in left_out]
        sections.append(section("not-shown", e("ul", items)))
    places = [each.get("id", "") for each in sections if each is not None]
    links = [e("a", TEXTS[place]["link"], href=f"#{place}") for place in places]
    return document(title, e("nav", links), e("main", sections))
