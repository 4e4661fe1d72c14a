"""RawData: raw labelled samples, in two parts; and what the package has of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

RawPart = tuple[list[Any], list[str]]
"""(samples, labels)."""


@dataclass(frozen=True)
class RawData:
    """Texts, or series that differ in length, with labels in words.

        data = npformer.data.vowels()
        classifier = npformer.SeriesClassifier().fit(*data.train)
        print(classifier.evaluate(*data.test))

    Parameters
    ----------
    train, test : (samples, labels)
        Two lists each.
    """

    train: RawPart
    test: RawPart


def packaged_arrays(name: str) -> dict[str, np.ndarray]:
    """Return the arrays of a file that ships with the package."""
    from importlib import resources  # here, because it is slow to import

    with resources.files("npformer.data").joinpath(name).open("rb") as file:
        return dict(np.load(file, allow_pickle=False))
