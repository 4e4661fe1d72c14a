"""Dataset: training, validation and test data, and the sizes that a model for them needs."""

from dataclasses import dataclass

import numpy as np

Part = tuple[np.ndarray, np.ndarray]
"""(x, y)."""


@dataclass(frozen=True)
class Dataset:
    """Labelled sequences in three parts.

    Parameters
    ----------
    train, validation, test : (x, y)
    n_classes : int
    n_features : int or None
        If x holds feature vectors, (samples, length, n_features).
    vocab_size : int or None
        If x holds token ids, (samples, length).
    labels : {"sequence", "token"}
        Whether y is (samples,) or (samples, length); in the latter, -1 means no label.
    """

    train: Part
    validation: Part
    test: Part
    n_classes: int
    n_features: int | None = None
    vocab_size: int | None = None
    labels: str = "sequence"

    @property
    def length(self) -> int:
        """The number of tokens in a sequence."""
        return int(self.train[0].shape[1])
