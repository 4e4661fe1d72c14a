"""What a task brings: three parts and what a model has to know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Part = tuple[np.ndarray, np.ndarray]
"""(x, y)."""


@dataclass(frozen=True)
class Dataset:
    """Labelled sequences in three parts.

    Attributes
    ----------
    train : (x, y)
        To learn from.
    validation : (x, y)
        To choose weights by; never learned from.
    test : (x, y)
        To be looked at once, at the end.
    n_classes : int
    n_features : int or None
        Size of x's last axis, if x holds feature vectors (samples, length, n_features).
    vocab_size : int or None
        If x holds token ids (samples, length).
    labels : {"sequence", "token"}
        Whether y is (samples,) or (samples, length); in the latter -1 means no label.
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
        """Tokens in a sequence."""
        return int(self.train[0].shape[1])
