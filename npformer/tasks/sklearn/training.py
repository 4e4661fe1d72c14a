"""How an `EncoderClassifier` builds its model, and when its training stops."""

import sys
from dataclasses import asdict, dataclass
from multiprocessing import current_process
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.data.samples import Data
from npformer.models import EncoderConfig
from npformer.models.config import RATES
from npformer.models.trainable import SequenceClassifier
from npformer.tasks.estimators import defaults
from npformer.tasks.estimators.fitting_mixers import classifier_for
from npformer.tasks.estimators.readers import (
    Reader,
    Samples,
    SeriesReader,
    TextReader,
    TokenReader,
)
from npformer.tasks.sklearn.samples import KINDS
from npformer.training.callbacks import Callback, TrainingState

AUTO = "auto"

TIE, LEAST = 1e-6, 1e-30  # weight of the loss beside the accuracy; the smallest probability in it


@dataclass
class SampleSet:
    """Samples, with the class number and the weight of each."""

    samples: Samples
    labels: np.ndarray
    weights: np.ndarray

    def rows(self, rows: np.ndarray) -> "SampleSet":
        """Return some of the samples."""
        if isinstance(self.samples, np.ndarray):
            return SampleSet(self.samples[rows], self.labels[rows], self.weights[rows])
        samples = [self.samples[row] for row in rows]
        return SampleSet(samples, self.labels[rows], self.weights[rows])

    def read(self, reader: Reader) -> Data:
        """Return the samples as arrays, with their labels."""
        x, mask = reader.read(self.samples)
        return x, self.labels, mask

    def __len__(self) -> int:
        return len(self.labels)


def many(n: int) -> int:
    """Return n, but always more than one batch: more samples are to come."""
    return max(n, defaults.ONE_BATCH + 1)


def holds_out(estimator: Any, kind: str, n: int) -> bool:
    """Return whether some of n samples decide when to stop."""
    if estimator.early_stopping == AUTO:
        return n >= defaults.MANY[KINDS[kind]]
    checks.flag("early_stopping", estimator.early_stopping)
    return bool(estimator.early_stopping)


def build(
    estimator: Any, kind: str, data: SampleSet, n: int, n_classes: int, rng: np.random.Generator
) -> tuple[Reader, SequenceClassifier]:
    """Return a reader that has learned from some samples, and a new model for what it reads.

    `n` is the number of samples that the model's settings are chosen for.
    """
    settings = {**asdict(EncoderConfig()), "dtype": "float32"} | defaults.ENCODERS[KINDS[kind]]
    if n <= defaults.ONE_BATCH:
        settings |= {**dict.fromkeys(RATES, 0.0), "dtype": "float64"}
    settings |= {name: v for name in settings if (v := getattr(estimator, name, AUTO)) != AUTO}
    dtype = settings.pop("dtype")
    reader = new_reader(estimator, kind, dtype)
    reader.learn(data.samples, data.weights)
    config = EncoderConfig(**settings | {"max_len": reader.max_len, "padding": "per_length"})
    pooling = None if estimator.pooling == AUTO else estimator.pooling
    if pooling is None and kind == "series" and reader.same_length:
        pooling = "flatten"  # the places in series of one length have a meaning
    return reader, classifier_for(reader, config, n_classes, pooling, seed=rng, dtype=dtype)


def new_reader(estimator: Any, kind: str, dtype: str) -> Reader:
    """Return a reader that has learned nothing yet."""
    for name in ("max_len", "vocab_size"):
        if getattr(estimator, name) is not None:
            checks.positive(name, getattr(estimator, name))
    if kind == "tokens":
        return TokenReader(estimator.max_len, estimator.vocab_size, estimator.padding_id)
    if kind == "text":
        vocabulary = {"vocab_size": estimator.vocab_size} if estimator.vocab_size else {}
        return TextReader(estimator.max_len, estimator.tokenizer, vocabulary)
    checks.flag("scale", estimator.scale)
    return SeriesReader(estimator.max_len, estimator.scale, dtype)


def fit_options(estimator: Any, n: int, of: int) -> dict[str, Any]:
    """Return arguments of `npformer.fit` for n samples, with defaults for `of` samples."""
    typed = {"batch_size": estimator.batch_size, "epochs": estimator.max_iter}
    typed |= {"lr": estimator.learning_rate, "weight_decay": estimator.weight_decay}
    typed = {name: value for name, value in typed.items() if value != AUTO}
    kind = KINDS[estimator.inputs_]
    size = typed.get("batch_size", defaults.training(kind, of)["batch_size"])
    size = min(n, checks.positive("batch_size", size))
    default_settings = defaults.settings_with_stop(kind, of, size)
    checks.positive("max_iter", typed.get("epochs", 1))
    jobs = 1 if estimator.n_jobs is None else estimator.n_jobs
    workers = AUTO if jobs == -1 else checks.positive("n_jobs", jobs)
    typed |= {name: getattr(estimator, name) for name in ("clip_norm", "label_smoothing")}
    typed |= {"batch_size": size, "workers": workers, "progress": shows_bar(estimator.verbose)}
    return default_settings | typed


def shows_bar(verbose: Any) -> bool:
    """Return whether a training shows a bar; "auto": on a terminal, in the main process.

    Processes that search for settings side by side would write over each other's bars.
    """
    if verbose != AUTO:
        return bool(verbose)
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    return on_terminal and current_process().name == "MainProcess"


class Convergence(Callback):
    """Ends training if nothing has fallen by more than `tol` for `patience` epochs.

    What is to fall is the training loss; or, with the `weights` of a held-out part, for which this
    is the metric, the loss or the share of errors there. `scores` and `losses` has one an epoch.
    """

    def __init__(self, tol: float, patience: int, weights: np.ndarray | None) -> None:
        checks.not_negative("tol", tol)
        self.tol, self.patience = tol, checks.positive("n_iter_no_change", patience)
        self.weights = None if weights is None else weights / weights.sum()
        self.scores: list[float] = []
        self.losses: list[float] = []
        self.best: Any = np.inf
        self.waited = 0

    def __call__(self, y: np.ndarray, probabilities: np.ndarray) -> float:
        """Return the share of right answers; between equals, the lower loss is larger."""
        p = np.take_along_axis(probabilities, y[:, None], axis=1)[:, 0].astype("float64")
        self.scores.append(float(self.weights @ (probabilities.argmax(axis=1) == y)))
        self.losses.append(-float(self.weights @ np.log(np.maximum(p, LEAST))))
        return self.scores[-1] - TIE * self.losses[-1]

    def after_epoch(self, state: TrainingState) -> None:
        """Compare the epoch with the best so far."""
        now = np.array([state.history.train_loss[-1]])
        if self.weights is not None:
            now = np.array([1.0 - self.scores[-1], self.losses[-1]])
        self.waited = 0 if (now < self.best - self.tol).any() else self.waited + 1
        self.best = np.minimum(self.best, now)
        if self.waited >= self.patience:
            state.stop("converged")
