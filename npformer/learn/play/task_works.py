"""What a run trains: an estimator or a model, with its data, and the way from samples to arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from npformer.data.dataset import Dataset
from npformer.data.tokenizers.tokenizer import check_texts
from npformer.learn.play.broken import SequenceClassifierWithBug, put_bug
from npformer.learn.play.model_answers import Names, estimator_names
from npformer.learn.play.settings import TASKS, Settings
from npformer.models.trainable import SequenceClassifier
from npformer.tasks.estimators import TextClassifier, TextTranslator, TextWriter
from npformer.tasks.estimators.text_writer import windows
from npformer.tasks.sources.file_task import Part
from npformer.tasks.sources.recipes import RECIPES
from npformer.training.fit import fit

Parts = Mapping[str, Part]


def take_evenly(part: Part, n: int | None) -> Part:
    """Return n samples at equal distances; of one text its first n characters; None: all."""
    if n is None or n >= len(part):
        return part
    if isinstance(part.samples, str):
        return Part(part.samples[:n])
    rows = np.linspace(0, len(part) - 1, n).round().astype(int)  # a table may be sorted by label
    if isinstance(part.samples, np.ndarray):
        return Part(part.samples[rows], part.labels[rows])
    return part.rows(rows)


class Work(ABC):
    """A model with its data.

    Attributes
    ----------
    settings : Settings
    kind : {"image", "ids", "pair", "text"}
        What a sample is: a picture, words, two sequences, or a piece of a long text.
    estimator : TextClassifier, TextWriter or TextTranslator, or None for arrays
    parts : mapping of str to Part
        "train", and "validation": the samples to look at.
    held_out : tuple
        Samples and answers to look at.
    names : Names
        What tokens and classes are called, once the training has begun.
    """

    more: ClassVar[dict[str, Any]] = {}  # arguments of `fit`

    def __init__(self, settings: Settings, estimator: Any, parts: Parts) -> None:
        self.settings, self.estimator = settings, estimator
        self.parts = {**parts, "train": take_evenly(parts["train"], settings.samples)}
        self.kind: str = TASKS[settings.task]["kind_of_input"]
        self.held_out = parts["validation"].data()

    def train(self, **options: Any) -> Any:
        """Train from the beginning, or from a checkpoint, and return the history."""
        of = self.settings
        defaults = {"epochs": of.epochs, "batch_size": of.batch_size, "lr": of.lr, **self.more}
        return self.fit(defaults | options)

    def fit(self, options: dict[str, Any]) -> Any:
        """Fit the estimator, and return the history."""
        train, validation = self.parts["train"].data(), self.parts["validation"].validation_data()
        return self.estimator.fit(*train, validation=validation, **options).history_

    @cached_property
    def names(self) -> Names:
        """What tokens and classes are called."""
        return estimator_names(self.estimator)

    @cached_property
    def alone(self) -> float | None:
        """The accuracy of the most frequent label of the training part, given to every sample."""
        if self.kind in ("text", "pair"):
            return None
        labels, counts = np.unique(self.parts["train"].labels, return_counts=True)
        return float((np.asarray(self.held_out[1]) == labels[counts.argmax()]).mean())

    def __len__(self) -> int:
        """Return the number of samples to look at."""
        return len(self.held_out[0])

    def check_kind(self, kind: str, otherwise: str) -> None:
        """Raise ValueError for a task of another kind, with what is to be said then."""
        if self.kind != kind:
            raise ValueError(f"the task {self.settings.task!r} {otherwise}")

    def healthy(self) -> SequenceClassifier:
        """Return the model without the run's bug, not trained: only arrays have one."""
        raise NotImplementedError

    @abstractmethod
    def sample(self, rows: slice) -> tuple[Any, np.ndarray, Any]:
        """Return inputs, targets and masks of some samples, as the model takes them."""

    @abstractmethod
    def training_samples(self, most: int) -> tuple[Any, ...]:
        """Return some samples of the training part, as `npformer.evaluate` takes them."""

    @abstractmethod
    def arrays(self, text: str) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
        """Return the ids of a text, its mask, and its tokens as text."""

    def shown(self, rows: slice) -> tuple[Any, np.ndarray, Any]:
        """Return what a page shows of some samples, of pairs the source: its padding has an id."""
        inputs, targets, masks = self.sample(rows)
        return (inputs[0], targets, None) if self.kind == "pair" else (inputs, targets, masks)

    def texts(self, rows: slice) -> Sequence[str] | None:
        """Return some samples as people wrote them, if they are sentences."""
        return self.held_out[0][rows] if self.kind == "ids" and self.estimator else None


