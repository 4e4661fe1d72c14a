"""Readers, which learn from the training part how samples become a model's x and mask."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from npformer.data.lists import check_list
from npformer.data.tokenizers import Tokenizer, WordTokenizer, frequent_pairs, train_tokenizer
from npformer.data.tokenizers.tokenizer import check_texts
from npformer.data.tokenizers.word_places import WordPlaces
from npformer.tasks.estimators import defaults
from npformer.tasks.estimators.one_series import check_series
from npformer.tasks.estimators.vocabularies import recall_tokenizer
from npformer.training.storage.drawn import Drawn

Samples = np.ndarray | Sequence[Any]
"""An array with two or three axes, arrays of several lengths, or texts."""

MOST_IDS = 10_000_000
"""The most rows of an embedding table. Larger ids are probably numbers of another kind."""


@dataclass(eq=False)
class Reader(ABC):
    """Turns samples into arrays, and knows what a model has to know about them.

    Attributes
    ----------
    max_len : int
        The longest sample that the model takes: what was given, or, after `learn`, the length of
        the longest training sample, times `room`.
    same_length : bool
        Whether all training samples have the same number of tokens, and none is padding.
    """

    max_len: Any
    room: int = field(default=1, kw_only=True)

    same_length = False

    reads: ClassVar[str]
    """A text on how samples become arrays."""

    def check_samples(self, samples: Any, name: str) -> Sequence[Any]:
        """Check each sample, and return the samples as a sequence."""
        return list(samples)

    @abstractmethod
    def learn(
        self, samples: Samples, weights: np.ndarray | None = None, drawn: Drawn | None = None
    ) -> None:
        """Learn what the model and `read` need from the training samples and their weights.

        What a training that goes on has `drawn` is taken as it is.
        """

    @abstractmethod
    def read(self, samples: Samples) -> tuple[np.ndarray, np.ndarray | None]:
        """Return x and its mask, (n, length)."""

    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `SequenceClassifier` that say what x holds."""

    def preparation(self) -> dict[str, Any]:
        """Return what turns samples into arrays, as values for JSON."""
        return {}

    def token_names(self) -> list[str] | None:
        """Return the names of token ids, if they have some."""
        return None

    def words_of(self, sample: Any) -> WordPlaces | None:
        """Return the words of a sample, with the places of their tokens, if it has words."""
        return None

    def around(self, classes: np.ndarray, preparation: Any) -> tuple[dict[str, Any], str]:
        """Return what is around the models of a classifier, for ONNX: as JSON, and as text."""
        values: dict[str, Any] = {"classes": classes.tolist(), "preparation": preparation}
        if (tokens := self.token_names()) is not None:
            values["vocabulary"] = tokens
        return values, f"{self.reads}; the name of the class with the largest number"

    def note_lengths(self, samples: Samples) -> None:
        """Note how long samples are."""
        self.same_length = isinstance(samples, np.ndarray)
        self.max_len = self.max_len or self.room * max(map(len, samples))

    def with_mask(self, samples: Samples, dtype: str) -> tuple[np.ndarray, np.ndarray | None]:
        """Return samples as one array, with 0 after the last token of each, and a mask."""
        if isinstance(samples, np.ndarray):
            mask = None if self.same_length else np.ones(samples.shape[:2], bool)
            return np.asarray(samples, dtype), mask
        lengths = np.array([len(sample) for sample in samples])
        mask = np.arange(lengths.max()) < lengths[:, None]
        x = np.zeros((*mask.shape, *samples[0].shape[1:]), dtype)
        x[mask] = np.concatenate(samples)
        return x, mask


@dataclass(eq=False)
class TokenReader(Reader):
    """Token ids."""

    reads = "rows are padded, and have a mask"

    vocab_size: Any
    padding_id: int | None

    def learn(
        self, samples: Samples, weights: np.ndarray | None = None, drawn: Drawn | None = None
    ) -> None:
        """Note the largest id, unless the size of the vocabulary is given."""
        self.note_lengths(samples)
        self.same_length = self.same_length and self.padding_id is None
        if self.vocab_size:
            return
        largest = max(int(sample.max()) for sample in samples)
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


