"""Readers, which learn from the training part how samples become a model's x and mask."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from npformer.core import checks
from npformer.data.tokenizers import Tokenizer, train_tokenizer
from npformer.tasks.estimators import text_defaults
from npformer.tasks.sklearn.samples import Samples

MOST_IDS = 10_000_000
"""The most rows of an embedding table. Larger ids are probably numbers of another kind."""


class Reader(ABC):
    """Turns samples into arrays, and knows what a model has to know about them.

    Attributes
    ----------
    max_len : int
        Length of the longest sample that the model takes: the estimator's, or, after `learn`, that
        of the longest training sample.
    same_length : bool
        Whether all training samples have the same number of tokens, and none is padding.
    """

    max_len: int
    same_length = True

    reads: ClassVar[str]
    """How samples become arrays, in words."""

    def __init__(self, estimator: Any, dtype: str) -> None:
        self.dtype = dtype
        self.given_max_len = estimator.max_len
        if estimator.max_len is not None:
            self.given_max_len = checks.positive("max_len", estimator.max_len)

    @abstractmethod
    def learn(self, samples: Samples, weights: np.ndarray) -> None:
        """Learn what the model and `read` need from the training samples."""

    @abstractmethod
    def read(self, samples: Samples) -> tuple[np.ndarray, np.ndarray | None]:
        """Return x and its mask, (n, length)."""

    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `SequenceClassifier` that say what x holds."""

    def around(self) -> dict[str, Any]:
        """Return how samples are read, as values for JSON."""
        return {}

    def note_lengths(self, samples: Samples) -> None:
        """Note how long samples are."""
        self.same_length = not isinstance(samples, list)
        self.max_len = self.given_max_len or max(len(each) for each in samples)

    def with_mask(self, samples: Samples, dtype: str) -> tuple[np.ndarray, np.ndarray | None]:
        """Return samples as one array, with 0 after the last token of each, and a mask."""
        if not isinstance(samples, list):
            mask = None if self.same_length else np.ones(samples.shape[:2], bool)
            return np.asarray(samples, dtype), mask
        return padded(samples, dtype)


