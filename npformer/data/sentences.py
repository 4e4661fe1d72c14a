"""sentences: 3000 sentences of reviews, positive or negative, stored in the package.

``sentences.LICENSE.txt`` in this folder has their source and licence.
"""

import csv
import gzip
from io import TextIOWrapper

import numpy as np

from npformer.core import Seed, checks, generators
from npformer.data.raw_data import RawData


def sentences(seed: Seed = 0, *, test: float = 0.2, repeated: bool = False) -> RawData:
    """Return sentences from reviews of products, films and restaurants, and their sentiment.

    Labels are "negative" and "positive". The sites are Amazon, IMDb and Yelp.

    Parameters
    ----------
    seed : int or Generator
        Decides which sentences are for testing.
    test : float
        Their share, between 0 and 1, the same for each label.
    repeated : bool
        Whether repeated sentences are kept; there are 18. One that is in both parts would make the
        test too easy.
    """
    from importlib import resources  # here, because it is slow to import

    rng = generators.from_seed(seed)
    checks.number("test", test, above=0.0)
    checks.rate("test", test)
    checks.flag("repeated", repeated)
    place = resources.files("npformer.data").joinpath("sentences.csv.gz")
    with place.open("rb") as packed, gzip.open(packed) as file:
        rows = [(row["text"], row["label"]) for row in csv.DictReader(TextIOWrapper(file, "utf-8"))]
    if not repeated:
        rows = [*dict.fromkeys(rows)]
    labels = np.array([label for _, label in rows])
    tested = np.zeros(len(rows), dtype=bool)
    for label in ("negative", "positive"):
        of_label = rng.permutation(np.flatnonzero(labels == label))
        n_tested = min(max(round(test * len(of_label)), 1), len(of_label) - 1)
        tested[of_label[:n_tested]] = True
    parts = [[row for row, other in zip(rows, tested, strict=True) if other == t] for t in (0, 1)]
    train, held_out = ([[*column] for column in zip(*part, strict=True)] for part in parts)
    return RawData(train=(train[0], train[1]), test=(held_out[0], held_out[1]))
