"""TextTranslator: an encoder-decoder with its tokenizers, which turns one text into another."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from npformer.core import checks
from npformer.data.samples import Data
from npformer.data.tokenizers import WRITING, Tokenizer, train_writing_tokenizer
from npformer.data.tokenizers.tokenizer import check_texts, pad_rows
from npformer.interop.tokenizers import tokenizer_of
from npformer.models import EncoderConfig
from npformer.models.trainable import EncoderDecoder
from npformer.tasks.estimators import defaults
from npformer.tasks.estimators.estimator import Estimator, check_training
from npformer.tasks.estimators.pair_split import check_pairs, recall_rows_by_source
from npformer.tasks.estimators.translations import Translations, translations_of
from npformer.tasks.estimators.unknown_settings import explain_unknown_settings
from npformer.tasks.estimators.vocabularies import recall_tokenizer
from npformer.training.distributed import communicator_of
from npformer.training.storage.drawn import Drawn

AUTO = "auto"


@explain_unknown_settings
@dataclass(kw_only=True, eq=False, repr=False)
class TextTranslator(Estimator):
    """A model that turns one text into another, together with both tokenizers.

        translator = npformer.TextTranslator().fit(words, pronunciations)
        translator.translate(["transformer"])

    Parameters
    ----------
    config : EncoderConfig, or mapping of some of its settings, optional
        The encoder; the decoder is the same, but causal. For settings that are not given, see
        `npformer.tasks.estimators.defaults`.
    decoder : EncoderConfig, optional
        As in `EncoderDecoder`.
    tokenizer : {"auto", "char", "word", "bpe"}, or two of them
        For the sources and for the targets; see `npformer.data.tokenizers.train_writing_tokenizer`.
        "auto": words if a few recur again and again, as phones do, else characters.
    vocab_size : int
        The most ids of "word" and "bpe", on each side.
    max_len : int, optional
        The most tokens of a source or target. None: twice those of the longest one in training.
    seed : int
        For the initial weights and the order of training.
    dtype : {"float32", "float64"}
    backend : {"numpy", "cupy"}
    """

    decoder: EncoderConfig | None = None
    tokenizer: Any = AUTO
    vocab_size: int = 2_000
    max_len: int | None = None

    tokenizers_: list[Any] = field(init=False)

    def check(self) -> None:
        """Raise ValueError or TypeError for a wrong argument of `__init__`; `fit` calls it."""
        super().check()
        if len(names := self._both()) != 2:
            raise ValueError(
                f"tokenizer has {len(names)} names; expected one, or one for each side"
            )
        for name in names:
            if not isinstance(name, Tokenizer):
                checks.choice("tokenizer", name, (AUTO, *WRITING))
        checks.positive("vocab_size", self.vocab_size)
        self.check_optional("max_len")

    def _both(self) -> list[Any]:
        """Return the tokenizers, or their names, of sources and targets."""
        tokenizer = self.tokenizer
        return list(tokenizer) if isinstance(tokenizer, tuple | list) else [tokenizer, tokenizer]

    def fit(
        self,
        sources: Any,
        targets: Any,
        *,
        validation: float | tuple[Any, Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        **training: Any,
    ) -> Self:
        """Train on pairs, and return the translator itself.

        Parameters
        ----------
        sources, targets : sequence of str
            A target for each source.
        validation : float, or (sources, targets), optional
            Decides which epoch's weights are kept: a share of the pairs, drawn with the seed; or
            separate pairs. None: the weights of the last epoch are kept.
        checkpoint : str or path, optional
            As in `npformer.fit`.
        **training
            Other arguments of `npformer.fit`, which replace the defaults.
        """
        self.check()
        check_training(training, validation, "(sources, targets)")
        sources, targets = check_pairs(sources, targets)
        drawn = Drawn.make_for_training(checkpoint, training)
        held_out_pairs = None
        if isinstance(validation, tuple | list):
            held_out_pairs = check_pairs(*validation)
        elif validation is not None:
            rows, held_out_rows = recall_rows_by_source(
                drawn, "validation", sources, validation, self.seed
            )
            held_out_pairs = _rows_of(sources, held_out_rows), _rows_of(targets, held_out_rows)
            sources, targets = _rows_of(sources, rows), _rows_of(targets, rows)
        source, target = self._both()
        self.tokenizers_ = [
            self._tokenizer(source, "source", sources, drawn),
            self._tokenizer(target, "target", targets, drawn),
        ]
        x, y = self.arrays(sources, targets)
        model = self._model(len(x), longest=max(x.shape[1], y.shape[1]))
        self.begin()
        held_out: Data | None = None if held_out_pairs is None else self.arrays(*held_out_pairs)
        settings = {**defaults.training("translator", len(x)), **training}
        self.train(
            model, (x, y), settings, validation=held_out, checkpoint=checkpoint, seed=self.seed
        )
        return self

    def _model(self, n_pairs: int, longest: int) -> EncoderDecoder:
        """Return an untrained model for texts of up to `longest` tokens."""
        settings = defaults.ENCODERS["translator"] | {"max_len": self.max_len or 2 * longest}
        if n_pairs < defaults.FEW_PAIRS:
            settings["dropout"] = defaults.DROPOUT
        config = self.complete_config(settings)
        if longest > config.max_len:
            raise ValueError(
                f"a text has {longest} tokens, those for its ends included; expected at most "
                f"max_len, {config.max_len}. Take a larger max_len, or leave long texts out"
            )
        source, target = self.tokenizers_
        return EncoderDecoder(
            config,
            source.vocab_size,
            target.vocab_size,
            decoder=self.decoder,
            padding_id=target.padding_id,
            begin_id=target.begin_id,
            end_id=target.end_id,
            seed=self.seed,
            dtype=self.dtype,
        )

    def _tokenizer(
        self, given: str | Tokenizer, side: str, texts: Sequence[str], drawn: Drawn
    ) -> Tokenizer:
        """Return a tokenizer of a side, made for its texts if only its name is given."""
        if isinstance(given, Tokenizer):
            return given
        name = defaults.tokenizer_for(texts) if given == AUTO else given
        return recall_tokenizer(
            drawn,
            f"tokenizer of the {side}",
            texts,
            {"tokenizer": name, "vocab_size": self.vocab_size},
            lambda: train_writing_tokenizer(name, texts, self.vocab_size),
        )

    def arrays(
        self, sources: Sequence[str], targets: Sequence[str]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the padded ids of both sides; targets have tokens for beginning and end."""
        target = self.tokenizers_[1]
        rows = [[target.begin_id, *target.ids(text), target.end_id] for text in targets]
        return self.source_ids(sources), pad_rows(rows, target.padding_id)[0]

    def source_ids(self, sources: Sequence[str]) -> np.ndarray:
        """Return the padded ids of sources, each followed by the end token."""
        source = self.tokenizers_[0]
        rows = [[*source.ids(text), source.end_id] for text in sources]
        return pad_rows(rows, source.padding_id)[0]

    def _read(self, sources: Any, name: str = "sources") -> tuple[list[str], np.ndarray]:
        """Return sources as a list and as ids; raise ValueError if one is too long."""
        self.check_trained()
        listed = check_texts(sources, name)
        ids, most = self.source_ids(listed), self.model.config.max_len
        if ids.shape[1] > most:
            i = int(np.argmax((ids != self.tokenizers_[0].padding_id).sum(axis=1)))
            raise ValueError(
                f"{name}[{i}] has {ids.shape[1]} tokens, the end token included; expected at most "
                f"{most}, the most that this model reads. Train it with max_len=... (--max-len on "
                "the command line), or shorten the text"
            )
        return listed, ids

    def translate(
        self,
        sources: Any,
        beams: int = 1,
        length_penalty: float = 0.6,
        batch_size: int = 256,
        communicator: Any = None,
    ) -> list[str]:
        """Return what the model writes for each source.

        Parameters
        ----------
        sources : sequence of str
        beams, length_penalty
            As in `EncoderDecoder.generate`.
        batch_size : int
            How many sources are translated at a time.
        communicator : optional
            Its ranks share the sources; all get the whole result.
        """
        batch_size = checks.positive("batch_size", batch_size)
        _, x = self._read(sources)
        most = self.model.decoder_config.max_len
        never = self._ids_without_token()
        with communicator_of(communicator).guard() as ranks:
            own_sources = x[ranks.shard(len(x))]
            written = [""] * len(own_sources)
            lengths = (own_sources != self.tokenizers_[0].padding_id).sum(axis=1)
            order = np.argsort(-lengths, kind="stable")
            for start in range(0, len(own_sources), batch_size):
                rows = order[start : start + batch_size]
                batch = own_sources[rows, : lengths[rows].max()]
                written_ids = self.model.generate(batch, most, beams, length_penalty, never=never)
                for row, ids in zip(rows, written_ids, strict=True):
                    written[row] = self.tokenizers_[1].decode(ids)
            return [text for texts in ranks.gather(written) for text in texts]

    predict = translate

    def score(self, sources: Any, targets: Any) -> float:
        """Return the share of sources for which it writes one of their targets."""
        return self.evaluate(sources, targets).exact

    def evaluate(
        self,
        sources: Any,
        targets: Any,
        beams: int = 1,
        batch_size: int = 256,
        communicator: Any = None,
    ) -> Translations:
        """Return how good the translations are; any target of a source counts as right."""
        sources, targets = check_pairs(sources, targets)
        right: dict[str, list[str]] = {}
        for source, target in zip(sources, targets, strict=True):
            right.setdefault(source, []).append(target)
        translated = self.translate(
            [*right], beams, batch_size=batch_size, communicator=communicator
        )
        return translations_of(right, translated, self.tokenizers_[1].ids)

    def check_measurable(self, name: str, *data: Any) -> None:
        """Raise what `evaluate` would raise for sources and targets."""
        sources, _ = check_pairs(*data)
        self._read(sources, f"the sources of {name}")

    def report(
        self,
        sources: Any,
        targets: Any = None,
        path: str | os.PathLike[str] = "report.html",
        *,
        samples: int | Sequence[int] = 4,
        title: str = "A model that translates: a look inside",
        overwrite: bool = False,
    ) -> Path:
        """Write an HTML file with the three attentions of some translations.

        `samples` is how many sources are shown, or which ones; `targets` are the right answers.
        With `overwrite`, an existing file is replaced.
        """
        from npformer.tasks.reports.attention_maps import WrittenText, write_report  # when needed
        from npformer.tasks.reports.report import check_path_of_report, sample_numbers

        self.check_trained()
        place = check_path_of_report(path, overwrite)
        listed = check_texts(sources, "sources")
        if targets is not None:
            listed, targets = check_pairs(listed, targets)
        shown = []
        source, target = self.tokenizers_
        for i in sample_numbers(samples, len(listed)):
            _, x = self._read([listed[i]])
            written = self.model.generate(x, never=self._ids_without_token())[0]
            text = target.decode(written)
            read = [[target.begin_id, *written][: self.model.decoder_config.max_len]]
            right = "" if targets is None or targets[i] == text else f" (right: {targets[i]})"
            names = source.tokens(x[0].tolist()), target.tokens(read[0])
            title_of = f"{listed[i]} \u2192 {text}{right}"
            shown.append(WrittenText(title_of, (x, np.array(read)), names))
        return write_report(self.model, shown, place, title, overwrite=overwrite)

    def _ids_without_token(self) -> list[int]:
        """Return the ids of targets that no token has."""
        target: Tokenizer = self.tokenizers_[1]
        return target.ids_without_token(self.model.target_vocab)

    def example(self, *data: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the first source, and its target up to the last token."""
        x, y = self.arrays(data[0][:1], data[1][:1])
        return x, y[:, :-1]

    def preparation(self) -> dict[str, Any]:
        """Return the tokenizers as plain values."""
        tokenizers = [tokenizer.to_dict() for tokenizer in self.tokenizers_]
        return {"tokenizers": tokenizers, "max_len": self.max_len}

    def sizes(self) -> dict[str, int]:
        """Return what the model must have by its attributes."""
        source, target = self.tokenizers_
        return {"source_vocab": source.vocab_size, "target_vocab": target.vocab_size}

    def restore(self, values: Mapping[str, Any]) -> None:
        """Take over the tokenizers."""
        self.tokenizer = self.tokenizers_ = [
            tokenizer_of(tokenizer) for tokenizer in values["tokenizers"]
        ]
        self.max_len = values["max_len"]


def _rows_of(texts: list[str], rows: np.ndarray) -> list[str]:
    return [texts[i] for i in rows]
