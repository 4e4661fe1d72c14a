"""TextFiller: a masked language model with its tokenizer. It learns from texts without labels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from npformer.core import checks
from npformer.data.held_out import validation_share
from npformer.data.tokenizers import TOKENIZERS, Tokenizer, train_tokenizer
from npformer.data.tokenizers.tokenizer import MASK, check_texts, pad_rows
from npformer.interop.tokenizers import tokenizer_of
from npformer.models.trainable import MaskedLanguageModel
from npformer.tasks.estimators import defaults
from npformer.tasks.estimators.estimator import Estimator, check_training
from npformer.tasks.estimators.fitting_mixers import set_usual_positions
from npformer.tasks.estimators.split import recall_rows
from npformer.tasks.estimators.unknown_settings import explain_unknown_settings
from npformer.tasks.estimators.vocabularies import recall_tokenizer
from npformer.training.data_checks import check_data
from npformer.training.evaluation import evaluate
from npformer.training.storage.drawn import Drawn

Arrays = tuple[np.ndarray, None, np.ndarray]
"""Ids, no targets, and a mask, as `npformer.fit` takes them for a masked language model."""


@dataclass(frozen=True)
class FillerScores:
    """How well a model guesses hidden tokens.

    Attributes
    ----------
    accuracy : float
        The share of the hidden tokens that are guessed.
    loss : float
        The mean of -log p of the hidden tokens, in nats.
    hidden, tokens : int
        How many tokens were hidden, and how many there are.
    most_frequent : float
        The accuracy of always guessing the token that is most frequent in the texts.
    """

    accuracy: float
    loss: float
    hidden: int
    tokens: int
    most_frequent: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)


@explain_unknown_settings
@dataclass(kw_only=True, eq=False, repr=False)
class TextFiller(Estimator):
    """A model that fills gaps in texts, together with its tokenizer.

    It learns from texts alone, as BERT does (Devlin et al., 2018): some of the tokens are hidden,
    and it learns to guess them. A `TextClassifier` may then begin with its weights::

        filler = npformer.TextFiller().fit(texts)
        npformer.fill(filler, "the film was [MASK]")
        npformer.TextClassifier(pretrained=filler).fit(few_texts, labels)

    Parameters
    ----------
    config : EncoderConfig, or mapping of some of its settings, optional
        The encoder. For settings that are not given, see `npformer.tasks.estimators.defaults`.
    tokenizer : {"word", "wordpiece", "bpe"} or Tokenizer
        As in `TextClassifier`; a `Tokenizer` needs a token for what is hidden, such as ``[MASK]``.
    vocab_size : int
        The most ids of a vocabulary from the texts.
    mask_share : float
        How many of the tokens are hidden: 0.15 in BERT, 0.3 in ModernBERT.
    seed : int
        For the initial weights, the order of training, and which tokens are hidden.
    dtype : {"float32", "float64"}
    backend : {"numpy", "cupy"}

    Attributes
    ----------
    tokenizer_ : Tokenizer
    model : MaskedLanguageModel
    """

    tokenizer: str | Tokenizer = "word"
    vocab_size: int = defaults.FILLER_IDS
    mask_share: float = 0.3

    tokenizer_: Tokenizer = field(init=False)

    def check(self) -> None:
        """Raise ValueError or TypeError for a wrong argument of `__init__`; `fit` calls it."""
        super().check()
        checks.positive("vocab_size", self.vocab_size)
        checks.number("mask_share", self.mask_share, above=0.0)
        if not isinstance(self.tokenizer, Tokenizer):
            checks.choice("tokenizer", self.tokenizer, TOKENIZERS)
        elif self.tokenizer.mask_id is None:
            raise ValueError(
                f"tokenizer has no {MASK}; expected one that has, for what is hidden: "
                "train_tokenizer('word', texts, masks=True)"
            )

    def fit(
        self,
        texts: Sequence[str],
        *,
        validation: float | Sequence[str] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        **training: Any,
    ) -> Self:
        """Train on texts, and return the filler itself. A long text becomes several samples.

        Parameters
        ----------
        texts : sequence of str
        validation : float or sequence of str, optional
            Decides which epoch's weights are kept: a share of the texts, set aside by the seed; or
            other texts. None: the weights of the last epoch are kept.
        checkpoint : str or path, optional
            As in `npformer.fit`.
        **training
            Other arguments of `npformer.fit`, which replace the defaults.
        """
        self.check()
        check_training(training, validation)
        listed = check_texts(texts)
        drawn = Drawn.make_for_training(checkpoint, training)
        if (share := validation_share(validation)) is not None:
            rows, rest = recall_rows(drawn, "validation", np.zeros(len(listed)), share, self.seed)
            validation = [listed[i] for i in rest]
            listed = [listed[i] for i in rows]
        if isinstance(self.tokenizer, Tokenizer):
            self.tokenizer_ = self.tokenizer
        else:
            name, vocab_size = self.tokenizer, self.vocab_size
            self.tokenizer_ = recall_tokenizer(
                drawn,
                "tokenizer",
                listed,
                {"tokenizer": name, "vocab_size": vocab_size, "masks": True},
                lambda: train_tokenizer(name, listed, vocab_size=vocab_size, masks=True),
            )
        config = set_usual_positions(self.complete_config(defaults.ENCODERS["filler"]), self.config)
        data = self.data("texts", listed, config.max_len)
        held_out = None
        if validation is not None:
            held_out = self.data("validation", validation, config.max_len)
        tokenizer = self.tokenizer_
        special_ids = [tokenizer.unknown_id, tokenizer.begin_id, tokenizer.end_id]
        without_token = tokenizer.ids_without_token(tokenizer.vocab_size)
        model = MaskedLanguageModel(
            config,
            tokenizer.vocab_size,
            mask_id=tokenizer.mask_id,
            padding_id=tokenizer.padding_id,
            special_ids=[id for id in special_ids if id is not None] + without_token,
            mask_share=self.mask_share,
            expects_mask=True,
            seed=self.seed,
            dtype=self.dtype,
        )
        settings = {**defaults.training("filler", len(data[0])), **training}
        self.begin()
        self.train(
            model, data, settings, validation=held_out, checkpoint=checkpoint, seed=self.seed
        )
        return self

    def data(self, name: str, texts: Any, max_len: int) -> Arrays:
        """Return the ids of texts and their mask, after cutting long ones into several rows."""
        rows = [self.tokenizer_.ids(text) for text in check_texts(texts, name)]
        chunks = [row[i : i + max_len] for row in rows for i in range(0, len(row), max_len)]
        if not chunks:
            raise ValueError(f"{name} has no word; expected at least one")
        ids, mask = pad_rows(chunks, self.tokenizer_.padding_id)
        return ids, None, mask

    def score(self, texts: Sequence[str]) -> float:
        """Return the share of the hidden tokens that are guessed."""
        return self.evaluate(texts).accuracy

    def evaluate(
        self, texts: Sequence[str], batch_size: int = 256, communicator: Any = None
    ) -> FillerScores:
        """Return how well hidden tokens of texts are guessed: the same ones at every call."""
        self.check_trained()
        data = self.data("texts", texts, self.model.config.max_len)
        evaluation = evaluate(self.model, data, batch_size, communicator=communicator)
        counts = np.bincount(data[0][data[2]])
        if (unknown := self.tokenizer_.unknown_id) is not None:
            counts[unknown : unknown + 1] = 0  # which is never hidden
        n = int(data[2].sum())
        return FillerScores(
            evaluation.accuracy, evaluation.loss, evaluation.labels, n, float(counts.max() / n)
        )

    def check_measurable(self, name: str, *data: Any) -> None:
        """Raise what `evaluate` would raise for texts."""
        arrays = self.data(name, data[0], self.model.config.max_len)
        check_data(self.model, name, arrays, self.model.loss_with(None))

    def report(
        self,
        texts: Sequence[str],
        path: str | os.PathLike[str] = "report.html",
        *,
        samples: int | Sequence[int] = 4,
        title: str = "A model that fills gaps: a look inside",
        overwrite: bool = False,
    ) -> Path:
        """Write an HTML file that shows the attention weights for some texts.

        `samples` is how many of the texts are shown, or which ones. With `overwrite`, an
        existing file is replaced.
        """
        from npformer.tasks.reports.attention_maps import WrittenText, write_report  # when needed
        from npformer.tasks.reports.report import check_path_of_report, sample_numbers

        self.check_trained()
        place = check_path_of_report(path, overwrite)
        shown, listed = [], check_texts(texts)
        for i in sample_numbers(samples, len(listed)):
            x, _, _ = self.data("texts", [listed[i]], self.model.config.max_len)
            names = self.tokenizer_.tokens(x[0].tolist())
            shown.append(WrittenText(f"Text {i}", x[:1], (names,)))
        return write_report(self.model, shown, place, title, overwrite=overwrite)

    def example(self, *data: Any) -> np.ndarray:
        """Return the first text."""
        return self.data("texts", data[0][:1], self.model.config.max_len)[0][:1]

    def preparation(self) -> dict[str, Any]:
        """Return the tokenizer as plain values."""
        return {"tokenizer": self.tokenizer_.to_dict()}

    def sizes(self) -> dict[str, int]:
        """Return what the model must have by its attributes."""
        return {"vocab_size": self.tokenizer_.vocab_size, "mask_id": self.tokenizer_.mask_id or 0}

    def restore(self, values: Mapping[str, Any]) -> None:
        """Take over the tokenizer."""
        self.tokenizer = self.tokenizer_ = tokenizer_of(values["tokenizer"])
