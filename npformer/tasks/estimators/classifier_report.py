"""What a report on raw samples shows beside the models: scores, baselines, and the samples."""

from collections.abc import Mapping, Sequence
from typing import Any

from npformer.tasks.estimators.scores import Scores, compared
from npformer.tasks.reports.elements import TEXTS


def settings_of_report(
    classifier: Any, samples: Sequence[Any], scores: Scores, beside: Mapping[str, Scores | None]
) -> dict[str, Any]:
    """Return arguments of `npformer.report`: names, and what it begins with.

    That is a sentence, a table of the model and the baselines, and one of the classes.
    """
    texts = list(samples) if all(isinstance(each, str) for each in samples) else None
    words, n = TEXTS["results"], len(classifier.models_)
    tables = compared({"this model": scores, **beside}), words["calibration"], scores.by_class()
    members = [words["members"].format(n=n)] if n > 1 else []
    return {
        "title": f"A {'text' if texts else 'series'} classifier: its mistakes, and a look inside",
        "token_names": classifier.reader_.token_names(),
        "class_names": classifier.names.words(),
        "sample_names": texts,
        "opening": [*members, f"Measured on {scores.n:,} samples.", *tables],
    }
