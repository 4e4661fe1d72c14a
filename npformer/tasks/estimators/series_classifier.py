"""SeriesClassifier: from series of numbers to labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.tasks.estimators.classifier import Classifier
from npformer.tasks.estimators.readers import SeriesReader
from npformer.tasks.estimators.unknown_settings import explain_unknown_settings


@explain_unknown_settings
@dataclass(kw_only=True, eq=False, repr=False)
class SeriesClassifier(Classifier):
    """A classifier of series of feature vectors, which may differ in length.

        classifier = npformer.SeriesClassifier().fit(series, labels)
        classifier.predict([np.array([[0.1, 2.0], [0.3, 1.9]])])

    Each feature is scaled to mean 0 and standard deviation 1 over all steps of the training part;
    both numbers are kept with the model.

    Parameters
    ----------
    config : EncoderConfig, or mapping of some of its settings, optional
        The encoder. For settings that are not given, see
        `npformer.tasks.estimators.defaults`.
    scale : bool
        Whether features are scaled.
    max_len : int, optional
        The most steps of a series. None: twice those of the longest one in training.
    pooling, members, seed, dtype, backend
        As in `TextClassifier`.

    Attributes
    ----------
    reader_ : SeriesReader
        Has `mean` and `deviation` of the training part, (features,); 0 and 1 without scaling.
    """

    scale: bool = True

    def kind(self) -> str:
        """Return what `npformer.tasks.estimators.defaults` calls the samples."""
        return "series"

    def check(self) -> None:
        """Raise ValueError or TypeError for a wrong argument of `__init__`; `fit` calls it."""
        super().check()
        checks.flag("scale", self.scale)

    def reader(self) -> SeriesReader:
        """Return a reader that has learned nothing yet."""
        return SeriesReader(self.max_len_of_settings(), self.scale, self.dtype, room=2)

    def preparation(self) -> dict[str, Any]:
        """Return the scaling as plain values."""
        return {**self.reader_.preparation(), "scale": self.scale, "max_len": self.max_len}

    def restore(self, values: Mapping[str, Any]) -> None:
        """Take over the scaling."""
        self.scale, self.max_len = values["scale"], values["max_len"]
        self.reader_ = self.reader()
        scaling = np.array([values["mean"], values["deviation"]], dtype="float64")
        if not np.isfinite(scaling).all() or (scaling[1] <= 0.0).any():
            raise ValueError("mean and deviation are no scaling; expected numbers, the latter > 0")
        self.reader_.mean, self.reader_.deviation = scaling
        self.reader_.n_features = scaling.shape[1]
