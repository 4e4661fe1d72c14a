"""What a run trains: a model with its data, and the way from a sample to arrays and words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from npformer.data.dataset import Dataset
from npformer.learn.play.broken import SequenceClassifierWithBug, put_bug
from npformer.learn.play.settings import Settings
from npformer.models import EncoderConfig
from npformer.training.fit import fit
from npformer.training.trainable import SequenceClassifier


class Work(ABC):
    """A model with its data. The samples to look at are those to validate on.

    Attributes
    ----------
    settings : Settings
    kind : {"image", "ids", "pair", "text"}
        What a sample is: a picture, words, two sequences, or a piece of a long text.
    classes : list of str, or None
    """

    kind: str

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.classes: list[str] | None = None

    @abstractmethod
    def train(self, **options: Any) -> Any:
        """Train from the beginning, or from a checkpoint, and return the history."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of samples to look at."""

    @abstractmethod
    def sample(self, rows: slice) -> tuple[Any, np.ndarray, Any]:
        """Return inputs, targets and masks of some samples, as the model takes them."""

    @abstractmethod
    def words(self, i: int) -> list[str] | None:
        """Return the tokens of a sample in words; None for pictures."""

    @abstractmethod
    def label(self, i: int) -> str | None:
        """Return the right answer for a sample, if that is one word."""

    def answer(self, k: int) -> str:
        """Return what output k of the model stands for."""
        return str(k) if self.classes is None else self.classes[k]

    def arrays(self, text: str) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
        """Return the ids of a text, its mask, and its tokens in words."""
        raise ValueError(f"the task {self.settings.task!r} has no words; expected a text model")


class ArrayWork(Work):
    """Samples that are arrays from the start: digits, and generated tasks."""

    def __init__(self, settings: Settings, data: Dataset) -> None:
        super().__init__(settings)
        self.data = data
        self.kind = "image" if data.n_features else "ids"
        self.classes = [str(k) for k in range(data.n_classes)]

    def train(self, **options: Any) -> Any:
        """Train on the training part."""
        of, data = self.settings, self.data
        pooling = {"token": "none"}.get(data.labels, "flatten" if data.n_features else "mean")
        config = EncoderConfig(**of.encoder(), max_len=data.length, positions="learned")
        sizes: Any = {"vocab_size": data.vocab_size, "n_features": data.n_features}
        kind = SequenceClassifier if of.bug is None else SequenceClassifierWithBug
        model = kind(config, data.n_classes, pooling=pooling, seed=of.seed, **sizes)
        if of.bug is not None:
            put_bug(of.bug, model)
        given: Any = {"epochs": of.epochs, "batch_size": of.batch_size, "lr": of.lr} | options
        return fit(model, data.train, validation=data.validation, seed=of.seed, **given)

    def __len__(self) -> int:
        return len(self.data.validation[0])

    def sample(self, rows: slice) -> tuple[Any, np.ndarray, Any]:
        """Return samples of the validation part."""
        x, y = self.data.validation
        return x[rows], y[rows], None

    def words(self, i: int) -> list[str] | None:
        """Return ids as words."""
        x = self.data.validation[0][i]
        return None if self.kind == "image" else [str(each) for each in x.tolist()]

    def label(self, i: int) -> str | None:
        """Return the class of a sample."""
        y = self.data.validation[1][i]
        return str(y) if y.ndim == 0 else None

    def arrays(self, text: str) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
        """Return ids that are written as numbers."""
        if self.data.vocab_size is None:
            return super().arrays(text)
        words, most = text.split(), self.data.vocab_size
        wrong = [word for word in words if not (word.isdigit() and int(word) < most)]
        if wrong or not 1 <= len(words) <= self.data.length:
            what = repr(wrong[0]) if wrong else f"{len(words)} tokens"
            raise ValueError(
                f"the text has {what}; expected 1 to {self.data.length} numbers from 0 to "
                f"{most - 1}, with spaces between them"
            )
        return np.array([[int(word) for word in words]]), None, words
