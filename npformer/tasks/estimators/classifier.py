"""Classifier: from raw samples to labels as people write them."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from npformer.core import checks
from npformer.core.generators import seed_of_child
from npformer.core.support.explained_errors import drop_class_from_names
from npformer.data.samples import Data
from npformer.data.tokenizers import WordTokenizer
from npformer.models.trainable import SequenceClassifier
from npformer.tasks.estimators import defaults
from npformer.tasks.estimators.alike import warn_of_alike
from npformer.tasks.estimators.baselines import MAJORITY
from npformer.tasks.estimators.calibration import calibrate
from npformer.tasks.estimators.class_names import (
    ClassNames,
    check_as_many,
    plain_labels,
    rarely_repeat,
)
from npformer.tasks.estimators.estimator import Estimator, check_training
from npformer.tasks.estimators.fitting_mixers import classifier_for
from npformer.tasks.estimators.labelled import (
    add_held_out,
    add_weights,
    read_labelled_samples,
    split_for_calibration,
)
from npformer.tasks.estimators.readers import Reader
from npformer.tasks.estimators.scores import Scores, comparison_table, scores_of
from npformer.training.distributed import communicator_of
from npformer.training.history import History
from npformer.training.storage.drawn import Drawn


@drop_class_from_names
@dataclass(kw_only=True, eq=False, repr=False)
class Classifier(Estimator):
    """A classifier with everything needed to get from raw samples to labels.

    Attributes
    ----------
    classes_ : array
        The labels that it tells apart, sorted; class i of the models is ``classes_[i]``.
    models_ : list of SequenceClassifier
        One for each member of the ensemble. Their probabilities are averaged.
    histories_ : list of History
        The training history of each member; empty after loading.
    reader_ : Reader
        Turns samples into arrays, as it learned from the training part.
    settings_ : dict
        The arguments of `npformer.fit` in the last training.
    """

    max_len: int | None = None
    pooling: str | None = None
    members: int | None = None

    classes_: np.ndarray = field(init=False)
    reader_: Any = field(init=False)

    estimator_type = "classifier"

    @abstractmethod
    def kind(self) -> str:
        """Return what `npformer.tasks.estimators.defaults` calls the samples."""

    @abstractmethod
    def reader(self) -> Reader:
        """Return a reader that has learned nothing yet."""

    def build(self, n_classes: int, seed: int) -> SequenceClassifier:
        """Return an untrained model for what the reader has learned."""
        reader, default_settings = self.reader_, defaults.ENCODERS[self.kind()]
        config = self.complete_config(default_settings | {"max_len": reader.max_len})
        return classifier_for(reader, config, n_classes, self.pooling, seed=seed, dtype=self.dtype)

    def check(self) -> None:
        """Raise ValueError or TypeError for a wrong argument of `__init__`; `fit` calls it."""
        super().check()
        self.check_optional("max_len")
        self.check_optional("members", at_most=1000)

    def fit(
        self,
        samples: Any,
        labels: Any,
        *,
        validation: float | tuple[Any, Any] | None = None,
        calibration: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        **training: Any,
    ) -> Self:
        """Train on labelled samples, and return the classifier itself.

        Parameters
        ----------
        samples : sequence
        labels : sequence of str, int or bool
            One for each sample; there must be at least 2 different ones.
        validation : float, or (samples, labels), optional
            Decides which epoch's weights are kept: a share of the samples, set aside by the seed,
            the same share of each class; or separate samples. Nothing is learned from them, not
            even a vocabulary. None: training uses all samples and keeps the weights of the last
            epoch, when the learning rate has fallen to 0.
        calibration : float, optional
            The share of the samples that is set aside to fit the temperature of the probabilities
            on; each member sets other samples aside. 0: none. None: 0.1 for texts, if there are
            enough. With `validation`, the temperature is fitted on that instead.
        checkpoint : str or path, optional
            As in `npformer.fit`; each member of an ensemble has its own folder in it.
        **training
            Other arguments of `npformer.fit`, which replace the defaults: epochs, batch_size, lr,
            weight_decay, patience, class_weight ("balanced", or a weight for each label),
            sample_weight, metric, resume, ...
        """
        self.check()
        check_training(training, validation, "(samples, labels)")
        if calibration is not None:
            checks.rate("calibration", calibration)
        reader = self.reader()
        listed = reader.check_samples(samples, "samples")
        labels = plain_labels(labels)
        names = ClassNames.of(labels)
        labelled = read_labelled_samples(
            listed, names.numbers(labels), training.get("sample_weight")
        )
        warn_of_alike(labels)
        if words := rarely_repeat(labelled.y.tolist()):
            warnings.warn(f"there are {words}. Are these the labels?", stacklevel=2)
        drawn = Drawn.make_for_training(checkpoint, training)
        train, held_out = add_held_out(labelled, validation, reader, names, self.seed, drawn)
        n, kind = len(train.y), self.kind()
        settings = add_weights({**defaults.training(kind, n), **training}, train, names)
        reader.learn(train.samples, drawn=drawn)
        self.begin()
        self.reader_, self.classes_ = reader, np.array(names.names)
        data = self._data(train.samples, train.y)
        validation_data = None if held_out is None else self._data(held_out.samples, held_out.y)
        if calibration is None:
            calibration = defaults.calibration(kind, n)
        members = self.members or defaults.members(kind, n)
        for member in range(members):
            seed = seed_of_child(self.seed, member) if member else self.seed
            own_folder = [f"member-{member + 1}"] if members > 1 else []
            folder = None if checkpoint is None else Path(checkpoint, *own_folder)
            history = self._train_member(data, validation_data, settings, calibration, folder, seed)
            if history.stopped in ("interrupted", "terminated"):
                break
        return self

    def _train_member(
        self,
        data: Data,
        validation: Data | None,
        settings: Mapping[str, Any],
        calibration: float,
        checkpoint: Path | None,
        seed: int,
    ) -> History:
        """Train a model and fit the temperature of its probabilities; return its history."""
        model = self.build(len(self.classes_), seed)
        calibration_data = validation
        if calibration and validation is None:
            data, settings, calibration_data = split_for_calibration(
                data, settings, calibration, seed, Drawn.make_for_training(checkpoint, settings)
            )
        history = self.train(
            model, data, settings, validation=validation, checkpoint=checkpoint, seed=seed
        )
        if calibration and calibration_data is not None:
            calibrate(model, calibration_data)
        return history

    def example(self, *data: Any) -> np.ndarray:
        """Return the first sample."""
        return self.arrays(data[0][:1])[0]

    def arrays(self, samples: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return x and its mask, as the models expect them."""
        listed = self.check_samples(samples, "samples")  # which says if there is no reader yet
        return self.reader_.read(listed)  # type: ignore[no-any-return]

    def check_samples(self, samples: Any, name: str) -> Sequence[Any]:
        """Check each sample, and return the samples as a sequence."""
        self.check_trained()
        return self.reader_.check_samples(samples, name)  # type: ignore[no-any-return]

    def _data(self, samples: Sequence[Any], y: np.ndarray) -> Data:
        x, mask = self.reader_.read(samples)
        return x, y, mask

    def take(self, models: list[Any], classes: list[Any] | None = None) -> None:
        """Take over trained models and the classes that they tell apart, from a file."""
        if ClassNames.of(classes or []).names != classes:
            raise ValueError(f"the names of classes are {classes}; expected different ones, sorted")
        self.classes_ = np.array(classes)
        super().take(models)
        self.reader_.max_len = models[0].config.max_len

    def sizes(self) -> dict[str, int]:
        """Return what the models must have by their attributes."""
        arguments = self.reader_.arguments()
        if not isinstance(getattr(self.reader_, "tokenizer", None), WordTokenizer):
            arguments.pop("vocab_size", None)  # pretrained embeddings may be more than ids
        sizes = {name: n for name, n in arguments.items() if name in ("n_features", "vocab_size")}
        return {"n_classes": len(self.classes_), **sizes}

    @property
    def names(self) -> ClassNames:
        """The labels and their numbers."""
        self.check_trained()
        return ClassNames(self.classes_.tolist())

    def model_part(self) -> tuple[list[Any], dict[str, Any], str]:
        """Return, for ONNX, the models, and what is around them: as JSON values, and as text."""
        self.check_trained()
        return self.models_, *self.reader_.around(self.classes_, self.preparation())

    def predict_proba(
        self, samples: Any, batch_size: int = 256, communicator: Any = None
    ) -> np.ndarray:
        """Return the probability of each class, (samples, classes), in the order of `classes_`.

        The ranks of a `communicator` share the samples; all get the whole result.
        """
        with communicator_of(communicator).guard() as ranks:
            listed = self.check_samples(samples, "samples")
            mean = np.zeros((0, len(self.classes_)), dtype=self.model.dtype)
            if shard := listed[ranks.shard(len(listed))]:
                x, mask = self.reader_.read(shard)
                of_models = [m.predict_probabilities(x, mask, batch_size) for m in self.models_]
                mean = np.asarray(sum(of_models[1:], start=of_models[0]) / len(of_models))
            return ranks.concatenate(mean)

    predict_probabilities = predict_proba

    def predict(self, samples: Any, batch_size: int = 256) -> np.ndarray:
        """Return the most probable label of each sample."""
        probabilities = self.predict_proba(samples, batch_size)
        if (wrong := np.isnan(probabilities).any(axis=1)).any():
            raise ValueError(
                f"the probabilities of sample {int(wrong.argmax())} are NaN; expected numbers. The "
                "weights are NaN or infinite: did the training diverge?"
            )
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def score(self, samples: Any, labels: Any) -> float:
        """Return the share of samples that are predicted correctly."""
        return self.evaluate(samples, labels).accuracy

    def evaluate(
        self, samples: Any, labels: Any, batch_size: int = 256, communicator: Any = None
    ) -> Scores:
        """Return accuracy, macro F1, confusions and the worst mistakes on labelled samples."""
        y, listed = self.names.numbers(labels), self.check_samples(samples, "samples")
        check_as_many(listed, y)
        probabilities = self.predict_proba(listed, batch_size, communicator)
        return scores_of(self.names.names, y, probabilities)

    def check_measurable(self, name: str, *data: Any) -> None:
        """Raise what `evaluate` would raise for labelled samples."""
        samples, labels = data
        y = self.names.numbers(labels, f"the labels of {name}")
        check_as_many(samples, y)
        self.reader_.read(self.check_samples(samples, name))

    def report(
        self,
        samples: Any,
        labels: Any,
        /,
        path: str | os.PathLike[str] = "report.html",
        *,
        scores: Scores | None = None,
        beside: Mapping[str, Scores | None] | None = None,
        overwrite: bool = False,
        **more: Any,
    ) -> Path:
        """Write an HTML file that shows what the model does with labelled samples.

        It begins with the scores and, `beside` them, those of other models, by name. It shows each
        member of an ensemble. With `overwrite`, an existing file is replaced. `more` are arguments
        of `npformer.report`, such as `samples`.
        """
        from npformer.tasks.reports import report  # when needed
        from npformer.tasks.reports.elements import TEXTS
        from npformer.tasks.reports.report import check_path_of_report
        from npformer.tasks.reports.tables import MOST_CLASSES

        place = check_path_of_report(path, overwrite)
        y, listed = self.names.numbers(labels), self.check_samples(samples, "samples")
        scores = scores or self.evaluate(listed, self.classes_[y])
        rows, words = {"this model": scores, **(beside or {})}, TEXTS["results"]
        notes = words["calibration"] + words["majority"] * (MAJORITY in rows)
        opening: list[Any] = [comparison_table(rows), notes, scores.by_class()]
        models: Any = {f"member {i + 1}": model for i, model in enumerate(self.models_)}
        if len(models) > 1:
            opening.insert(0, words["members"].format(n=len(models)))
            if len(self.classes_) <= MOST_CLASSES:
                opening.append(scores.confusion_table())
        else:
            models = self.model
        of_texts = isinstance(listed[0], str)
        kind = "text" if of_texts else "series"
        shown = {
            "title": f"A {kind} classifier: its mistakes, and a look inside",
            "token_names": self.reader_.token_names(),
            "class_names": self.names.words(),
            "sample_names": listed if of_texts else None,
            "sample_words": (lambda i: self.reader_.words_of(listed[i])) if of_texts else None,
            "opening": [f"Measured on {scores.n:,} samples.", *opening],
        }
        x, mask = self.reader_.read(listed)
        return report(models, x, y, mask, path=place, overwrite=overwrite, **shown | more)
