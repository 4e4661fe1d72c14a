"""Dataset: training, validation and test data, and the sizes that a model for them needs."""

from dataclasses import dataclass

import numpy as np

from npformer.core.support.tables import Table, as_html, as_text

Part = tuple[np.ndarray, np.ndarray]
"""(x, y)."""


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        return as_text([self._table()], [self._note()], "<>>")

    def _repr_html_(self) -> str:
        """Return the table as HTML, for notebooks."""
        return as_html([self._table()], [self._note()])

    def _table(self) -> Table:
        """Return the shapes of each part."""
        rows: list[tuple[str, ...]] = [("part", "x", "y")]
        for name in ("train", "validation", "test"):
            x, y = getattr(self, name)
            rows.append((name, f"{x.dtype} {x.shape}", f"{y.dtype} {y.shape}"))
        return f"{self.n_classes} classes, one label for each {self.labels}", rows

    def _note(self) -> str:
        """Return the sizes that a model needs."""
        size = f"n_features={self.n_features}"
        if self.vocab_size is not None:
            size = f"vocab_size={self.vocab_size}"
        return f"a model for it: n_classes={self.n_classes}, {size}"