def padded(samples: Sequence[np.ndarray], dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return samples of several lengths as one array, with 0 at the end, and their mask."""
    lengths = np.array([len(each) for each in samples])
    mask = np.arange(lengths.max()) < lengths[:, None]
    x = np.zeros((*mask.shape, *samples[0].shape[1:]), dtype)
    x[mask] = np.concatenate(samples)
    return x, mask


class TokenReader(Reader):
    """Token ids."""

    reads = "rows are padded, and have a mask"

    def __init__(self, estimator: Any, dtype: str) -> None:
        super().__init__(estimator, dtype)
        self.vocab_size = estimator.vocab_size
        self.padding_id = estimator.padding_id

    def learn(self, samples: Samples, weights: np.ndarray) -> None:
        """Note the largest id, unless the size of the vocabulary is given."""
        self.note_lengths(samples)
        self.same_length = self.same_length and self.padding_id is None
        if self.vocab_size is not None:
            return
        largest = max(int(each.max()) for each in samples)
        if largest >= MOST_IDS:
            raise ValueError(
                f"X holds the token id {largest}; expected ids below {MOST_IDS}: each gets an "
                "embedding. If these are measurements, pass inputs='series', or X.astype(float)"
            )
        self.vocab_size = max(largest, self.padding_id or 0) + 1

    def read(self, samples: Samples) -> tuple[np.ndarray, np.ndarray | None]:
        """Return ids (n, length), after checking that each has an embedding."""
        ids, mask = self.with_mask(samples, "int64")
        smallest, largest = int(ids.min()), int(ids.max())
        if smallest < 0:
            raise ValueError(
                f"Negative values in data: X holds {smallest}{_row(ids, smallest)}; expected token "
                "ids from 0 on. If these are measurements, pass inputs='series', or X.astype(float)"
            )
        if largest >= self.vocab_size:
            raise ValueError(
                f"X holds the token id {largest}{_row(ids, largest)}; expected ids from 0 to "
                f"{self.vocab_size - 1}, which have embeddings. For ids that training does not "
                f"see, pass vocab_size={largest + 1}, or your tokenizer's, to the estimator"
            )
        if self.padding_id is not None and mask is not None:
            mask &= ids != self.padding_id
        return ids, mask

    def arguments(self) -> dict[str, Any]:
        """Return the size of the vocabulary, and the id of padding."""
        return {"vocab_size": self.vocab_size, "padding_id": self.padding_id}


def _row(ids: np.ndarray, wrong: int) -> str:
    return f" in row {int(np.flatnonzero((ids == wrong).any(axis=1))[0])}"


class SeriesReader(Reader):
    """Series, scaled to mean 0 and standard deviation 1.

    Both come from the training part: for each column, if a series is a row of numbers; for each
    feature, over all samples and times, if it is an array (length, n_features).
    """

    reads = "series are scaled, (x - mean) / std, padded with 0, and have a mask if lengths differ"

    def __init__(self, estimator: Any, dtype: str) -> None:
        super().__init__(estimator, dtype)
        checks.flag("scale", estimator.scale)
        self.scale = estimator.scale
        self.n_features = 1
        self.mean: Any = 0.0
        self.std: Any = 1.0

    def learn(self, samples: Samples, weights: np.ndarray) -> None:
        """Compute the weighted mean and standard deviation."""
        self.note_lengths(samples)
        rows = np.asarray(samples) if samples[0].ndim == 1 else np.concatenate(list(samples))
        if samples[0].ndim == 2:
            self.n_features = rows.shape[1]
            weights = np.repeat(weights, [len(each) for each in samples])
        if self.scale:
            rows = rows.astype("float64")
            self.mean = np.average(rows, axis=0, weights=weights)
            std = np.sqrt(np.average((rows - self.mean) ** 2, axis=0, weights=weights))
            self.std = np.where(std > 1e-12 * np.abs(self.mean), std, 1.0)  # 1: it is constant

    def read(self, samples: Samples) -> tuple[np.ndarray, np.ndarray | None]:
        """Return x (n, length, n_features)."""
        if isinstance(samples, list):
            return self.with_mask([self._scaled(each) for each in samples], self.dtype)
        x = self._scaled(samples)
        return self.with_mask(x[:, :, None] if x.ndim == 2 else x, self.dtype)

    def _scaled(self, x: np.ndarray) -> np.ndarray:
        return np.asarray((x - self.mean) / self.std)

    def arguments(self) -> dict[str, Any]:
        """Return the number of features."""
        return {"n_features": self.n_features}

    def around(self) -> dict[str, Any]:
        """Return the scaling."""
        mean, std = np.asarray(self.mean), np.asarray(self.std)
        return {"preparation": {"mean": mean.tolist(), "std": std.tolist()}}


class TextReader(Reader):
    """Texts, as the ids of a tokenizer."""

    reads = "the tokenizer turns texts into ids and a mask, cut at max_len"

    def __init__(self, estimator: Any, dtype: str) -> None:
        super().__init__(estimator, dtype)
        self.given = estimator.tokenizer
        self.vocab_size = estimator.vocab_size

    def learn(self, samples: Samples, weights: np.ndarray) -> None:
        """Make the vocabulary, unless the given tokenizer has one."""
        self.same_length = False
        self.tokenizer = self.given
        if not isinstance(self.given, Tokenizer):
            settings = dict(text_defaults.VOCABULARY)
            if self.given == "word":
                settings["ngrams"] = text_defaults.ngrams(list(samples))
            if self.vocab_size is not None:
                settings["vocab_size"] = self.vocab_size
            self.tokenizer = train_tokenizer(self.given, samples, **settings)
        self.max_len = self.given_max_len or text_defaults.MAX_LEN

    def read(self, samples: Samples) -> tuple[np.ndarray, np.ndarray | None]:
        """Return ids and their mask; warn if texts have to be cut."""
        ids, mask = self.tokenizer.encode(samples)
        if ids.shape[1] > self.max_len:
            n_cut = int(mask[:, self.max_len].sum())
            warnings.warn(
                f"{n_cut} of {len(ids)} texts have more than {self.max_len} tokens, and only their "
                "beginning is read. To read more, pass max_len to the estimator",
                stacklevel=4,
            )
        return ids[:, : self.max_len], mask[:, : self.max_len]

    def arguments(self) -> dict[str, Any]:
        """Return the size of the vocabulary, and the id of padding."""
        ids = {"vocab_size": self.tokenizer.vocab_size, "padding_id": self.tokenizer.padding_id}
        return ids | {"expects_mask": True}

    def around(self) -> dict[str, Any]:
        """Return the vocabulary, and the tokenizer."""
        tokens = self.tokenizer.tokens(range(self.tokenizer.vocab_size))
        preparation = {"tokenizer": self.tokenizer.to_dict(), "max_len": self.max_len}
        return {"vocabulary": tokens, "preparation": preparation}


READERS: dict[str, type[Reader]] = {
    "tokens": TokenReader,
    "series": SeriesReader,
    "text": TextReader,
}
