"""Runs on texts: a pipeline turns them into arrays, and builds the model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from npformer.data.tables import Table
from npformer.data.tokenizers.tokenizer import checked_texts
from npformer.learn.play.settings import Settings
from npformer.learn.play.works import Work
from npformer.tasks.estimators import Estimator, TextClassifier, TextTranslator, TextWriter
from npformer.tasks.estimators.split import stratified
from npformer.tasks.estimators.text_writer import windows
from npformer.training.trainable import Model

HELD_OUT = 0.1
"""Share of the data to validate on."""


class RawWork(Work):
    """Texts: a pipeline turns them into arrays, and builds the model."""

    pipeline: Any
    data: tuple[Any, ...]  # to train on
    held_out: tuple[Any, ...]  # to validate on, and to look at

    def train(self, **options: Any) -> Any:
        """Train the pipeline."""
        of = self.settings
        given = {"epochs": of.epochs, "batch_size": of.batch_size, "lr": of.lr, **options}
        self.begin(given)
        return self.pipeline.history_

    @abstractmethod
    def begin(self, options: dict[str, Any]) -> Estimator:
        """Call the pipeline's `fit`."""


class TextsWork(RawWork):
    """Texts with labels."""

    kind = "ids"

    def __init__(self, settings: Settings, texts: Sequence[str], labels: Sequence[str]) -> None:
        super().__init__(settings)
        sizes = settings.encoder()
        self.pipeline = TextClassifier(
            sizes, wide=False, members=1, ngrams=0, seed=settings.seed
        )  # whole words only, as people read them
        names = sorted(set(labels))
        numbers = np.array([names.index(label) for label in labels])
        parts = stratified(numbers, HELD_OUT, settings.seed)
        self.data, self.held_out = (
            ([texts[i] for i in rows], [labels[i] for i in rows]) for rows in parts
        )
        self.classes = names

    def begin(self, options: dict[str, Any]) -> Estimator:
        """Train on texts and labels."""
        found: Estimator = self.pipeline.fit(
            *self.data, validation=self.held_out, calibration=0.0, **options
        )
        return found

    def __len__(self) -> int:
        return len(self.held_out[0])

    def sample(self, rows: slice) -> tuple[Any, np.ndarray, Any]:
        """Return texts as ids, with their mask."""
        texts, labels = (part[rows] for part in self.held_out)
        x, mask = self.pipeline.arrays(texts)
        assert self.classes is not None
        return x, np.array([self.classes.index(label) for label in labels]), mask

    def words(self, i: int) -> list[str] | None:
        """Return the tokens of a text."""
        return self.arrays(self.held_out[0][i])[2]

    def label(self, i: int) -> str | None:
        """Return the label of a text."""
        return str(self.held_out[1][i])

    def arrays(self, text: str) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
        """Return the ids of a text."""
        if not text.strip():
            raise ValueError("the text is empty; expected at least one word")
        x, mask = self.pipeline.arrays(checked_texts([text], "texts"))
        return x, mask, self.pipeline.tokenizer_.tokens(x[0][mask[0]].tolist())


class BookWork(RawWork):
    """One long text, to continue."""

    kind = "text"

    def __init__(self, settings: Settings, text: str) -> None:
        super().__init__(settings)
        sizes = {"max_len": 64, **settings.encoder()}
        self.pipeline = TextWriter(_causal(sizes), seed=settings.seed)
        cut = round(len(text) * (1.0 - HELD_OUT))
        self.data, self.held_out = (text[:cut],), (text[cut:],)

    def begin(self, options: dict[str, Any]) -> Estimator:
        """Train on the beginning of the text; validate on its end."""
        found: Estimator = self.pipeline.fit(*self.data, validation=self.held_out[0], **options)
        return found

    @cached_property
    def _windows(self) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets of the end of the text, cut once: it takes longer than an answer."""
        ids = self.pipeline.ids("text", self.held_out[0])
        return windows(ids, self.pipeline.model.config.max_len)

    def __len__(self) -> int:
        return len(self._windows[0])

    def sample(self, rows: slice) -> tuple[Any, np.ndarray, Any]:
        """Return windows of the text."""
        x, y = self._windows
        return x[rows], y[rows], None

    def words(self, i: int) -> list[str] | None:
        """Return the characters of a window."""
        tokens: list[str] = self.pipeline.tokenizer_.tokens(self._windows[0][i].tolist())
        return tokens

    def label(self, i: int) -> str | None:
        """Return None: each token has the next one as its label."""
        return None

    def answer(self, k: int) -> str:
        """Return a character."""
        return str(self.pipeline.tokenizer_.tokens([k])[0])

    def arrays(self, text: str) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
        """Return the ids of the end of a text, as many as the model reads."""
        ids = self.pipeline.ids("text", text)[-self.pipeline.model.config.max_len :]
        if not len(ids):
            raise ValueError("the text is empty; expected at least one character")
        return ids[None], None, self.pipeline.tokenizer_.tokens(ids.tolist())


class PairsWork(RawWork):
    """Pairs of texts: from a source the model writes a target."""

    kind = "pair"

    def __init__(self, settings: Settings, sources: list[str], targets: list[str]) -> None:
        super().__init__(settings)
        self.pipeline = TextTranslator(settings.encoder(), tokenizer="char", seed=settings.seed)
        cut = round(len(sources) * (1.0 - HELD_OUT))
        self.data = sources[:cut], targets[:cut]
        self.held_out = sources[cut:], targets[cut:]

    def begin(self, options: dict[str, Any]) -> Estimator:
        """Train on pairs."""
        found: Estimator = self.pipeline.fit(*self.data, validation=self.held_out, **options)
        return found

    def __len__(self) -> int:
        return len(self.held_out[0])

    def sample(self, rows: slice) -> tuple[Any, np.ndarray, Any]:
        """Return both sides as ids: inputs and targets, as the model arranges them."""
        x, y = self.pipeline._ids(*(part[rows] for part in self.held_out))
        model: Model = self.pipeline.model
        inputs, targets, masks, _ = model.arranged(x, y, None, None)
        return inputs, targets, masks

    def words(self, i: int) -> list[str] | None:
        """Return the letters of a source."""
        return [*self.held_out[0][i]]

    def label(self, i: int) -> str | None:
        """Return the target of a source."""
        return str(self.held_out[1][i])

    def answer(self, k: int) -> str:
        """Return a letter."""
        return str(self.pipeline.tokenizers_[1].tokens([k])[0])


def _causal(sizes: dict[str, Any]) -> dict[str, Any]:
    """Return sizes of a decoder."""
    return {**sizes, "causal": True, "norm": "pre", "positions": "learned"}


def columns_of(settings: Settings, table: Table) -> tuple[list[str], list[str]]:
    """Return the texts and labels of a table, without empty ones."""
    names = settings.text_column or "text", settings.label_column or "label"
    texts, labels = (table.texts(name, missing="") for name in names)
    full = [i for i, text in enumerate(texts) if text.strip() and labels[i].strip()]
    if len({labels[i] for i in full}) < 2:
        raise ValueError(
            f"{table.path} has {len(full)} texts with a label in {names[1]!r}, of "
            f"{len({labels[i] for i in full})} classes; expected at least 2 classes"
        )
    return [texts[i] for i in full], [labels[i].strip() for i in full]
