"""sentences: 3000 sentences of reviews, positive or negative, stored in the package.

``sentences.LICENSE.txt`` in this folder has their source and licence.
"""

import csv
import gzip
from io import TextIOWrapper

import numpy as np

from npformer.core import Seed, checks, generators
from npformer.data.raw_data import RawData, RawPart


def sentences(seed: Seed = 0, *, test: float = 0.2, repeated: bool = False) -> RawData:
    """Return sentences from reviews of products, films and restaurants, and their sentiment.

    Labels are "negative" and "positive". The sites are Amazon, IMDb and Yelp.

    Parameters
    ----------
    seed : int or Generator
        Decides which sentences are for testing.
    test : float
        The fraction of each label's sentences that is for testing, between 0 and 1.
    repeated : bool
        Whether to keep the 18 repeated sentences. A sentence in both parts would make the test too
        easy.
    """
    from importlib import resources  # here, because it is slow to import

    rng = generators.from_seed(seed)
    checks.number("test", test, above=0.0)
    checks.rate("test", test)
    checks.flag("repeated", repeated)
    path = resources.files("npformer.data").joinpath("sentences.csv.gz")
    with path.open("rb") as compressed, gzip.open(compressed) as file:
        rows = [(row["text"], row["label"]) for row in csv.DictReader(TextIOWrapper(file, "utf-8"))]
    if not repeated:
        rows = [*dict.fromkeys(rows)]
    labels = np.array([label for _, label in rows])
    is_test = np.zeros(len(rows), dtype=bool)
    for label in ("negative", "positive"):
        order = rng.permutation(np.flatnonzero(labels == label))
        n_test = min(max(round(test * len(order)), 1), len(order) - 1)
        is_test[order[:n_test]] = True
    return RawData(train=_select(rows, ~is_test), test=_select(rows, is_test))


def _select(rows: list[tuple[str, str]], chosen: np.ndarray) -> RawPart:
    """Return the texts and the labels of the rows where `chosen` is True."""
    texts = [rows[i][0] for i in np.flatnonzero(chosen)]
    labels = [rows[i][1] for i in np.flatnonzero(chosen)]
    return texts, labels
