"""EncoderClassifier: an encoder as an estimator of scikit-learn."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from npformer.core import to_numpy
from npformer.models.losses import SoftmaxCrossEntropy
from npformer.optim import Adam
from npformer.tasks.estimators.estimator import Ensemble
from npformer.tasks.estimators.split import stratified_split
from npformer.tasks.estimators.unknown_settings import explain_unknown_settings
from npformer.tasks.sklearn.samples import samples_of
from npformer.tasks.sklearn.targets import classes_of, labels_of, numbers_of, weights_of
from npformer.tasks.sklearn.training import (
    Convergence,
    SampleSet,
    build,
    fit_options,
    holds_out,
    many,
)


@explain_unknown_settings
@dataclass(kw_only=True, eq=False, repr=False)
class EncoderClassifier(ClassifierMixin, BaseEstimator, Ensemble):  # type: ignore[misc]
    """A Transformer encoder that classifies token ids, series, or texts.

    X is one of

    - token ids: whole numbers, (n_samples, length), or a list of arrays (length_i,);
    - series: floats, (n_samples, length) or (n_samples, length, n_features), or a list of arrays
      (length_i, n_features);
    - texts: a list, an array, a Series of str, or a DataFrame of one column, also polars' and
      pyarrow's.

    Parameters
    ----------
    inputs : {"auto", "tokens", "series", "text"}
        What X holds. "auto": strings are texts, whole numbers token ids, and floats series. A table
        of counts needs "series".
    mixer : str or sequence of str
        What mixes tokens in each layer: "attention", "fourier", ..., see `npformer.MIXERS`.
    d_model, n_layers, n_heads, d_ff, activation, norm, positions : optional
    dropout, token_dropout, attention_dropout, ffn_dropout : float
        Settings of `npformer.EncoderConfig`. "auto": by the kind of inputs and the number of
        samples, see `npformer.tasks.estimators.defaults`.
    pooling : str
        As in `npformer.SequenceClassifier`. "auto": "flatten" for series of one length, otherwise
        "mean".
    max_len : int, optional
        The longest sample that can be predicted. None: the longest in training; for texts 256
        tokens. Longer texts are cut, with a warning.
    vocab_size : int, optional
        The number of token ids. None: one more than the largest in training. For texts, the most
        tokens in the vocabulary.
    padding_id : int, optional
        The token id of padding.
    tokenizer : {"word", "wordpiece", "bpe"} or npformer.data.tokenizers.Tokenizer
        For texts, see `npformer.TextClassifier`.
    scale : bool
        Whether series are scaled to mean 0 and standard deviation 1, by those of the training
        part: in each column of a 2-D array, otherwise in each feature.
    max_iter : int
        The most epochs. "auto": about 4000 steps, from 10 to 100 epochs; for texts as in
        `npformer.TextClassifier`, or more if there are few. The learning rate falls to 0 over them.
    batch_size : int
        "auto": about the square root of the number of samples, from 32 to 256.
    learning_rate, weight_decay : float
        Of Adam. "auto": 0.001 and 0.01, for texts 0.001 and 0.
    clip_norm, label_smoothing : float
        As in `npformer.fit`.
    early_stopping : bool
        Whether a part of the data is held out, the same share of each class, and the epoch with the
        best accuracy on it is kept. If not, training ends when its loss stops falling. "auto": from
        2000 samples on; for texts, from 64 on.
    validation_fraction : float
        The share that is held out.
    n_iter_no_change, tol : int, and float
        Training ends after n_iter_no_change epochs in which its loss has not fallen by tol; with
        early stopping, neither the loss nor the share of errors on the held-out part.
    class_weight : dict or "balanced", optional
    warm_start : bool
        Whether `fit` continues with the weights of the previous call.
    random_state : int, RandomState or None
        For the weights, the held-out part, the order of samples, and dropout.
    n_jobs : int, optional
        Processes that share a batch. None: 1. -1: as many as pay off.
    verbose : bool or "auto"
        Whether to show a progress bar. "auto": on a terminal.
    dtype : {"auto", "float32", "float64"}
        Of weights and probabilities. "auto": float32, and float64 for up to 64 samples.

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
    n_features_in_ : int
        Columns of X; if X has three axes or is a list, features of a token. Texts have none.
    feature_names_in_ : array of str
        If X was a DataFrame.
    inputs_ : str
        What X held: "tokens", "series" or "text".
    model_ : npformer.SequenceClassifier
    loss_curve_ : list of float
        The training loss of each epoch.
    best_loss_ : float
        The lowest of them.
    validation_scores_, best_validation_score_ : list of float, and float, or None
        Accuracy on the held-out part after each epoch, and the best one.
    n_iter_ : int
        The number of epochs.
    history_ : npformer.History
        Of the last `fit`.
    """

    inputs: str = "auto"
    mixer: Any = "attention"
    d_model: int | str = "auto"
    n_layers: int | str = "auto"
    n_heads: int | str = "auto"
    d_ff: int | str = "auto"
    dropout: float | str = "auto"
    token_dropout: float | str = "auto"
    attention_dropout: float | str = "auto"
    ffn_dropout: float | str = "auto"
    activation: str = "auto"
    norm: str = "auto"
    positions: str = "auto"
    pooling: str = "auto"
    max_len: int | None = None
    vocab_size: int | None = None
    padding_id: int | None = None
    tokenizer: Any = "word"
    scale: bool = True
    max_iter: int | str = "auto"
    batch_size: int | str = "auto"
    learning_rate: float | str = "auto"
    weight_decay: float | str = "auto"
    clip_norm: float | None = 1.0
    label_smoothing: float = 0.0
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    tol: float = 1e-4
    class_weight: Any = None
    warm_start: bool = False
    random_state: Any = None
    n_jobs: int | None = None
    verbose: bool | str = "auto"
    dtype: str = "auto"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on labelled samples.

        Parameters
        ----------
        X : samples, see the class
        y : array, shape (n_samples,)
            Labels: strings or whole numbers.
        sample_weight : array, shape (n_samples,), optional
            At least 0. Samples of weight 0 are left out; the others count in the loss, in the means
            that series are scaled by, and in the validation score.
        """
        again = self.warm_start and hasattr(self, "model_")
        kind, data = self._read(X, y, sample_weight, reset=not again)
        classes = self.classes_ if again else classes_of(data.labels)
        data.labels = numbers_of(data.labels, classes)
        rng = self._generator()
        held_out: SampleSet | None = None
        if holds_out(self, kind, len(data)):
            rows, rest = stratified_split(data.labels, self.validation_fraction, rng)
            data, held_out = data.rows(rows), data.rows(rest)
        if not again:
            self._begin(kind, classes, data, len(data), rng)
        weights = None if held_out is None else held_out.weights
        convergence = Convergence(self.tol, self.n_iter_no_change, weights)
        options = fit_options(self, len(data), len(data)) | {"callbacks": [convergence]}
        if held_out is not None:
            options["metric"] = convergence
        self.loss_curve_: list[float] = []
        self._train(data, held_out, rng, **options)
        self._optimizer: Adam | None = None  # its learning rate has fallen to 0
        self.validation_scores_ = convergence.scores or None
        self.best_validation_score_ = max(convergence.scores, default=None)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train for one epoch, at a constant learning rate.

        The first call decides what the model knows of X: scaling, vocabulary and size, the longest
        sample. Ids that first occur later need `vocab_size`, and longer samples `max_len`.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array, optional
            All labels that will occur; needed in the first call.
        """
        first = not hasattr(self, "model_")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        kind, data = self._read(X, y, sample_weight, reset=first)
        known = self.classes_ if classes is None else classes_of(np.asarray(classes))
        if not first and not np.array_equal(known, self.classes_):
            raise ValueError(
                f"classes is {known}; expected {self.classes_}, those of the first call, or None"
            )
        data.labels = numbers_of(data.labels, known)
        rng = self._generator()
        if first:
            self._begin(kind, known, data, many(len(data)), rng)
            self.loss_curve_ = []
        options = fit_options(self, len(data), many(len(data))) | {"epochs": 1}
        if self._optimizer is None:
            self._optimizer = Adam(
                self.model_.parameters(), lr=options["lr"], weight_decay=options["weight_decay"]
            )
        self._train(data, None, rng, **options, optimizer=self._optimizer)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable label of each sample."""
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n_samples, n_classes), ordered as `classes_`."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of `predict_proba`, exact even where it is 0."""
        check_is_fitted(self)
        _, samples = samples_of(self, X, reset=False)
        x, mask = self.reader_.read(samples)
        logits = self.model_.predict_in_batches(to_numpy, x, mask)
        return SoftmaxCrossEntropy().log_probabilities(logits).astype(logits.dtype)

    model_ = Ensemble.model

    def model_part(self) -> tuple[list[Any], dict[str, Any], str]:
        """Return, for ONNX, the model, and what is around it: as JSON values, and as text."""
        check_is_fitted(self)
        return self.models_, *self.reader_.around(self.classes_, self.reader_.preparation())

    def _read(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[str, SampleSet]:
        """Return the kind of X, and its samples with labels, without those of weight 0."""
        kind, samples = samples_of(self, X, reset=reset)
        y = labels_of(self, samples, y)
        data = SampleSet(samples, y, weights_of(self, samples, y, sample_weight))
        return kind, data if data.weights.all() else data.rows(np.flatnonzero(data.weights))

    def _begin(
        self, kind: str, classes: Any, data: SampleSet, n: int, rng: np.random.Generator
    ) -> None:
        """Make a model for n samples, and the reader of its inputs."""
        self.reader_, model = build(self, kind, data, n, len(classes), rng)
        self.models_, self.inputs_, self.classes_ = [model], kind, classes
        self._optimizer = None

    def _train(
        self, data: SampleSet, held_out: SampleSet | None, rng: np.random.Generator, **options: Any
    ) -> None:
        """Train the model on some samples, and keep the history."""
        if (data.weights != data.weights[0]).any():
            options["sample_weight"] = data.weights
        samples = data.read(self.reader_)
        validation = None if held_out is None else held_out.read(self.reader_)
        model = self.model_
        self.begin()
        self.train(model, samples, options, validation=validation, seed=rng)
        self.loss_curve_ += self.history_.train_loss
        self.best_loss_, self.n_iter_ = min(self.loss_curve_), len(self.loss_curve_)

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = self.inputs != "text"
        tags.input_tags.one_d_array = self.inputs == "text"
        tags.input_tags.three_d_array = self.inputs in ("auto", "series")
        tags.input_tags.string = self.inputs in ("auto", "text")
        tags.input_tags.categorical = tags.input_tags.positive_only = self.inputs == "tokens"
        return tags