class ArrayWork(Work):
    """Samples that are arrays from the start: those of a named task."""

    def __init__(self, settings: Settings, data: Dataset) -> None:
        parts = {"train": data.train, "validation": data.validation}
        super().__init__(settings, None, {name: Part(*part) for name, part in parts.items()})
        self.data = data

    def fit(self, options: dict[str, Any]) -> Any:
        """Train on the training part."""
        of, data = self.settings, self.data
        train = self.parts["train"].data()
        kind = SequenceClassifier if of.bug is None else SequenceClassifierWithBug
        model = RECIPES[of.task].model(data, of.seed, kind=kind, **of.encoder())
        if of.bug is not None:
            put_bug(of.bug, model)
        return fit(model, train, validation=data.validation, seed=of.seed, **options)

    def healthy(self) -> SequenceClassifier:
        """Return the model without its bug."""
        of = self.settings
        recipe = RECIPES[of.task]
        return recipe.model(self.data, of.seed, kind=SequenceClassifier, **of.encoder())

    @cached_property
    def names(self) -> Names:
        """Numbers."""
        n = self.data.vocab_size
        tokens = None if n is None else [str(id) for id in range(n)]
        return Names(tokens, [str(k) for k in range(self.data.n_classes)])

    def sample(self, rows: slice) -> tuple[Any, np.ndarray, Any]:
        """Return samples of the validation part."""
        x, y = self.held_out
        return x[rows], y[rows], None

    def training_samples(self, most: int) -> tuple[Any, ...]:
        """Return some sequences of the training part with their labels."""
        return take_evenly(self.parts["train"], most).data()

    def arrays(self, text: str) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
        """Return ids that are written as numbers."""
        words, most = text.split(), self.data.vocab_size
        if most is None:
            raise ValueError(f"the task {self.settings.task!r} has no words; expected a text model")
        wrong = [word for word in words if word not in (self.names.tokens or ())]
        if wrong or not 1 <= len(words) <= self.data.length:
            what = repr(wrong[0]) if wrong else f"{len(words)} tokens"
            raise ValueError(
                f"the text has {what}; expected 1 to {self.data.length} numbers from 0 to "
                f"{most - 1}, with spaces between them"
            )
        return np.array([[int(word) for word in words]]), None, words


class TextsWork(Work):
    """Texts with labels."""

    more: ClassVar[dict[str, Any]] = {"calibration": 0.0}  # without a temperature

    def __init__(self, settings: Settings, parts: Parts) -> None:
        estimator = TextClassifier(
            settings.encoder(), wide=False, members=1, ngrams=0, seed=settings.seed
        )  # whole words only, as people read them
        super().__init__(settings, estimator, parts)

    def sample(self, rows: slice) -> tuple[Any, np.ndarray, Any]:
        """Return texts as ids, with their mask."""
        texts, labels = (part[rows] for part in self.held_out)
        return self._in_arrays(texts, labels)

    def training_samples(self, most: int) -> tuple[Any, ...]:
        """Return some texts of the training part as ids, with their labels and mask."""
        return self._in_arrays(*take_evenly(self.parts["train"], most).data())

    def _in_arrays(self, texts: Any, labels: Any) -> tuple[Any, np.ndarray, Any]:
        """Return texts as ids, the numbers of their labels, and the mask."""
        x, mask = self.estimator.arrays(texts)
        return x, self.estimator.names.numbers(labels), mask

    def arrays(self, text: str) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
        """Return the ids of a text."""
        if not text.strip():
            raise ValueError("the text is empty; expected at least one word")
        x, mask = self.estimator.arrays(check_texts([text], "texts"))
        return x, mask, self.names.words(x[0][mask[0]])


class BookWork(Work):
    """One long text, to continue."""

    def __init__(self, settings: Settings, parts: Parts) -> None:
        decoder = {"max_len": 64, **settings.encoder(), "causal": True}
        decoder |= {"norm": "pre", "positions": "learned"}
        super().__init__(settings, TextWriter(decoder, seed=settings.seed), parts)

    @cached_property
    def _windows(self) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets of the end of the text, cut once: it takes longer than an answer."""
        ids = self.estimator.ids("text", self.held_out[0])
        return windows(ids, self.estimator.model.config.max_len)

    def __len__(self) -> int:
        return len(self._windows[0])

    def sample(self, rows: slice) -> tuple[Any, np.ndarray, Any]:
        """Return windows of the text."""
        x, y = self._windows
        return x[rows], y[rows], None

    def training_samples(self, most: int) -> tuple[Any, ...]:
        """Return some windows of the beginning of the training text."""
        length = self.estimator.model.config.max_len
        ids = self.estimator.ids("text", self.parts["train"].samples[: most * length])
        x, y = windows(ids, length)
        return x[:most], y[:most]

    def arrays(self, text: str) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
        """Return the ids of the end of a text, as many as the model reads."""
        ids = self.estimator.ids("text", text)[-self.estimator.model.config.max_len :]
        if not len(ids):
            raise ValueError("the text is empty; expected at least one character")
        return ids[None], None, self.names.words(ids)


class PairsWork(Work):
    """Pairs of texts: from a source the model writes a target."""

    def __init__(self, settings: Settings, parts: Parts) -> None:
        translator = TextTranslator(settings.encoder(), tokenizer="char", seed=settings.seed)
        super().__init__(settings, translator, parts)

    def sample(self, rows: slice) -> tuple[Any, np.ndarray, Any]:
        """Return both sides as ids: inputs and targets, as the model arranges them."""
        x, y = self.estimator.arrays(*(part[rows] for part in self.held_out))
        return self.estimator.model.arrange(x, y, None, None)[:3]  # type: ignore[no-any-return]

    def training_samples(self, most: int) -> tuple[Any, ...]:
        """Return some pairs of the training part as ids."""
        return self.estimator.arrays(*take_evenly(self.parts["train"], most).data())  # type: ignore[no-any-return]

    def arrays(self, text: str) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
        """Return the ids of a source."""
        x = self.estimator._read([text])[1]
        if x.shape[1] < 2:
            raise ValueError("source is empty; expected at least one letter")
        return x, None, [*self.names.words(x[0, :-1]), "end"]
