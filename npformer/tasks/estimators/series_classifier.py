"""SeriesClassifier: from series of numbers to labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from npformer.core import a_type, checks
from npformer.models import EncoderConfig
from npformer.tasks.estimators import series_defaults
from npformer.tasks.estimators.fitting_mixers import usual_pooling
from npformer.tasks.estimators.classifier import Classifier
from npformer.training.trainable import SequenceClassifier


class SeriesClassifier(Classifier):
    """A classifier of series of feature vectors, which may differ in length.

        classifier = npformer.SeriesClassifier().fit(series, labels)
        classifier.predict([np.array([[0.1, 2.0], [0.3, 1.9]])])

    Each feature is scaled to mean 0 and standard deviation 1 over all steps of the training part;
    both numbers are kept with the model.

    Parameters
    ----------
    config : EncoderConfig, or mapping of some of its settings, optional
        The encoder. For settings that are not given, see `series_defaults`.
    scale : bool
        Whether features are scaled.
    max_len : int, optional
        The most steps of a series. None: twice those of the longest one in training.
    pooling, members, seed, dtype, backend
        As in `TextClassifier`.

    Attributes
    ----------
    mean, deviation : float array, shape (features,)
        Of the training part; None before `fit`, 0 and 1 without scaling.
    """

    reads = "series are scaled, (x - mean) / deviation, padded with 0, and have a mask"

    def __init__(
        self,
        config: EncoderConfig | Mapping[str, Any] | None = None,
        *,
        scale: bool = True,
        max_len: int | None = None,
        pooling: str | None = None,
        members: int | None = None,
        seed: int = 0,
        dtype: str = "float32",
        backend: str = "numpy",
    ) -> None:
        super().__init__(
            config, pooling=pooling, members=members, seed=seed, dtype=dtype, backend=backend
        )
        checks.flag("scale", scale)
        self.scale = scale
        self.max_len = None if max_len is None else checks.positive("max_len", max_len)
        self.mean: np.ndarray | None = None
        self.deviation: np.ndarray | None = None
        self._longest = 0  # steps of a series in training

    def checked(self, samples: Any, name: str) -> list[np.ndarray]:
        """Check series, and return them as float64 arrays (steps, features)."""
        if isinstance(samples, str) or not hasattr(samples, "__len__"):
            raise TypeError(
                f"{name} is {a_type(samples)}; expected a list of arrays (steps, "
                "features), or one array (series, steps, features)"
            )
        series = [_checked(f"{name}[{i}]", each) for i, each in enumerate(samples)]
        n_features = series[0].shape[1] if self.mean is None and series else None
        if self.mean is not None:
            n_features = len(self.mean)
        for i, each in enumerate(series):
            if each.shape[1] != n_features:
                raise ValueError(
                    f"{name}[{i}] has {each.shape[1]} features; expected {n_features}, as in the "
                    f"{'training samples' if self.mean is not None else 'first series'}"
                )
        return series

    def learn(self, samples: Sequence[np.ndarray]) -> None:
        """Compute the mean and standard deviation of each feature."""
        steps = np.concatenate(samples)
        self.mean, self.deviation = np.zeros(steps.shape[1]), np.ones(steps.shape[1])
        if self.scale:
            spread = steps.std(axis=0)
            self.mean = steps.mean(axis=0)
            # A feature that never changes carries no information, and becomes 0.
            self.deviation = np.where(spread > 0.0, spread, 1.0)
        self._longest = max(map(len, samples))

    def fit(self, samples: Any, labels: Any, **training: Any) -> Self:
        """Train on labelled series; see `Classifier.fit`."""
        before = self.mean, self.deviation
        self.mean = self.deviation = None  # another training may have other features
        try:
            return super().fit(samples, labels, **training)
        finally:
            if self.mean is None:
                self.mean, self.deviation = before

    def arrays(self, samples: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return scaled series, padded with 0, and their mask."""
        if self.mean is None or self.deviation is None:
            self.check_trained()
        assert self.mean is not None
        max_len = self.models[0].config.max_len if self.models else self._max_len()
        lengths = np.array([len(each) for each in samples])
        if (longest := int(lengths.max(initial=1))) > max_len:
            raise ValueError(
                f"series {int(lengths.argmax())} has {longest} steps; expected at most {max_len}, "
                "the most that this model reads. Train it with SeriesClassifier(max_len=...), or "
                "shorten the series"
            )
        mask = np.arange(longest) < lengths[:, None]
        x = np.zeros((*mask.shape, len(self.mean)), dtype=self.dtype)
        x[mask] = (np.concatenate(samples) - self.mean) / self.deviation
        return x, mask

    def _max_len(self) -> int:
        """Return the most steps that a new model will read."""
        if isinstance(self.config, EncoderConfig):
            return self.config.max_len
        if isinstance(self.config, Mapping) and "max_len" in self.config:
            return int(self.config["max_len"])
        return self.max_len or 2 * self._longest

    def build(self, n_classes: int, seed: int) -> SequenceClassifier:
        """Return an untrained model for the features."""
        assert self.mean is not None
        config = self.configured(series_defaults.CONFIG | {"max_len": self._max_len()})
        return SequenceClassifier(
            config,
            n_classes,
            n_features=len(self.mean),
            pooling=self.pooling or usual_pooling(config),
            expects_mask=True,
            seed=seed,
            dtype=self.dtype,
        )

    def usual_training(self, n_samples: int) -> dict[str, Any]:
        """Return the training settings for `n_samples` series."""
        return series_defaults.training(n_samples)

    def usual_members(self, n_samples: int) -> int:
        """Return how many models are trained on `n_samples` series."""
        return series_defaults.members(n_samples)

    def token_names(self) -> None:
        """Return None: steps are numbers."""

    def preparation(self) -> dict[str, Any]:
        """Return the scaling as plain values."""
        assert self.mean is not None
        assert self.deviation is not None
        scaling = {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}
        return {**scaling, "scale": self.scale, "max_len": self.max_len}

    @classmethod
    def prepared(cls, values: Mapping[str, Any], **arguments: Any) -> Self:
        """Return a classifier without models from what `preparation` returned."""
        found = cls(scale=values["scale"], max_len=values["max_len"], **arguments)
        found.mean = np.array(values["mean"], dtype="float64")
        found.deviation = np.array(values["deviation"], dtype="float64")
        return found


def _checked(name: str, each: Any) -> np.ndarray:
    try:
        array = np.asarray(each)
    except ValueError:
        array = np.array(None)
    if array.dtype.kind not in "fiub" or array.ndim not in (1, 2) or array.size == 0:
        what = "is empty" if array.size == 0 else f"is {array.dtype} {array.shape}"
        raise ValueError(
            f"{name} {what}; expected numbers, (steps, features), or (steps,) for one feature. "
            "Every step needs the same number of features"
        )
    array = array.astype("float64").reshape(len(array), -1)
    if not np.isfinite(array).all():
        step = int((~np.isfinite(array)).any(axis=1).argmax())
        raise ValueError(
            f"{name} has NaN or infinity in step {step}; expected numbers. Fill the gap, or leave "
            "the step out"
        )
    return array
