"""TextClassifier: from strings to labels."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from npformer.core import checks, described
from npformer.data.tokenizers import (
    TOKENIZERS,
    Tokenizer,
    WordTokenizer,
    frequent_pairs,
    tokenizer_of,
    train_tokenizer,
)
from npformer.data.tokenizers.tokenizer import checked_texts
from npformer.models import EncoderConfig
from npformer.tasks.estimators import text_defaults
from npformer.tasks.estimators.fitting_mixers import usual_pooling, usual_positions
from npformer.tasks.estimators.classifier import Classifier
from npformer.training.trainable import SequenceClassifier, WideSequenceClassifier

if TYPE_CHECKING:
    from npformer.interop import PretrainedEncoder


class TextClassifier(Classifier):
    """A text classifier: tokenizer, class names and model in one.

        classifier = npformer.TextClassifier().fit(texts, labels)
        classifier.predict(["How do I change my password?"])
        npformer.save(classifier, "questions.safetensors")  # and npformer.load

    Parameters
    ----------
    config : EncoderConfig, or mapping of some of its settings, optional
        The encoder. For settings that are not given, see `npformer.tasks.estimators.text_defaults`.
    tokenizer : {"word", "wordpiece", "bpe"} or Tokenizer
        "word": words and punctuation, without a library. "wordpiece", "bpe": pieces of words, by
        Hugging Face's tokenizers (extra ``text``). Each gets its vocabulary from the training
        texts. A `Tokenizer`, such as `npformer.data.tokenizers.read_tokenizer` returns, is used
        as it is.
    pretrained : str, path or PretrainedEncoder, optional
        A folder in Hugging Face's layout, see `npformer.from_pretrained`: training starts from its
        weights and uses its tokenizer; `config` and `tokenizer` must not be given.
    freeze : list of str
        Parameters that are not trained, see `Layer.freeze`: ``["embed.*", "encoder.*"]`` trains
        only the head.
    vocab_size, min_count, lower, ngrams : optional
        As in `npformer.data.tokenizers.train_tokenizer`; `ngrams` is for "word" only, and by
        default 4 for short texts: see `npformer.tasks.estimators.text_defaults`.
    max_len : int, optional
        How many tokens of a text are read at most. None: 256.
    pooling : str, optional
        As in `SequenceClassifier`. None: "mean"; "first" after an odd number of Fourier layers.
    wide : bool
        Whether a linear map of tokens and pairs of neighbours is trained beside the encoder, see
        `npformer.layers.Wide`. Never beside pretrained weights.
    members : int, optional
        How many models are trained, with different seeds; their probabilities are averaged. None:
        2 for few texts, else 1.
    seed : int
        For the validation part, the weights, the order of samples and dropout.
    dtype : {"float32", "float64"}
    backend : str
        Where it trains and predicts; see `to`.

    Attributes
    ----------
    tokenizer : Tokenizer, or its name before `fit`
    classes : list
        The labels that it tells apart, sorted: the columns of `predict_probabilities`.
    models, histories : list
        A `SequenceClassifier` for each member, and its `History`; `model` and `history`: the first.
    """

    reads = "the tokenizer turns texts into ids and a mask, cut at max_len"

    def __init__(
        self,
        config: EncoderConfig | Mapping[str, Any] | None = None,
        *,
        tokenizer: str | Tokenizer = "word",
        pretrained: str | os.PathLike[str] | PretrainedEncoder | None = None,
        freeze: Sequence[str] = (),
        vocab_size: int | None = None,
        min_count: int | None = None,
        lower: bool | None = None,
        ngrams: int | None = None,
        max_len: int | None = None,
        pooling: str | None = None,
        wide: bool = True,
        members: int | None = None,
        seed: int = 0,
        dtype: str = "float32",
        backend: str = "numpy",
    ) -> None:
        super().__init__(
            config, pooling=pooling, members=members, seed=seed, dtype=dtype, backend=backend
        )
        for name, value in (("vocab_size", vocab_size), ("min_count", min_count)):
            if value is not None:
                checks.positive(name, value)
        if lower is not None:
            checks.flag("lower", lower)
        if ngrams is not None:
            checks.whole("ngrams", ngrams, at_least=0)
            if ngrams and tokenizer != "word":
                raise ValueError(f"ngrams is {ngrams}; expected only with tokenizer='word'")
        given = {
            "vocab_size": vocab_size,
            "min_count": min_count,
            "lower": lower,
            "ngrams": ngrams if tokenizer == "word" else None,
        }
        self.vocabulary = {name: value for name, value in given.items() if value is not None}
        if isinstance(tokenizer, Tokenizer):
            if self.vocabulary:
                raise ValueError(
                    f"{', '.join(self.vocabulary)} is given together with a Tokenizer, which has a "
                    "vocabulary; expected only one of the two"
                )
        elif isinstance(tokenizer, str):
            checks.choice("tokenizer", tokenizer, TOKENIZERS)
        else:
            raise TypeError(
                f"tokenizer is {described(tokenizer)}; expected one of {', '.join(TOKENIZERS)}, or "
                "an npformer.data.tokenizers.Tokenizer"
            )
        if isinstance(freeze, str) or not isinstance(freeze, Sequence):
            raise TypeError(
                f"freeze is {freeze!r}; expected a list of patterns, such as ['embed.*']"
            )
        self.freeze = tuple(freeze)
        checks.flag("wide", wide)
        self.wide = wide
        self._pairs: tuple[np.ndarray, np.ndarray] | None = None
        self.pretrained: PretrainedEncoder | None = None
        if pretrained is not None:
            if config is not None or tokenizer != "word" or self.vocabulary or max_len is not None:
                raise ValueError(
                    "pretrained is given together with config, a tokenizer, its settings or "
                    "max_len, which the folder decides; expected only pretrained"
                )
            from npformer import interop  # when needed

            if isinstance(pretrained, str | os.PathLike):
                pretrained = interop.from_pretrained(pretrained)
            checks.instance("pretrained", pretrained, interop.PretrainedEncoder)
            assert isinstance(pretrained, interop.PretrainedEncoder)
            self.pretrained = pretrained
            tokenizer, self.dtype = pretrained.tokenizer, pretrained.encoder.dtype
        self._given = tokenizer
        self.tokenizer = tokenizer
        self.max_len = None if max_len is None else checks.positive("max_len", max_len)
        self._learned = False
        self._told_of_cut = False

    def checked(self, samples: Any, name: str) -> list[str]:
        """Check texts, and return them as a list."""
        return checked_texts(samples, name)

    def learn(self, samples: Sequence[str]) -> None:
        """Make the vocabulary."""
        if empty := [i for i, text in enumerate(samples) if not text.strip()]:
            raise ValueError(
                f"{len(empty)} of {len(samples)} texts to train on are empty, the first is text "
                f"number {empty[0] + 1}; expected words. Leave these samples out"
            )
        if isinstance(self._given, str):
            usual = dict(text_defaults.VOCABULARY)
            if self._given == "word":
                usual["ngrams"] = text_defaults.ngrams(samples)
            settings = {**usual, **self.vocabulary}
            self.tokenizer = train_tokenizer(self._given, samples, **settings)
        self._learned = True
        if self.wide and self.pretrained is None:
            tokenizer = self.of_tokenizer
            parts = tokenizer.parts() if isinstance(tokenizer, WordTokenizer) else ()
            self._pairs = frequent_pairs(
                (tokenizer.ids(text) for text in samples), tokenizer.vocab_size, single=parts
            )

    @property
    def of_tokenizer(self) -> Tokenizer:
        """The tokenizer, which must have its vocabulary."""
        if isinstance(self.tokenizer, str) or not (self._learned or self.models):
            self.check_trained()
        assert isinstance(self.tokenizer, Tokenizer)
        return self.tokenizer

    def arrays(self, samples: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return token ids and their mask; warn once if texts had to be cut."""
        tokenizer = self.of_tokenizer
        max_len = self.models[0].config.max_len if self.models else self._max_len()
        ids, mask = tokenizer.encode(samples, max_len)
        if ids.shape[1] == max_len and not self._told_of_cut:
            longer = sum(len(tokenizer.ids(text)) > max_len for text in samples)
            if longer:
                self._told_of_cut = True
                warnings.warn(
                    f"{longer:,} of {len(samples):,} texts have more than {max_len} tokens, and "
                    "only their beginning is read. To read more: TextClassifier(max_len=...), or "
                    "--max-len",
                    stacklevel=3,
                )
        return ids, mask

    def unknown(self, samples: Sequence[str]) -> list[int]:
        """Return the numbers of the texts without any token in the vocabulary."""
        tokenizer = self.of_tokenizer
        if tokenizer.unknown_id is None:
            return []
        return [
            i
            for i, text in enumerate(samples)
            if set(tokenizer.ids(text)) <= {tokenizer.unknown_id}
        ]

    def _max_len(self) -> int:
        """Return the most tokens that a new model will read."""
        if self.pretrained is not None:
            return self.pretrained.max_len
        if isinstance(self.config, EncoderConfig):
            return self.config.max_len
        if isinstance(self.config, Mapping) and "max_len" in self.config:
            return int(self.config["max_len"])
        return self.max_len or text_defaults.MAX_LEN

    def build(self, n_classes: int, seed: int) -> SequenceClassifier:
        """Return an untrained model for the vocabulary."""
        tokenizer = self.of_tokenizer
        if self.pretrained is not None:
            model = self.pretrained.classifier(n_classes, pooling=self.pooling, seed=seed)
            return model.freeze(*self.freeze) if self.freeze else model
        config = self.config
        if not isinstance(config, EncoderConfig):
            usual = text_defaults.CONFIG | {"max_len": self._max_len()}
            given = dict(config or {})
            config = EncoderConfig(**{**usual, **given})
            if "positions" not in given:
                config = replace(config, positions=usual_positions(config))
        kind: type[SequenceClassifier] = SequenceClassifier
        of_pairs: dict[str, Any] = {}
        if self._pairs is not None:
            kind, of_pairs = WideSequenceClassifier, {"n_pairs": len(self._pairs[0])}
        model = kind(
            config,
            n_classes,
            vocab_size=tokenizer.vocab_size,
            pooling=self.pooling or usual_pooling(config),
            padding_id=tokenizer.padding_id,
            expects_mask=True,
            seed=seed,
            dtype=self.dtype,
            **of_pairs,
        )
        if isinstance(model, WideSequenceClassifier) and self._pairs is not None:
            model.wide.learn(*self._pairs)
        return model.freeze(*self.freeze) if self.freeze else model

    def usual_training(self, n_samples: int) -> dict[str, Any]:
        """Return the training settings for `n_samples` texts."""
        if self.pretrained is not None:
            return text_defaults.FINE_TUNING
        return text_defaults.training(n_samples)

    def usual_members(self, n_samples: int) -> int:
        """Return how many models are trained on `n_samples` texts."""
        return 1 if self.pretrained is not None else text_defaults.members(n_samples)

    def usual_calibration(self, n_samples: int) -> float:
        """Return the share of `n_samples` texts that is held out to fit the temperature on."""
        return text_defaults.calibration(n_samples)

    def token_names(self) -> list[str]:
        """Return the token of each id."""
        return self.of_tokenizer.tokens(range(self.of_tokenizer.vocab_size))

    def preparation(self) -> dict[str, Any]:
        """Return the tokenizer as plain values."""
        return {
            "tokenizer": self.of_tokenizer.to_dict(),
            "max_len": self.max_len,
            "wide": self.wide,
        }

    @classmethod
    def prepared(cls, values: Mapping[str, Any], **arguments: Any) -> Self:
        """Return a classifier without models from what `preparation` returned."""
        tokenizer = tokenizer_of(values["tokenizer"])
        return cls(tokenizer=tokenizer, max_len=values["max_len"], wide=values["wide"], **arguments)
