"""RawData: raw labelled samples, in two parts."""

from dataclasses import dataclass
from typing import Any

RawPart = tuple[list[Any], list[str]]
"""(samples, labels)."""


@dataclass(frozen=True)
class RawData:
    """Texts, or series that differ in length, with labels in words.

        data = npformer.data.vowels()
        classifier = npformer.SeriesClassifier().fit(*data.train)
        print(classifier.evaluate(*data.test))

    Attributes
    ----------
    train, test : (samples, labels)
        Two lists each.
    """

    train: RawPart
    test: RawPart
