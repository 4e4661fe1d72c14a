"""How an `EncoderClassifier` builds its model, and trains it."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.models import EncoderConfig
from npformer.optim import Adam, cosine
from npformer.tasks.estimators.split import stratified
from npformer.tasks.sklearn import defaults
from npformer.tasks.sklearn.defaults import AUTO
from npformer.tasks.sklearn.readers import READERS, Reader
from npformer.tasks.sklearn.samples import Samples
from npformer.training.callbacks import Callback, TrainingState
from npformer.training.fit import fit as train_model
from npformer.training.history import History
from npformer.training.trainable import SequenceClassifier

WARMUP = 0.1  # of all steps, in which the learning rate rises
TIE, LEAST = 1e-6, 1e-30  # weight of the loss beside the accuracy; the smallest probability in it


@dataclass
class Labelled:
    """Samples, with the class number and the weight of each."""

    samples: Samples
    labels: np.ndarray
    weights: np.ndarray

    def of_rows(self, rows: np.ndarray) -> "Labelled":
        """Return some of the samples."""
        samples: Samples = (
            [self.samples[row] for row in rows]
            if isinstance(self.samples, list)
            else self.samples[rows]
        )
        return Labelled(samples, self.labels[rows], self.weights[rows])

    def __len__(self) -> int:
        return len(self.labels)


def parted(estimator: Any, kind: str, data: Labelled, rng: np.random.Generator) -> list[Labelled]:
    """Return the part to train on, and the held-out part if there is one."""
    asked = estimator.early_stopping
    if asked != AUTO:
        checks.flag("early_stopping", asked)
    if not (defaults.holds_out(kind, len(data)) if asked == AUTO else asked):
        return [data]
    train, held_out = stratified(data.labels, estimator.validation_fraction, rng)
    return [data.of_rows(train), data.of_rows(held_out)]


def build(
    estimator: Any, kind: str, data: Labelled, n: int, n_classes: int, rng: np.random.Generator
) -> tuple[Reader, SequenceClassifier]:
    """Return a reader that has learned from some samples, and a new model for what it reads.

    `n` is the number of samples that the model's settings are chosen for.
    """
    settings = defaults.encoder_for(kind, n)
    for name in settings:
        if (asked := getattr(estimator, name, AUTO)) != AUTO:
            settings[name] = asked
    dtype = settings.pop("dtype")
    reader = READERS[kind](estimator, dtype)
    reader.learn(data.samples, data.weights)
    known = {each.name for each in fields(EncoderConfig)}
    config = EncoderConfig(
        **{name: value for name, value in settings.items() if name in known}
        | {"max_len": reader.max_len, "padding": "per_length"}
    )
    pooling = estimator.pooling
    if pooling == AUTO:
        pooling = defaults.pooling_for(kind, reader.same_length, config)
    model = SequenceClassifier(
        config, n_classes, pooling=pooling, seed=rng, dtype=dtype, **reader.arguments()
    )
    return reader, model


def train(
    estimator: Any, kind: str, parts: list[Labelled], rng: np.random.Generator
) -> tuple[History, list[float] | None]:
    """Train the estimator's model until it stops improving.

    Returns the history, and the accuracy on the held-out part after each epoch.
    """
    usual = defaults.training_for(kind, n := len(parts[0]))
    size = min(n, checks.positive("batch_size", _chosen(estimator, usual, "batch_size")))
    usual["max_iter"] = usual["max_iter"] or defaults.epochs_for(n, size)
    epochs = checks.positive("max_iter", _chosen(estimator, usual, "max_iter"))
    patience = checks.positive("n_iter_no_change", estimator.n_iter_no_change)
    steps = epochs * -(-n // size)
    options: dict[str, Any] = {
        "epochs": epochs,
        "batch_size": size,
        "lr": _chosen(estimator, usual, "learning_rate"),
        "weight_decay": _chosen(estimator, usual, "weight_decay"),
        "schedule": cosine(steps, warmup=int(WARMUP * steps)) if steps > 1 else None,
    }
    score: WeightedAccuracy | None = None
    if len(parts) == 2:
        score = WeightedAccuracy(parts[1].weights)
        options["validation"] = _arrays(estimator, parts[1])
        options["metric"] = score
    options["callbacks"] = [Converged(score, estimator.tol, patience)]
    return fit(estimator, parts[0], rng, **options), score.scores if score else None


def train_once(estimator: Any, kind: str, data: Labelled, rng: np.random.Generator) -> float:
    """Train the estimator's model for one epoch, with its optimizer, and return the loss."""
    usual = defaults.training_for(kind, defaults.many(len(data)))
    if estimator._optimizer is None:
        estimator._optimizer = Adam(
            estimator.model_.parameters(),
            lr=_chosen(estimator, usual, "learning_rate"),
            weight_decay=_chosen(estimator, usual, "weight_decay"),
        )
    size = min(len(data), checks.positive("batch_size", _chosen(estimator, usual, "batch_size")))
    options = {"epochs": 1, "batch_size": size, "optimizer": estimator._optimizer}
    return fit(estimator, data, rng, **options).train_loss[0]


