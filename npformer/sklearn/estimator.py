"""EncoderClassifier: an encoder as an estimator of scikit-learn."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state, compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _check_partial_fit_first_call, check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from npformer import training
from npformer.classifier import SequenceClassifier
from npformer.core import checks, to_numpy
from npformer.losses import SoftmaxCrossEntropy
from npformer.models import EncoderConfig
from npformer.optim import Adam, cosine
from npformer.sklearn import defaults
from npformer.sklearn.readers import SeriesReader, TextReader, TokenReader
from npformer.sklearn.samples import samples_of
from npformer.sklearn.weighted import WeightedCrossEntropy


class EncoderClassifier(ClassifierMixin, BaseEstimator):
    """A Transformer encoder that classifies token ids, series or texts."""

    def __init__(
        self,
        *,
        inputs="auto",
        mixer="attention",
        d_model=64,
        n_layers=2,
        n_heads=4,
        d_ff=128,
        dropout=0.0,
        activation="gelu",
        norm="post",
        positions="learned",
        pooling="auto",
        max_len=None,
        vocab_size=None,
        padding_id=None,
        tokenizer="word",
        scale=True,
        max_iter="auto",
        batch_size="auto",
        learning_rate=1e-3,
        weight_decay=0.01,
        clip_norm=1.0,
        label_smoothing=0.0,
        early_stopping="auto",
        validation_fraction=0.1,
        n_iter_no_change=10,
        tol=1e-4,
        class_weight=None,
        warm_start=False,
        random_state=None,
        n_jobs=None,
        verbose=False,
        dtype="float32",
    ):
        self.inputs = inputs
        self.mixer = mixer
        self.d_model = d_model
        self.n_layers = n_layers
        self.n_heads = n_heads
        self.d_ff = d_ff
        self.dropout = dropout
        self.activation = activation
        self.norm = norm
        self.positions = positions
        self.pooling = pooling
        self.max_len = max_len
        self.vocab_size = vocab_size
        self.padding_id = padding_id
        self.tokenizer = tokenizer
        self.scale = scale
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.clip_norm = clip_norm
        self.label_smoothing = label_smoothing
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.dtype = dtype

    def fit(self, X, y, sample_weight=None):
        again = self.warm_start and hasattr(self, "model_")
        kind, samples = samples_of(self, X, reset=not again)
        y = self._labels_of(samples, y)
        classes, labels = np.unique(y, return_inverse=True)
        if again and not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"y has the classes {classes} and warm_start continues a training on "
                f"{self.classes_}; expected the same. Set warm_start=False to begin anew"
            )
        samples, labels, weights = self._weighted(samples, labels, classes, sample_weight)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        train, held = self._parts(labels, rng)
        if not again:
            self.inputs_, self.classes_ = kind, classes
            self._build(_rows(samples, train), weights[train], rng)
        x, mask = self.reader_.read(samples)
        n, size = len(train), self._batch_size(len(train))
        epochs = (
            defaults.epochs_for(n, size)
            if self.max_iter == "auto"
            else checks.positive("max_iter", self.max_iter)
        )
        steps = epochs * -(-n // size)
        callbacks = []
        if not len(held):
            callbacks.append(_Converged(self.tol, self.n_iter_no_change))
        history = self._run(
            x, mask, labels, weights, train, held, rng,
            epochs=epochs,
            batch_size=size,
            patience=self.n_iter_no_change if len(held) else None,
            lr=self.learning_rate,
            weight_decay=self.weight_decay,
            schedule=cosine(steps, warmup=min(steps // 10, 1000)) if steps > 1 else None,
            callbacks=callbacks,
        )
        self.loss_curve_ = history.train_loss
        self.n_iter_ = len(history.train_loss)
        self.validation_scores_ = history.validation_accuracy if len(held) else None
        self.best_validation_score_ = (
            history.validation_accuracy[history.best_epoch - 1] if len(held) else None
        )
        self.best_loss_ = min(history.train_loss)
        self.history_ = history
        self._optimizer = None
        return self

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        first = _check_partial_fit_first_call(self, classes)
        first = first or not hasattr(self, "model_")
        kind, samples = samples_of(self, X, reset=first)
        y = self._labels_of(samples, y)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y has the classes {unknown}, not in {self.classes_}")
        labels = np.searchsorted(self.classes_, y)
        samples, labels, weights = self._weighted(
            samples, labels, self.classes_, sample_weight, partial=True
        )
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        if first:
            self.inputs_ = kind
            self._build(samples, weights, rng)
            self.loss_curve_, self.n_iter_ = [], 0
        if getattr(self, "_optimizer", None) is None:
            self._optimizer = Adam(
                self.model_.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
            )
        x, mask = self.reader_.read(samples)
        n = len(labels)
        history = self._run(
            x, mask, labels, weights, np.arange(n), [], rng,
            epochs=1, batch_size=self._batch_size(n), optimizer=self._optimizer,
        )
        self.loss_curve_ += history.train_loss
        self.n_iter_ += 1
        self.best_loss_ = min(self.loss_curve_)
        return self

    def _run(self, x, mask, labels, weights, train, held, rng, **options):
        y, loss = labels, None
        if (weights != weights[0]).any():
            y = np.stack([labels, weights], axis=1)
            loss = WeightedCrossEntropy(self.label_smoothing)
            options["loss"] = loss
        else:
            options["label_smoothing"] = self.label_smoothing

        def part(rows):
            return (x[rows], y[rows]) if mask is None else (x[rows], y[rows], mask[rows])

        alone = self.n_jobs in (None, 1)
        return training.fit(
            self.model_,
            part(train),
            validation=part(held) if len(held) else None,
            clip_norm=self.clip_norm,
            seed=rng,
            workers=1 if alone else "auto" if self.n_jobs == -1 else self.n_jobs,
            processes=False if alone else "auto",
            progress=bool(self.verbose),
            **options,
        )

    def _batch_size(self, n):
        if self.batch_size == "auto":
            return defaults.batch_size_for(n)
        return min(checks.positive("batch_size", self.batch_size), n)

    def _labels_of(self, samples, y):
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        check_consistent_length(samples, y)
        return y

    def _weighted(self, samples, labels, classes, sample_weight, partial=False):
        weights = _check_sample_weight(sample_weight, samples, dtype=np.float64, ensure_non_negative=True)
        if self.class_weight is not None:
            weights = weights * compute_sample_weight(self.class_weight, classes[labels])
        rows = np.flatnonzero(weights)
        if len(rows) == 0:
            raise ValueError("all sample weights are zero; expected at least one above")
        if len(rows) < len(labels):
            samples, labels, weights = _rows(samples, rows), labels[rows], weights[rows]
        if not partial and len(np.unique(labels)) < 2:
            raise ValueError(
                f"y holds one class, {classes[labels[0]]!r}, in samples of weight above zero; expected at "
                "least 2 classes"
            )
        return samples, labels, weights

    def _parts(self, labels, rng):
        everything = np.arange(len(labels))
        early = self.early_stopping
        if early == "auto":
            early = len(labels) >= defaults.ENOUGH
        if not early:
            return everything, everything[:0]
        train, held = defaults.hold_out(labels, self.validation_fraction, rng)
        if len(held) < 1:
            if self.early_stopping == "auto":
                return everything, everything[:0]
            raise ValueError("The validation set is too small.")
        return train, held

    def _build(self, samples, weights, rng):
        if self.inputs_ == "tokens":
            reader = TokenReader(self.vocab_size, self.padding_id)
        elif self.inputs_ == "series":
            reader = SeriesReader(self.scale, self.dtype)
        else:
            reader = TextReader(self.tokenizer, self.max_len)
        reader.learn(samples, weights)
        longest = max(len(each) for each in samples)
        fixed = not isinstance(samples, list)
        pooling = self.pooling
        if pooling == "auto":
            pooling = "flatten" if fixed and self.inputs_ == "series" else "mean"
        config = EncoderConfig(
            d_model=self.d_model, n_layers=self.n_layers, n_heads=self.n_heads, d_ff=self.d_ff,
            max_len=longest if self.max_len is None else self.max_len,
            mixer=self.mixer, dropout=self.dropout, activation=self.activation, norm=self.norm,
            positions=self.positions, padding="per_length",
        )
        self.reader_ = reader
        self.model_ = SequenceClassifier(
            config, len(self.classes_), pooling=pooling, seed=rng, dtype=self.dtype,
            **reader.arguments(),
        )

    def _outputs(self, X):
        check_is_fitted(self)
        _, samples = samples_of(self, X, reset=False)
        x, mask = self.reader_.read(samples)
        return self.model_.in_batches(
            to_numpy, x, mask, 256, processes=self.n_jobs not in (None, 1) and "auto"
        )

    def predict(self, X):
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def predict_proba(self, X):
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X):
        outputs = self._outputs(X)
        return SoftmaxCrossEntropy().log_probabilities(outputs).astype(outputs.dtype)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = self.inputs in ("auto", "series")
        tags.input_tags.string = self.inputs in ("auto", "text")
        tags.input_tags.categorical = self.inputs == "tokens"
        tags.input_tags.one_d_array = self.inputs == "text"
        tags.input_tags.two_d_array = self.inputs != "text"
        return tags


def _rows(samples, rows):
    return [samples[row] for row in rows] if isinstance(samples, list) else samples[rows]


class _Converged(training.Callback):
    """Stops when the training loss has not fallen by `tol` for so many epochs."""

    def __init__(self, tol, patience):
        self.tol, self.patience = tol, patience
        self.best, self.waited = np.inf, 0

    def after_epoch(self, state):
        loss = state.history.train_loss[-1]
        self.waited = self.waited + 1 if loss > self.best - self.tol else 0
        self.best = min(self.best, loss)
        if self.waited > self.patience:
            state.stop("converged")