@dataclass(eq=False)
class SeriesReader(Reader):
    """Series, scaled to mean 0 and standard deviation 1.

    Both come from the training part: for each column, if the series are rows of numbers; for each
    feature, over all samples and times, if they are arrays (length, n_features).
    """

    reads = "series are scaled, (x - mean) / deviation, padded with 0, and have a mask"

    scale: bool
    dtype: str

    n_features = 0  # not known yet

    def check_samples(self, samples: Any, name: str) -> list[np.ndarray]:
        """Check series, and return them as float64 arrays (steps, features)."""
        if hasattr(samples, "columns"):  # a table with a series a row
            samples = samples.to_numpy()
        rows = check_list(
            name, samples, "an array (steps, features) for each series", axes=(1, 2, 3)
        )
        series = [check_series(f"{name}[{i}]", steps) for i, steps in enumerate(rows)]
        for i, steps in enumerate(series):
            if steps.shape[1] != (n_features := self.n_features or series[0].shape[1]):
                alone = f". For a single one write [{name}]" * (steps.shape == (n_features, 1))
                raise ValueError(
                    f"{name}[{i}] has {steps.shape[1]} features; expected {n_features}, as in the "
                    f"{f'training samples{alone}' if self.n_features else 'first series'}"
                )
        return series

    def learn(
        self, samples: Samples, weights: np.ndarray | None = None, drawn: Drawn | None = None
    ) -> None:
        """Compute the weighted mean and standard deviation."""
        self.note_lengths(samples)
        columns = samples[0].ndim == 1
        rows = np.asarray(samples) if columns else np.concatenate(list(samples))
        self.n_features = 1 if columns else rows.shape[1]
        if weights is not None and not columns:
            weights = np.repeat(weights, [len(steps) for steps in samples])
        self.mean, self.deviation = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
        if self.scale:
            rows = rows.astype("float64")
            self.mean = np.average(rows, axis=0, weights=weights)
            std = np.sqrt(np.average((rows - self.mean) ** 2, axis=0, weights=weights))
            # A feature that never changes carries no information, and becomes 0.
            self.deviation = np.where(std > 1e-12 * np.abs(self.mean), std, 1.0)

    def read(self, samples: Samples) -> tuple[np.ndarray, np.ndarray | None]:
        """Return x (n, length, n_features)."""
        if isinstance(samples, np.ndarray):
            x = (samples - self.mean) / self.deviation
            return self.with_mask(x[:, :, None] if x.ndim == 2 else x, self.dtype)
        lengths = [len(steps) for steps in samples]
        if (longest := max(lengths)) > self.max_len:
            raise ValueError(
                f"series {lengths.index(longest)} has {longest} steps; expected at most "
                f"{self.max_len}, the most that this model reads. Train it with max_len=..., or "
                "shorten the series"
            )
        return self.with_mask([(x - self.mean) / self.deviation for x in samples], self.dtype)

    def arguments(self) -> dict[str, Any]:
        """Return the number of features, and whether some samples are shorter than others."""
        return {"n_features": self.n_features, "expects_mask": not self.same_length}

    def preparation(self) -> dict[str, Any]:
        """Return the scaling."""
        return {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}


@dataclass(eq=False)
class TextReader(Reader):
    """Texts, as the ids of a tokenizer.

    Attributes
    ----------
    tokenizer : Tokenizer
        After `learn`; before it, perhaps its name.
    pairs : (array, array) or None
        Frequent pairs of tokens, for a wide part.
    """

    reads = "the tokenizer turns texts into ids and a mask, cut at max_len"

    tokenizer: Any
    vocabulary: Mapping[str, Any] = field(default_factory=dict)
    wide: bool = False
    refuse_empty: bool = False

    pairs: Any = field(default=None, init=False)
    has_warned = False

    def __post_init__(self) -> None:
        """Read a text's beginning, if nothing else is said."""
        self.max_len = self.max_len or defaults.MAX_LEN

    def check_samples(self, samples: Any, name: str) -> list[str]:
        """Check texts, and return them as a list."""
        return check_texts(samples, name)

    def learn(
        self, samples: Samples, weights: np.ndarray | None = None, drawn: Drawn | None = None
    ) -> None:
        """Make the vocabulary, unless the tokenizer has one."""
        empty = [i for i, text in enumerate(samples) if not text.strip()]
        if empty and self.refuse_empty:
            raise ValueError(
                f"{len(empty)} of {len(samples)} texts to train on are empty, the first is text "
                f"number {empty[0] + 1}; expected words. Leave these samples out"
            )
        if not isinstance(self.tokenizer, Tokenizer):
            name, texts = self.tokenizer, list(samples)
            settings = {**defaults.VOCABULARY, **self.vocabulary}
            if name == "word":
                settings.setdefault("ngrams", defaults.ngrams(texts))
            self.tokenizer = recall_tokenizer(
                drawn or Drawn(),
                "tokenizer",
                texts,
                {"tokenizer": name, **settings},
                lambda: train_tokenizer(name, texts, **settings),
            )
        if self.wide:
            ngram_ids = (
                self.tokenizer.ngram_ids() if isinstance(self.tokenizer, WordTokenizer) else ()
            )
            self.pairs = frequent_pairs(
                map(self.tokenizer.ids, samples), self.tokenizer.vocab_size, single=ngram_ids
            )

    def read(self, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
        """Return ids and their mask; warn once if texts have to be cut."""
        ids, mask = self.tokenizer.encode(samples, self.max_len)
        if ids.shape[1] == self.max_len and not self.has_warned:
            longer = sum(len(self.tokenizer.ids(text)) > self.max_len for text in samples)
            if longer:
                self.has_warned = True
                warnings.warn(
                    f"{longer:,} of {len(samples):,} texts have more than {self.max_len} tokens, "
                    "and only their beginning is read. To read more, pass a larger max_len "
                    "(--max-len) when you train; for weights given by --from, when you pretrain",
                    stacklevel=4,
                )
        return ids, mask

    def arguments(self) -> dict[str, Any]:
        """Return the size of the vocabulary, and the id of padding."""
        ids = {"vocab_size": self.tokenizer.vocab_size, "padding_id": self.tokenizer.padding_id}
        return ids | {"expects_mask": True}

    def preparation(self) -> dict[str, Any]:
        """Return the tokenizer."""
        return {"tokenizer": self.tokenizer.to_dict(), "max_len": self.max_len}

    def words_of(self, sample: str) -> WordPlaces:
        """Return the words of a text, with the places of their tokens; an empty text has one."""
        return self.tokenizer.word_places(sample, self.max_len) or [("", [0])]

    def token_names(self) -> list[str]:
        """Return the token of each id."""
        names: list[str] = self.tokenizer.tokens(range(self.tokenizer.vocab_size))
        return names
