"""Model: a layer that can be trained. `npformer.fit` takes any, and knows nothing more about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from npformer import engine
from npformer.core import (
    Array,
    Gradients,
    Seed,
    generators,
    to_numpy,
)
from npformer.core.inputs import inputs_of_arrays
from npformer.core.support.explained_errors import drop_class_from_names, refuse_unknown_arguments
from npformer.core.support.other_names import METHODS
from npformer.data.stored_samples import rows_at_once
from npformer.engine.team import team_of
from npformer.models.batch import Batch
from npformer.models.losses import Classification, Loss
from npformer.models.step import PlainStep
from npformer.models.trainable.description import describe_model, model_as_html
from npformer.models.trainable.predictions import outputs, predict_in_batches, refuse_samples
from npformer.models.trainable.protocol import Trainable
from npformer.training.inspection.explain import Explanation, explain

Answers = tuple[np.ndarray, list[np.ndarray], np.ndarray]
"""Outputs on the host, their targets (and the weights of these), and the number of the sample to
which each output belongs."""

TOKENS_AT_ONCE = 1 << 11
"""Tokens whose outputs an evaluation computes at a time: enough for several workers."""

HOOKS = frozenset(
    [
        "answers",
        "arrange",
        "batch",
        "check",
        "check_inputs",
        "check_samples",
        "check_targets",
        "flatten",
        "loss_with",
        "loss_with_class_weights",
        "mask_for",
        "note",
        "numbers_returned",
        "remember",
        "skips_padding",
        "strata",
        "upload",
    ]
)
"""What subclasses may override, and `fit` calls: tab completion leaves them out."""


@drop_class_from_names
class Model(Trainable):
    """A layer that can be trained: it defines its inputs, targets, loss and figures.

    A subclass has the passes of a `Layer`, calls ``self.flatten()`` at the end of its ``__init__``,
    and sets those of the attributes below that differ. It may override the methods under "What a
    model says". docs/extending/model.md has three examples.

    Inputs, masks and token types are arrays, or for a model with two inputs tuples with one for
    each. Such a model has ``forward(a, b, context)``, and its ``backward`` returns two gradients.
    ``context.padding`` belongs to the first input, ``context.memory_padding`` to the second.

    Attributes
    ----------
    loss : Loss
        Of outputs and targets. Required.
    n_inputs : int
        1 or 2.
    n_classes : int or None
        How many classes the loss tells apart, or how many numbers each answer has. A loss of
        classes needs it; otherwise None leaves it to the loss.
    targets_of : int or None
        The input, 0 or 1, whose tokens each have a target: targets are (batch, length), such as
        next tokens. None: there is one target, or one row of targets, for each sample.
    self_supervised : bool
        Whether y may be None: the model then makes targets from x, see `Batch.anew`.
    figures : mapping of str to callable
        What an evaluation reports besides the loss, and ``fit(metric=...)`` may name: functions of
        `npformer.losses.Measured`, the larger the better. For classes: "accuracy", "macro_f1" and
        "balanced_accuracy".
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Raise an error that names what to write instead of other libraries' methods."""
            if name in METHODS:
                model_name = type(self).__name__
                raise AttributeError(f"{model_name!r} has no attribute {name!r}. {METHODS[name]}")
            return super().__getattribute__(name)  # raises the usual error

    def __dir__(self) -> list[str]:
        """Return the names that users need; those of `HOOKS` work, and are left out."""
        return [name for name in super().__dir__() if name not in HOOKS]

    def __repr__(self) -> str:
        return describe_model(self)

    def _repr_html_(self) -> str:
        """Return what `repr` shows as HTML, for notebooks."""
        return model_as_html(self)

    @refuse_unknown_arguments
    def __call__(self, *x: Any, mask: Any = None, types: Any = None) -> Array:
        """Return the outputs at evaluation, on the model's backend.

        Parameters
        ----------
        *x : array
            One for each input, on the host or on the model's backend. Mask and types may follow.
        mask : bool array, shape (batch, length), optional
            True = keep, False = padding. For two inputs, `mask` and `types` are tuples.
        types : int array, shape (batch, length), optional
            Token types.
        """
        inputs = x[: self.n_inputs]
        mask, types = self._mask_and_types(x[self.n_inputs :], mask, types)
        return outputs(self, self.check(inputs, mask=mask, types=types))

    def _mask_and_types(
        self, positional: tuple[Any, ...], mask: Any, types: Any
    ) -> tuple[Any, Any]:
        """Return mask and types, which may be passed by position after the inputs."""
        named = {"mask": mask, "types": types}
        model_name = type(self).__name__
        if len(positional) > len(named):
            raise TypeError(
                f"{model_name} is called with {self.n_inputs + len(positional)} arrays; expected "
                f"{self.n_inputs}, then mask and types"
            )
        for name, value in zip(named, positional, strict=False):
            if named[name] is not None:
                raise TypeError(f"{model_name} is given {name} twice; expected it once")
            named[name] = value
        return named["mask"], named["types"]

    def loss_and_gradients(
        self,
        x: Any,
        y: Array,
        mask: Any = None,
        *,
        types: Any = None,
        workers: int | str = 1,
        micro_batch: int | None = None,
        label_smoothing: float = 0.0,
        loss: Loss | None = None,
        sample_weight: Any = None,
        seed: Seed = None,
    ) -> tuple[float, Gradients]:
        """Return the mean loss of a batch in training mode, in nats, and its gradients by name.

        Parameters
        ----------
        x, mask, types : array
            As in `__call__`; for two inputs tuples of them.
        y : array
            Targets. For classes: labels from 0 to n_classes - 1, (batch,), or (batch, length) if
            tokens have them; -1 marks a token without a label.
        workers : int or "auto"
            CPU threads that share the batch; a few long sequences are shared within each sequence.
        micro_batch : int, optional
            Samples that are computed at a time, to limit memory; the gradients are still those of
            the whole batch. None: all samples of each worker.
        label_smoothing : float
            See `softmax_cross_entropy`.
        loss : Loss, optional
            Used instead of the model's loss, see `npformer.losses`; label smoothing is then an
            option of the loss.
        sample_weight : array, shape (batch,) or, if tokens have targets, (batch, length)
            Of the samples in the mean, at least 0: sum_i s_i loss_i / sum_i s_i.
        seed : int or numpy.random.Generator, optional
            For dropout; needed if the model has any. The masks are the same however the batch is
            shared, so the gradients differ only in the order of sums.
        """
        generator = None if seed is None else generators.from_seed(seed)
        loss = self.loss_with(loss, label_smoothing)
        batch = self.check(x, y, mask, types, loss=loss, sample_weight=sample_weight)
        batch = self.upload(batch, loss=loss)
        if not engine.enabled() and workers == 1 and micro_batch is None:
            value, gradients = PlainStep(self, loss, generator)(batch)
        else:
            with team_of(self, workers, micro_batch, loss) as team:
                value, gradients = team.step(batch, generator)
        return float(value), gradients

    def predict(
        self,
        x: Any,
        mask: Any = None,
        batch_size: int = 256,
        types: Any = None,
    ) -> np.ndarray:
        """Return the most probable class of each answer; without classes, the outputs.

        The arguments are those of `predict_probabilities`.

        Raises
        ------
        ValueError
            Probabilities are NaN, so no class is the most probable.
        """
        if not isinstance(self.loss, Classification):
            return self.predict_in_batches(to_numpy, x, mask, batch_size, types)
        probabilities = self.predict_probabilities(x, mask, batch_size, types)
        refuse_samples(np.isnan(probabilities), "probabilities")
        return np.asarray(probabilities.argmax(axis=-1))

    def predict_probabilities(
        self,
        x: Any,
        mask: Any = None,
        batch_size: int = 256,
        types: Any = None,
    ) -> np.ndarray:
        """Return the probability of each class, in the shape of the outputs, on the host.

        Parameters
        ----------
        x, mask, types : array
            As in `__call__`; for two inputs tuples of them.
        batch_size : int
            Samples at a time in each thread. If sequences are long, a CPU worker takes only about
            2048 tokens at a time, whose results stay in the cache.
        """
        return self.predict_in_batches(self.loss.probabilities, x, mask, batch_size, types)

    def answers(self, samples: Batch, batch_size: int) -> Iterator[Answers]:
        """Yield outputs at evaluation, their targets, and the number of each output's sample.

        If tokens have targets, their outputs may need much memory: they are computed for about
        `TOKENS_AT_ONCE` tokens at a time, and yielded in parts as large as of samples in files.
        """
        n_computed = n_yielded = max(1, len(samples))
        if self.targets_of is not None:
            n_yielded = rows_at_once(self, samples.inputs)
            n_computed = max(n_yielded, TOKENS_AT_ONCE // max(1, samples.n_tokens))
        for computed in spans(len(samples), n_computed):
            batch = samples.select(computed)
            outputs = predict_in_batches(self, to_numpy, batch.inputs, batch_size)
            targets = [np.asarray(array) for array in batch.targets()]
            for rows in spans(len(batch), n_yielded):
                numbers = np.arange(computed.start + rows.start, computed.start + rows.stop)
                yield outputs[rows], [array[rows] for array in targets], numbers

    def predict_in_batches(
        self,
        convert: Callable[[Array], np.ndarray],
        x: Any,
        mask: Any = None,
        batch_size: int = 256,
        types: Any = None,
    ) -> np.ndarray:
        """Compute outputs batch by batch, convert each batch's to a host array, and join them."""
        inputs = self.check_inputs(inputs_of_arrays(self, x, mask, types))
        return predict_in_batches(self, convert, inputs, batch_size)

    def explain(self, x: Any, mask: Any = None, types: Any = None) -> list[Explanation]:
        """Return the matrices that each layer's mixer applied: see `npformer.explain`."""
        return explain(self, x, mask, types)


def spans(n: int, size: int) -> list[slice]:
    """Split range(n) into slices of `size` rows; the last one may be shorter."""
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]