def fit(estimator: Any, data: Labelled, rng: np.random.Generator, **options: Any) -> History:
    """Call `npformer.fit`."""
    weights = data.weights
    return train_model(
        estimator.model_,
        _arrays(estimator, data),
        sample_weight=None if (weights == weights[0]).all() else weights,
        clip_norm=estimator.clip_norm,
        label_smoothing=estimator.label_smoothing,
        seed=rng,
        progress=bool(estimator.verbose),
        **workers_of(estimator),
        **options,
    )


def workers_of(estimator: Any) -> dict[str, Any]:
    """Return the arguments of `fit` for n_jobs: None is 1, and -1 is as many as pay off."""
    n = 1 if estimator.n_jobs is None else estimator.n_jobs
    if n == -1:
        return {"workers": AUTO, "processes": AUTO}
    return {"workers": checks.positive("n_jobs", n), "processes": AUTO if n > 1 else False}


def _chosen(estimator: Any, usual: dict[str, Any], name: str) -> Any:
    asked = getattr(estimator, name)
    return usual[name] if isinstance(asked, str) and asked == AUTO else asked


def _arrays(estimator: Any, data: Labelled) -> tuple[Any, ...]:
    x, mask = estimator.reader_.read(data.samples)
    return x, data.labels, mask


class WeightedAccuracy:
    """The share of right answers among weighted samples; between equals, the lower loss wins.

    `scores` has the shares of all calls, and `losses` the losses.
    """

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights / weights.sum()
        self.scores: list[float] = []
        self.losses: list[float] = []

    def __call__(self, y: np.ndarray, probabilities: np.ndarray) -> float:
        """Return a number that is larger for the better of two epochs."""
        p = np.take_along_axis(probabilities, y[:, None], axis=1)[:, 0].astype("float64")
        self.scores.append(float(self.weights @ (probabilities.argmax(axis=1) == y)))
        self.losses.append(-float(self.weights @ np.log(np.maximum(p, LEAST))))
        return self.scores[-1] - TIE * self.losses[-1]


class Converged(Callback):
    """Ends training if nothing has fallen by more than `tol` for `patience` epochs.

    What is to fall is the training loss, or the loss or the share of errors on the held-out part.
    """

    def __init__(self, score: WeightedAccuracy | None, tol: float, patience: int) -> None:
        checks.not_negative("tol", tol)
        self.score, self.tol, self.patience = score, tol, patience
        self.best = np.full(1 if score is None else 2, np.inf)
        self.waited = 0

    def after_epoch(self, state: TrainingState) -> None:
        """Compare the epoch with the best so far."""
        now = np.array([state.history.train_loss[-1]])
        if self.score is not None:
            now = np.array([1.0 - self.score.scores[-1], self.score.losses[-1]])
        self.waited = 0 if (now < self.best - self.tol).any() else self.waited + 1
        self.best = np.minimum(self.best, now)
        if self.waited >= self.patience:
            state.stop("converged")
