"""TextWriter: a language model with its tokenizer. It learns from a text, and writes more."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import exp, log
from pathlib import Path
from typing import Any, Self

import numpy as np

from npformer.core import checks
from npformer.data.held_out import validation_share
from npformer.data.tokenizers import WRITING, Tokenizer, train_writing_tokenizer
from npformer.functional import NO_LABEL
from npformer.interop.tokenizers import tokenizer_of
from npformer.models.trainable import LanguageModel
from npformer.tasks.estimators import defaults
from npformer.tasks.estimators.estimator import Estimator, check_training
from npformer.tasks.estimators.unknown_settings import explain_unknown_settings
from npformer.tasks.estimators.vocabularies import recall_tokenizer
from npformer.training.evaluation import evaluate
from npformer.training.generation.texts import write_pieces
from npformer.training.storage.drawn import Drawn

LONGEST_SHOWN = 32
"""Tokens of a window in a report."""


@dataclass(frozen=True)
class TextScores:
    """How well a model predicts a text.

    Attributes
    ----------
    nats : float
        The mean of -log p per character. For a token, -log p is shared by its characters.
    tokens, characters : int
        How many were predicted.
    """

    nats: float
    tokens: int
    characters: int

    @property
    def bits(self) -> float:
        """The mean of -log2 p per character."""
        return self.nats / log(2.0)

    @property
    def perplexity(self) -> float:
        """exp of the mean of -log p per token."""
        return exp(self.nats * self.characters / self.tokens)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {**asdict(self), "bits": self.bits, "perplexity": self.perplexity}


@explain_unknown_settings
@dataclass(kw_only=True, eq=False, repr=False)
class TextWriter(Estimator):
    """A model that continues a text, together with its tokenizer.

        writer = npformer.TextWriter().fit(book)
        print(writer.generate("Once upon a time", 300))

    Parameters
    ----------
    config : EncoderConfig, or mapping of some of its settings, optional
        The decoder, with ``causal=True``. For settings that are not given, see
        `npformer.tasks.estimators.defaults`.
    tokenizer : {"char", "word", "bpe"} or Tokenizer
        See `npformer.data.tokenizers.train_writing_tokenizer`; the vocabulary comes from the
        training text.
    vocab_size : int
        The most ids of "word" and "bpe".
    tied : bool
        As in `LanguageModel`.
    seed : int
        For the initial weights and the order of training.
    dtype : {"float32", "float64"}
    backend : {"numpy", "cupy"}
    """

    tokenizer: str | Tokenizer = "char"
    vocab_size: int = 2_000
    tied: bool = True

    tokenizer_: Tokenizer = field(init=False)

    def check(self) -> None:
        """Raise ValueError or TypeError for a wrong argument of `__init__`; `fit` calls it."""
        super().check()
        if not isinstance(self.tokenizer, Tokenizer):
            checks.choice("tokenizer", self.tokenizer, WRITING)
        checks.flag("tied", self.tied)
        checks.positive("vocab_size", self.vocab_size)

    def fit(
        self,
        text: str,
        *,
        validation: float | str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        **training: Any,
    ) -> Self:
        """Train on a text, and return the writer itself.

        The text is cut into windows of max_len tokens; the model learns what follows each token.

        Parameters
        ----------
        text : str
        validation : float or str, optional
            Decides which epoch's weights are kept: a share at the end of the text, which is not
            trained on; or another text. None: the weights of the last epoch are kept.
        checkpoint : str or path, optional
            As in `npformer.fit`.
        **training
            Other arguments of `npformer.fit`, which replace the defaults.
        """
        self.check()
        checks.text("text", text)
        if (share := validation_share(validation)) is not None:
            cut = round(len(text) * (1.0 - share))
            text, validation = text[:cut], text[cut:]
        check_training({n: v for n, v in training.items() if n != "metric"}, validation)
        if isinstance(self.tokenizer, Tokenizer):
            self.tokenizer_ = self.tokenizer
        else:
            name, texts, vocab_size = self.tokenizer, [text], self.vocab_size
            self.tokenizer_ = recall_tokenizer(
                Drawn.make_for_training(checkpoint, training),
                "tokenizer",
                texts,
                {"tokenizer": name, "vocab_size": vocab_size},
                lambda: train_writing_tokenizer(name, texts, vocab_size),
            )
        ids = self.ids("text", text)
        encoder_settings = dict(defaults.ENCODERS["writer"])
        if len(ids) < defaults.FEW_TOKENS:
            encoder_settings["dropout"] = defaults.DROPOUT
        config = self.complete_config(encoder_settings)
        x, y = windows(ids, config.max_len)
        settings = {**defaults.training("writer", len(ids)), **training}
        model = LanguageModel(
            config,
            self.tokenizer_.vocab_size,
            tied=self.tied,
            seed=self.seed,
            dtype=self.dtype,
        )
        held_out = None
        if validation is not None:
            held_out = windows(self.ids("validation", validation), config.max_len)
        self.begin()
        self.train(
            model, (x, y), settings, validation=held_out, checkpoint=checkpoint, seed=self.seed
        )
        return self

    def ids(self, name: str, text: Any) -> np.ndarray:
        """Return the token ids of a text."""
        checks.text(name, text)
        return np.array(self.tokenizer_.ids(text), dtype="int64")

    def score(self, text: str) -> float:
        """Return the mean of log p per character, in nats: the larger the better."""
        return -self.evaluate(text).nats

    def evaluate(self, text: str, batch_size: int = 256, communicator: Any = None) -> TextScores:
        """Return how well the model predicts a text, in windows of max_len that do not overlap."""
        self.check_trained()
        ids = self.ids("text", text)
        data = windows(ids, self.model.config.max_len)
        evaluation = evaluate(self.model, data, batch_size, communicator=communicator)
        characters = len(text) - len(self.tokenizer_.decode(ids[:1].tolist()))
        return TextScores(
            evaluation.loss * evaluation.labels / characters, evaluation.labels, characters
        )

    def check_measurable(self, name: str, *data: Any) -> None:
        """Raise what `evaluate` would raise for a text."""
        windows(self.ids(name, data[0]), self.model.config.max_len, name)

    def generate(self, prompt: str = "\n", n: int = 200, **options: Any) -> str:
        """Return n tokens that continue a text.

        Parameters
        ----------
        prompt : str
        n : int
        **options
            temperature, top_k, top_p, seed, cache, never: as in `LanguageModel.generate`, and
            stop: ids at which the text ends, without them.
        """
        return "".join(self.stream(prompt, n, **options))

    def stream(self, prompt: str = "\n", n: int = 200, **options: Any) -> Iterator[str]:
        """Yield the text that `generate` returns, piece by piece."""
        self.check_trained()
        ids = self.ids("prompt", prompt)
        if not len(ids):
            raise ValueError("prompt is empty; expected at least one character, such as '\\n'")
        return write_pieces(self.model, self.tokenizer_, ids, n, **options)

    def report(
        self,
        text: str,
        path: str | os.PathLike[str] = "report.html",
        *,
        samples: int | Sequence[int] = 1,
        title: str = "A model that writes: a look inside",
        overwrite: bool = False,
    ) -> Path:
        """Write an HTML file that shows the attention weights for a text.

        `samples` is how many windows of the text are shown, or which ones. With `overwrite`, an
        existing file is replaced.
        """
        from npformer.tasks.reports.attention_maps import WrittenText, write_report  # when needed
        from npformer.tasks.reports.report import check_path_of_report, sample_numbers

        self.check_trained()
        place = check_path_of_report(path, overwrite)
        length = min(LONGEST_SHOWN, self.model.config.max_len)
        rows, _ = windows(self.ids("text", text), length)
        shown = [
            WrittenText(f"Window {i}", rows[i : i + 1], (self.tokenizer_.tokens(rows[i].tolist()),))
            for i in sample_numbers(samples, len(rows))
        ]
        return write_report(self.model, shown, place, title, overwrite=overwrite)

    def example(self, *data: Any) -> np.ndarray:
        """Return the first window."""
        ids = self.ids("text", data[0][: 64 * self.model.config.max_len])
        return windows(ids, self.model.config.max_len)[0][:1]

    def preparation(self) -> dict[str, Any]:
        """Return the tokenizer as plain values."""
        return {"tokenizer": self.tokenizer_.to_dict(), "tied": self.tied}

    def sizes(self) -> dict[str, int]:
        """Return what the model must have by its attributes."""
        return {"vocab_size": self.tokenizer_.vocab_size}

    def restore(self, values: Mapping[str, Any]) -> None:
        """Take over the tokenizer."""
        self.tokenizer = self.tokenizer_ = tokenizer_of(values["tokenizer"])
        self.tied = values["tied"]


def windows(ids: np.ndarray, length: int, name: str = "the text") -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and next tokens, (n, length): windows of a text that do not overlap.

    Only the last one may: it ends where the text does. What it shares with the one before is not
    counted again: its labels are `NO_LABEL`.
    """
    if len(ids) < 2:
        raise ValueError(f"{name} has {len(ids)} tokens; expected at least 2")
    length = min(length, len(ids) - 1)
    starts = np.arange(0, len(ids) - 1, length)
    again = max(int(starts[-1]) + length - (len(ids) - 1), 0)
    starts[-1] -= again
    places = starts[:, None] + np.arange(length)
    y = ids[places + 1]
    y[-1, :again] = NO_LABEL
    return ids[places], y
