"""RawData: raw labelled samples for training and testing; and data stored in the package."""

from dataclasses import dataclass
from typing import Any

import numpy as np

RawPart = tuple[list[Any], list[str]]
"""(samples, labels)."""


@dataclass(frozen=True)
class RawData:
    """Texts, or series that differ in length, with strings as labels.

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


def read_packaged_arrays(name: str) -> dict[str, np.ndarray]:
    """Return the arrays of a file that ships with the package."""
    from importlib import resources  # here, because it is slow to import

    with resources.files("npformer.data").joinpath(name).open("rb") as file:
        return dict(np.load(file, allow_pickle=False))
