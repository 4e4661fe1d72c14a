"""TextClassifier: from strings to labels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from npformer.core import checks
from npformer.data.lists import check_list
from npformer.data.tokenizers import TOKENIZERS, Tokenizer
from npformer.interop.tokenizers import tokenizer_of
from npformer.models import EncoderConfig
from npformer.models.trainable import SequenceClassifier, take_over
from npformer.tasks.estimators import defaults
from npformer.tasks.estimators.classifier import Classifier
from npformer.tasks.estimators.explanation import Explanation, explain_text
from npformer.tasks.estimators.filling import open_model
from npformer.tasks.estimators.fitting_mixers import classifier_for, set_usual_positions
from npformer.tasks.estimators.readers import TextReader
from npformer.tasks.estimators.text_filler import TextFiller
from npformer.tasks.estimators.unknown_settings import explain_unknown_settings

if TYPE_CHECKING:
    from npformer.interop import PretrainedEncoder


@explain_unknown_settings
@dataclass(kw_only=True, eq=False, repr=False)
class TextClassifier(Classifier):
    """A text classifier: tokenizer, class names and model in one.

        classifier = npformer.TextClassifier().fit(texts, labels)
        classifier.predict(["How do I change my password?"])
        npformer.save(classifier, "questions.safetensors")  # and npformer.load

    Parameters
    ----------
    config : EncoderConfig, or mapping of some of its settings, optional
        The encoder. For settings that are not given, see `npformer.tasks.estimators.defaults`.
    tokenizer : {"word", "wordpiece", "bpe"} or Tokenizer
        "word": words and punctuation, without a library. "wordpiece", "bpe": pieces of words, by
        Hugging Face's tokenizers (extra ``text``). Each gets its vocabulary from the training
        texts. A `Tokenizer`, such as `npformer.interop.tokenizers.read_tokenizer` returns, is used
        as it is.
    pretrained : str, path, TextFiller or PretrainedEncoder, optional
        A folder that `npformer pretrain` wrote, or one in Hugging Face's layout, see
        `npformer.from_pretrained`: training starts from its weights, with a new head, and uses its
        tokenizer; `config` and `tokenizer` must not be given. The first gets rates by layer and
        more epochs: see `npformer.tasks.estimators.defaults`.
    freeze : list of str
        Parameters that are not trained, see `Layer.freeze`: ``["embed.*", "encoder.*"]`` trains
        only the head.
    vocab_size, min_count, lower, ngrams : optional
        As in `npformer.data.tokenizers.train_tokenizer`; `ngrams` is for "word" only, and by
        default 4 for short texts: see `npformer.tasks.estimators.defaults`.
    max_len : int, optional
        How many tokens of a text are read at most. None: 256.
    pooling : str, optional
        As in `SequenceClassifier`. None: "mean"; "first" after an odd number of Fourier layers.
    wide : bool
        Whether a linear map of tokens and pairs of neighbours is trained beside the encoder, see
        `npformer.tasks.wide.Wide`. Never beside weights in Hugging Face's layout.
    members : int, optional
        How many models are trained, with different seeds; their probabilities are averaged. None:
        2 for few texts, else 1.
    seed : int
        For the validation part, the weights, the order of samples and dropout. Each further member
        has its own seed, which follows from this one.
    dtype : {"float32", "float64"}
    backend : str
        Where it trains and predicts; see `to`.

    Attributes
    ----------
    classes_ : array
        The labels that it tells apart, sorted: the columns of `predict_proba`.
    tokenizer_ : Tokenizer
    models_, histories_ : list
        A `SequenceClassifier` for each member, and its `History`; `model` and `history_`: the
        first.
    """

    tokenizer: str | Tokenizer = "word"
    pretrained: str | os.PathLike[str] | TextFiller | PretrainedEncoder | None = None
    freeze: Sequence[str] = ()
    vocab_size: int | None = None
    min_count: int | None = None
    lower: bool | None = None
    ngrams: int | None = None
    wide: bool = True

    def kind(self) -> str:
        """Return what `npformer.tasks.estimators.defaults` calls the samples."""
        if self.pretrained is None:
            return "text"
        by_filler = isinstance(getattr(self, "pretrained_", None), TextFiller)
        return "tuned" if by_filler else "pretrained"

    def check(self) -> None:
        """Raise ValueError or TypeError for a wrong argument of `__init__`; `fit` calls it."""
        super().check()
        self.check_optional("vocab_size", "min_count")
        self.check_optional("ngrams", at_least=0)
        if self.lower is not None:
            checks.flag("lower", self.lower)
        checks.flag("wide", self.wide)
        self._check_tokenizer()
        check_list("freeze", self.freeze, "patterns, such as 'embed.*'")
        if self.pretrained is not None:
            decided = self.config is not None or self.max_len is not None
            if decided or self.tokenizer != "word" or self._vocabulary():
                raise ValueError(
                    "pretrained is given together with config, a tokenizer, its settings or "
                    "max_len, which the folder decides; expected only pretrained"
                )

    def _check_tokenizer(self) -> None:
        """Raise ValueError for an unknown tokenizer, or settings that do not go with it."""
        has_vocabulary = isinstance(self.tokenizer, Tokenizer)
        if not has_vocabulary:
            checks.choice("tokenizer", self.tokenizer, TOKENIZERS)
        if self.ngrams and self.tokenizer != "word":
            raise ValueError(f"ngrams is {self.ngrams}; expected only with tokenizer='word'")
        if has_vocabulary and (settings := self._vocabulary()):
            raise ValueError(
                f"{', '.join(settings)} is given together with a Tokenizer, which has a "
                "vocabulary; expected only one of the two"
            )

    def _vocabulary(self) -> dict[str, Any]:
        """Return the settings of the vocabulary that were given."""
        names = ["vocab_size", "min_count", "lower"]
        if self.tokenizer == "word":
            names.append("ngrams")
        settings = {name: getattr(self, name) for name in names}
        return {name: value for name, value in settings.items() if value is not None}

    def reader(self) -> TextReader:
        """Return a reader that has learned nothing yet."""
        pretrained = self.pretrained
        if pretrained is None:
            return TextReader(
                max_len=self.max_len_of_settings(),
                tokenizer=self.tokenizer,
                vocabulary=self._vocabulary(),
                wide=self.wide,
                refuse_empty=True,
            )
        if isinstance(pretrained, str | os.PathLike):
            pretrained = open_model(pretrained)
        self.pretrained_: Any = pretrained
        if isinstance(pretrained, TextFiller):
            return TextReader(
                max_len=pretrained.model.config.max_len,
                tokenizer=pretrained.tokenizer_,
                wide=self.wide,
                refuse_empty=True,
            )
        from npformer import interop  # when needed

        advice = "npformer pretrain writes a TextFiller, with which training may begin, too"
        checks.instance("pretrained", pretrained, interop.PretrainedEncoder, advice)
        return TextReader(pretrained.max_len, pretrained.tokenizer, refuse_empty=True)

    @property
    def tokenizer_(self) -> Tokenizer:
        """The tokenizer with its vocabulary."""
        self.check_trained()
        return self.reader_.tokenizer  # type: ignore[no-any-return]

    def unknown(self, samples: Sequence[str]) -> list[int]:
        """Return the numbers of the texts without any token in the vocabulary."""
        unknown, ids = self.tokenizer_.unknown_id, self.tokenizer_.ids
        if unknown is None:
            return []
        return [i for i, text in enumerate(samples) if set(ids(text)) <= {unknown}]

    def explain(self, text: str) -> Explanation:
        """Return why a text gets its label: printed, the words for the label and against it.

            print(classifier.explain("Great food, but the service was slow."))

        With a wide part, the numbers are those that the report shows. Otherwise each word is left
        out in turn. `npformer.explain(layer, x)` has the attention weights of a layer instead.
        """
        checks.text("text", text)
        x, mask = self.arrays([text])
        words = self.reader_.words_of(text)
        return explain_text(text, x, mask, words, self.models_, self.classes_.tolist())

    def complete_config(self, default_settings: Mapping[str, Any]) -> EncoderConfig:
        """Return the configuration; positions that are not given fit the mixer."""
        return set_usual_positions(super().complete_config(default_settings), self.config)

    def build(self, n_classes: int, seed: int) -> SequenceClassifier:
        """Return an untrained model for the vocabulary."""
        model: SequenceClassifier
        if self.pretrained is None:
            model = super().build(n_classes, seed)
        elif isinstance(self.pretrained_, TextFiller):
            filler = self.pretrained_.model
            config = replace(filler.config, **defaults.ENCODERS["tuned"])
            model = classifier_for(
                self.reader_, config, n_classes, self.pooling, seed=seed, dtype=filler.dtype
            )
            model = take_over(model, filler)
        else:
            model = self.pretrained_.classifier(n_classes, pooling=self.pooling, seed=seed)
        return model.freeze(*self.freeze) if self.freeze else model

    def preparation(self) -> dict[str, Any]:
        """Return the tokenizer as plain values."""
        return {**self.reader_.preparation(), "max_len": self.max_len, "wide": self.wide}

    def restore(self, values: Mapping[str, Any]) -> None:
        """Take over the tokenizer."""
        self.tokenizer = tokenizer_of(values["tokenizer"])
        self.max_len, self.wide = values["max_len"], values["wide"]
        self.reader_ = self.reader()
