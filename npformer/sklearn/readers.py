"""Readers: they learn from the training part how samples become a model's x and mask."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer.sklearn.samples import Samples

MOST_IDS = 10_000_000
"""Rows of a table of embeddings. Ids above are likely to be numbers of another kind."""


def padded(samples: Sequence[np.ndarray], dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return samples of several lengths as one array, with 0 at the end, and their mask."""
    lengths = np.array([len(each) for each in samples])
    mask = np.arange(lengths.max()) < lengths[:, None]
    x = np.zeros((*mask.shape, *samples[0].shape[1:]), dtype)
    x[mask] = np.concatenate(samples)
    return x, mask


class TokenReader:
    """Token ids, and a mask if there is padding.

    Parameters
    ----------
    vocab_size : int, optional
        None: one more than the largest id that `learn` sees.
    padding_id : int, optional
    """

    def __init__(self, vocab_size: int | None, padding_id: int | None) -> None:
        self.vocab_size = vocab_size
        self.padding_id = padding_id
        self.masked = padding_id is not None

    def learn(self, samples: Samples, weights: np.ndarray) -> None:
        """Note how many ids there are, and whether samples differ in length."""
        self.masked = self.masked or isinstance(samples, list)
        if self.vocab_size is None:
            largest = max(int(each.max()) for each in samples)
            if largest >= MOST_IDS:
                raise ValueError(
                    f"X holds the token id {largest}; expected ids below {MOST_IDS}, for each has "
                    "an embedding. If these are numbers, pass inputs='series', or X.astype(float)"
                )
            self.vocab_size = max(largest, self.padding_id or 0) + 1

    def read(self, samples: Samples) -> tuple[np.ndarray, np.ndarray | None]:
        """Return ids (n, length) and their mask."""
        mask = None
        if isinstance(samples, list):
            samples, mask = padded(samples, "int64")
        smallest, largest = int(samples.min()), int(samples.max())
        if smallest < 0 or largest >= (self.vocab_size or 0):
            wrong = smallest if smallest < 0 else largest
            row = int(np.argwhere((samples == wrong).any(axis=1))[0, 0])
            why = (
                "negative numbers are no ids: for series pass inputs='series', or X.astype(float)"
                if smallest < 0
                else f"a larger one has no embedding. Pass vocab_size={largest + 1} or more before "
                "the training"
            )
            raise ValueError(
                f"X holds {wrong} in row {row}; expected token ids from 0 to "
                f"{(self.vocab_size or 0) - 1}; {why}"
            )
        if self.padding_id is not None:
            kept = samples != self.padding_id
            mask = kept if mask is None else mask & kept
        elif self.masked and mask is None:
            mask = np.ones(samples.shape, bool)
        return samples, mask

    def arguments(self) -> dict[str, Any]:
        """Return what `SequenceClassifier` has to know."""
        return {"vocab_size": self.vocab_size, "padding_id": self.padding_id}


class SeriesReader:
    """Series, scaled to mean 0 and standard deviation 1.

    mean and std are those of the training part: of each column if a series is a row of numbers, of
    each feature, over all samples and times, if it is an array (length, n_features).
    """

    def __init__(self, scale: bool, dtype: str) -> None:
        self.scale = scale
        self.dtype = dtype
        self.masked = False
        self.mean: Any = 0.0
        self.std: Any = 1.0
        self.n_features = 1

    def learn(self, samples: Samples, weights: np.ndarray) -> None:
        """Take mean and standard deviation of samples, weighted."""
        self.masked = isinstance(samples, list)
        if samples[0].ndim == 2:
            self.n_features = samples[0].shape[1]
            weights = np.repeat(weights, [len(each) for each in samples])
            rows = np.concatenate(list(samples))
        else:
            rows = np.asarray(samples)
        if not self.scale:
            return
        rows = rows.astype("float64")
        self.mean = np.average(rows, axis=0, weights=weights)
        std = np.sqrt(np.average((rows - self.mean) ** 2, axis=0, weights=weights))
        self.std = np.where(std > 1e-12 * np.abs(self.mean), std, 1.0)

    def read(self, samples: Samples) -> tuple[np.ndarray, np.ndarray | None]:
        """Return x (n, length, n_features) and its mask."""
        if isinstance(samples, list):
            scaled = [(each - self.mean) / self.std for each in samples]
            x, mask = padded(scaled, self.dtype)
            return x, mask
        x = np.asarray((samples - self.mean) / self.std, self.dtype)
        if x.ndim == 2:
            x = x[:, :, None]
        return x, np.ones(x.shape[:2], bool) if self.masked else None

    def arguments(self) -> dict[str, Any]:
        """Return what `SequenceClassifier` has to know."""
        return {"n_features": self.n_features}


class TextReader:
    """Texts, as the ids of a tokenizer."""

    def __init__(self, tokenizer: Any, max_len: int | None) -> None:
        self.tokenizer = tokenizer
        self.max_len = max_len

    def learn(self, samples: Samples, weights: np.ndarray) -> None:
        """Train the tokenizer, unless it is one already."""
        raise NotImplementedError

    def read(self, samples: Samples) -> tuple[np.ndarray, np.ndarray | None]:
        """Return ids (n, length) and their mask."""
        return self.tokenizer.encode(list(samples), self.max_len)

    def arguments(self) -> dict[str, Any]:
        """Return what `SequenceClassifier` has to know."""
        return {
            "vocab_size": self.tokenizer.vocab_size,
            "padding_id": self.tokenizer.padding_id,
        }
