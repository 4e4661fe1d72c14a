"""Model: a layer that can be trained. `npformer.fit` takes any, and knows nothing else of it."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from npformer import engine
from npformer.core import (
    Array,
    Context,
    Feed,
    Gradients,
    Layer,
    Padding,
    Seed,
    asarray,
    checks,
    described,
    explained_memory_error,
    initializers,
    part_generator,
    step_key,
    to_numpy,
)
from npformer.data.batch import Batch, Sequences, as_inputs
from npformer.data.samples import Samples
from npformer.data.weights import target_weights
from npformer.engine.snapshot import snapshot_of
from npformer.engine.team import team_of
from npformer.inspection.explain import Explanation, explain
from npformer.layers import Pooling
from npformer.layers.pooling import without_padding
from npformer.losses import Classification, Loss, Measured
from npformer.mixers import WholeSequenceMixer
from npformer.models import accumulate
from npformer.trainable.class_weights import class_weights, label_weights
from npformer.trainable.metrics import FIGURES
from npformer.trainable.predictions import in_batches

QUIET: Any = {"over": "ignore", "invalid": "ignore"}
"""Settings of a training step for np.errstate: an overflow shows in the loss."""


class Model(Layer):
    """A layer that can be trained: it says what its inputs, targets, loss and figures are.

    A subclass has the passes of a `Layer`, calls ``self.flatten()`` at the end of its ``__init__``,
    and sets what differs of the attributes below. It may override the methods under "What a model
    says". docs/extending/model.md has three examples.

    Inputs, masks and token types are an array, or for a model with two inputs a tuple with one for
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
        The input whose tokens have a target each, 0 or 1: targets are (batch, length), as next
        tokens are. None: there is one target, or one row of targets, for each sample.
    figures : mapping of str to callable
        What an evaluation reports beside the loss, and what ``fit(metric=...)`` may name: functions
        of `npformer.losses.Measured`, the larger the better. Of classes: "accuracy", "macro_f1" and
        "balanced_accuracy".
    """

    loss: Loss
    n_classes: int | None = None
    targets_of: int | None = None
    figures: Mapping[str, Callable[[Measured], float]] = FIGURES

    # What a model says -------------------------------------------------------------------------

    def check_inputs(self, inputs: tuple[Sequences, ...]) -> tuple[Sequences, ...]:
        """Return the inputs after checking them: a wrong one raises TypeError or ValueError.

        Arrays are on the host or on the model's backend. This checks backends, masks, types and
        that there are as many samples; a subclass adds what it knows, such as a range of ids.
        """
        for k, each in enumerate(inputs):
            x, mask, types = (f"{n}[{k}]" if k else n for n in ("x", "mask", "types"))
            checks.on_host_or(x, each.x, self)
            if each.x.ndim == 0 or len(each.x) != len(inputs[0].x):
                raise ValueError(
                    f"{x} has shape {tuple(each.x.shape)}; expected an entry for each of the "
                    f"samples, {len(inputs[0].x) if inputs[0].x.ndim else 'at least 1'}"
                )
            if each.padding is not None:
                checks.on_host_or(mask, each.padding.mask, self)
                checks.mask(mask, each.padding.mask, tuple(each.x.shape[:2]))
            if each.types is not None:
                checks.on_host_or(types, each.types, self)
                checks.shape(types, each.types, tuple(each.x.shape[:2]), "One for each token")
        return inputs

    def check_targets(self, y: Array, answers: tuple[int, ...], loss: Loss) -> None:
        """Check targets, for as many answers: (batch,), or (batch, length) if tokens have them."""
        if self.n_classes is None and isinstance(loss, Classification):
            raise TypeError(
                f"{type(self).__name__} has no n_classes, and a {type(loss).__name__} tells "
                "classes apart; expected their number. Set self.n_classes in __init__"
            )
        loss.check(y, answers, self.n_classes)  # type: ignore[arg-type]

    def skips_padding(self) -> bool:
        """Return whether the amount of padding changes no output, so that it may be cut.

        It does in a mixer that mixes padding as zeros, and if a pooling needs all of max_len.
        """
        return not any(
            (isinstance(layer, WholeSequenceMixer) and layer.padding == "zero")
            or (isinstance(layer, Pooling) and layer.full_length)
            for _, layer in self.layers()
        )

    def numbers_returned(self, inputs: Any) -> int:
        """Return about how many numbers the outputs for one sample have, to bound the memory."""
        tokens = 1
        if self.targets_of is not None:
            tokens = int(np.prod(inputs[self.targets_of].shape[1:2], dtype=int))
        return tokens * (1 if self.n_classes is None else self.loss.n_outputs(self.n_classes))

    def note(self, batch: Batch, before: Any = None) -> Any:
        """Return what `remember` shall know of some of the samples of a training.

        `before` is what this returned for the samples before them. It is sent between ranks.
        """

    def remember(self, notes: list[Any]) -> None:
        """Take over what `note` returned, once before a training: a list with one for each rank."""

    # What is asked of a model ------------------------------------------------------------------

    def loss_with(self, loss: Loss | None = None, label_smoothing: float = 0.0) -> Loss:
        """Return the loss to train on: the given one, or the model's own with label smoothing."""
        checks.rate("label_smoothing", label_smoothing)
        if loss is None and label_smoothing == 0:
            return self.loss
        if loss is None:
            if not isinstance(self.loss, Classification):
                raise TypeError(
                    f"label_smoothing is {label_smoothing} and the model's loss is a "
                    f"{type(self.loss).__name__}, which has no labels; expected 0"
                )
            smoothed = copy.copy(self.loss)  # a user's loss may have further options
            smoothed.label_smoothing = float(label_smoothing)
            return smoothed
        if not isinstance(loss, Loss):
            raise TypeError(
                f"loss is {described(loss)}; expected an object of a subclass of "
                "npformer.losses.Loss, such as SoftmaxCrossEntropy(label_smoothing=0.1)"
            )
        if label_smoothing:
            raise ValueError(
                f"label_smoothing is {label_smoothing} and a loss is given; expected one of the "
                "two. Give it to the loss: SoftmaxCrossEntropy(label_smoothing=0.1)"
            )
        if (n := self.n_classes) is not None:
            wants, has = loss.n_outputs(n), self.loss.n_outputs(n)
            if wants != has:
                raise ValueError(
                    f"a {type(loss).__name__} of {n} classes wants {wants} outputs "
                    f"and this model has {has}; expected as many. Build the model for it, with "
                    "output=..., or choose a loss that fits"
                )
        return loss

    def loss_with_class_weights(self, loss: Loss, class_weight: Any, samples: Samples) -> Loss:
        """Return a loss in which classes weigh what `class_weight` says of some samples."""
        if (n := self.n_classes) is None:
            raise TypeError(
                f"class_weight is given and {type(self).__name__} has no n_classes; expected a "
                "model of classes. Pass sample_weight instead"
            )
        weighted = copy.copy(loss)

        def of_labels(batch: Batch) -> np.ndarray:
            return label_weights(batch.y, batch.weights, n)

        numbers = class_weights(class_weight, loss, n, lambda: samples.sum_of(of_labels))
        weighted.class_weight = numbers  # type: ignore[attr-defined]
        if not samples.counts_for(weighted).any():
            raise ValueError(
                f"class_weight is {list(numbers)}, and every label to train on has the weight 0; "
                "expected at least one class with labels and a weight above 0"
            )
        return weighted

    def strata(self, y: Array | None, loss: Loss) -> np.ndarray | None:
        """Return the class of each sample, if it has one: shares of data are drawn from each."""
        by_class = isinstance(loss, Classification) and self.targets_of is None and y is not None
        return np.asarray(y) if by_class else None

    def check(
        self,
        x: Any,
        y: Array | None = None,
        mask: Any = None,
        types: Any = None,
        *,
        loss: Loss | None = None,
        sample_weight: Any = None,
    ) -> Batch:
        """Return checked samples, where they are; arguments as in `loss_and_gradients`."""
        inputs = self._inputs(x, mask, types)
        if y is None:
            if loss is not None:
                raise TypeError("y is None; expected targets, which the loss needs")
            return Batch(inputs, targets_of=self.targets_of)
        if len(inputs[0].x) == 0:
            raise ValueError("x has no samples; expected a batch of at least 1")
        loss, of_tokens = loss or self.loss, self.targets_of
        checks.on_host_or("y", y, self)
        answers = tuple(inputs[of_tokens or 0].x.shape[: 1 if of_tokens is None else 2])
        if of_tokens is not None and (padding := inputs[of_tokens].padding) is not None:
            # This waits for the device only if y is on the host and the mask is not.
            on_host = isinstance(y, np.ndarray)
            keep = padding.on_host() if on_host else asarray(padding.mask, self.backend)
            y = loss.without_padding(y, keep) if y.shape[:2] == keep.shape else y
        self.check_targets(y, answers, loss)
        if sample_weight is not None:
            sample_weight = target_weights(sample_weight, answers, loss, self.dtype)
        return Batch(inputs, y, sample_weight, None, of_tokens)

    def upload(
        self,
        batch: Batch,
        feed: Feed | None = None,
        *,
        loss: Loss | None = None,
        backend: str | None = None,
    ) -> Batch:
        """Upload checked samples to the model's backend, with vectors set to 0 at padding.

        `loss` counts the targets while they are still on the host. A caller that knows the backend
        passes it, because asking takes time.
        """
        backend = backend or snapshot_of(self).backend
        if backend == "numpy" and all(each.padding is None for each in batch.inputs):
            return batch
        several: Any = [batch.y, batch.weights]
        for each in batch.inputs:
            several += [each.x, None if each.padding is None else each.padding.mask, each.types]
        if feed is not None:
            several = feed(*several)
        y, weights, *rest = (a if a is None else asarray(a, backend) for a in several)
        inputs = tuple(
            _uploaded(each, *rest[3 * k : 3 * k + 3]) for k, each in enumerate(batch.inputs)
        )
        counts = batch.counts
        if isinstance(batch.y, np.ndarray) and counts is None:  # on a device this would wait
            counts = batch.counts_for(loss or self.loss)
        return Batch(inputs, y, weights, counts, batch.targets_of)

    def batch(self, x: Any, y: Array, mask: Any = None, types: Any = None) -> Batch:
        """Return checked samples on the model's backend; arguments as in `loss_and_gradients`."""
        return self.upload(self.check(x, y, mask, types))

    # What users call ---------------------------------------------------------------------------

    def __call__(self, *x: Array, mask: Any = None, types: Any = None) -> Array:
        """Return the outputs at evaluation, on the model's backend.

        Parameters
        ----------
        *x : array
            One for each input, on the host or on the model's backend.
        mask : bool array, shape (batch, length), optional
            True = keep, False = padding; for two inputs a tuple of them, and so are `types`.
        types : int array, shape (batch, length), optional
            Token types.
        """
        return self.outputs(self.check(x, mask=mask, types=types))

    def outputs(self, batch: Batch) -> Array:
        """Return the outputs of checked samples at evaluation, on the model's backend."""
        snapshot = snapshot_of(self)
        with team_of(self, "auto") as team:
            return team.forward(self.upload(batch, backend=snapshot.backend), snapshot)

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
        seed: Seed | None = None,
    ) -> tuple[float, Gradients]:
        """Return the mean loss of a batch in training mode, in nats, and its gradients by name.

        Parameters
        ----------
        x, mask, types : array
            As in `__call__`; for two inputs tuples of them.
        y : array
            Targets. Of classes: labels from 0 to n_classes - 1, (batch,), or (batch, length) if
            tokens have them; -1 marks a token without a label.
        workers : int or "auto"
            CPU threads that share the batch; a few long sequences are shared within each sequence.
        micro_batch : int, optional
            Samples that are computed at a time, to bound the memory; the gradients are still those
            of the whole batch. None: each worker's whole share.
        label_smoothing : float
            See `softmax_cross_entropy`.
        loss : Loss, optional
            Used instead of the model's own, see `npformer.losses`; label smoothing is an option
            of the loss.
        sample_weight : array, shape (batch,), or also (batch, length) if tokens have targets
            Of the samples in the mean, at least 0: sum_i s_i loss_i / sum_i s_i.
        seed : int or numpy.random.Generator, optional
            For dropout; needed if the model has any. The masks are the same however the batch is
            shared; the gradients then differ in the order of sums alone.
        """
        generator = None if seed is None else initializers.generator(seed)
        if loss is not None or label_smoothing != 0:
            loss = self.loss_with(loss, label_smoothing)
        snapshot = snapshot_of(self)
        batch = self.check(x, y, mask, types, loss=loss, sample_weight=sample_weight)
        batch = self.upload(batch, loss=loss, backend=snapshot.backend)
        if not engine.enabled() and workers == 1 and micro_batch is None:  # the plain step
            if generator is not None:
                generator = part_generator(step_key(generator), 0, len(batch))
            context = Context(training=True, generator=generator)
            gradients = Gradients(snapshot.layout)
            with np.errstate(**QUIET), explained_memory_error(snapshot.backend, len(y)):
                value = accumulate(self, loss or self.loss, batch, context, gradients)
                return float(value), gradients
        with team_of(self, workers, micro_batch, loss) as team:
            value, gradients = team.step(batch, generator=generator, snapshot=snapshot)
        return float(value), gradients

    def predict(
        self,
        x: Any,
        mask: Any = None,
        batch_size: int = 256,
        types: Any = None,
        processes: bool | str = "auto",
    ) -> np.ndarray:
        """Return the most probable class of each answer; without classes, the outputs.

        The arguments are those of `predict_probabilities`.

        Raises
        ------
        ValueError
            Probabilities are NaN: no class is the most probable.
        """
        if not isinstance(self.loss, Classification):
            return self.in_batches(to_numpy, x, mask, batch_size, types, processes)
        probabilities = self.predict_probabilities(x, mask, batch_size, types, processes)
        if (wrong := np.isnan(probabilities)).any():
            raise ValueError(
                f"the probabilities of sample {int(np.argwhere(wrong)[0, 0])} are NaN; expected "
                "numbers. Its x holds NaN or infinity, or the weights do: npformer.trace(model, x) "
                "shows where NaN begins"
            )
        return np.asarray(probabilities.argmax(axis=-1))

    def predict_probabilities(
        self,
        x: Any,
        mask: Any = None,
        batch_size: int = 256,
        types: Any = None,
        processes: bool | str = "auto",
    ) -> np.ndarray:
        """Return the probability of each class: the shape of the outputs, on the host.

        Parameters
        ----------
        x, mask, types : array
            As in `__call__`; for two inputs tuples of them.
        batch_size : int
            Samples at a time in each process. If sequences are long, a CPU worker takes only about
            2048 tokens at a time, whose results stay in the cache.
        processes : bool or "auto"
            Whether CPU workers are copies of this process or threads, as in `fit`. "auto": copies
            for many tokens. What a layer of yours stores during a call stays in its copy.
        """
        return self.in_batches(self.loss.probabilities, x, mask, batch_size, types, processes)

    def in_batches(
        self,
        convert: Callable[[Array], np.ndarray],
        x: Any,
        mask: Any = None,
        batch_size: int = 256,
        types: Any = None,
        processes: bool | str = "auto",
    ) -> np.ndarray:
        """Compute outputs batch by batch, convert each batch's to a host array, and join them."""
        return in_batches(self, convert, self._inputs(x, mask, types), batch_size, processes)

    def explain(self, x: Any, mask: Any = None, types: Any = None) -> list[Explanation]:
        """Return the matrices that each layer's mixer applied: see `npformer.explain`."""
        return explain(self, x, mask, types)

    def _inputs(self, x: Any, mask: Any, types: Any) -> tuple[Sequences, ...]:
        """Return checked inputs of a user's arrays."""
        if self.n_inputs == 1 and mask is None and types is None and not isinstance(x, tuple):
            return self.check_inputs((Sequences(x),))  # the usual case
        inputs = as_inputs(x, mask, types)
        if len(inputs) != self.n_inputs:
            raise TypeError(
                f"x is {described(x)}, for {len(inputs)} inputs; expected {self.n_inputs}, which "
                f"is n_inputs of {type(self).__name__}: an array, or a tuple of one for each input"
            )
        return self.check_inputs(inputs)


def _uploaded(each: Sequences, x: Array, mask: Array | None, types: Array | None) -> Sequences:
    """Return an input on the device, from its arrays there; vectors are 0 at padding."""
    if each.padding is None:
        return replace(each, x=x, types=types)
    on_host = each.padding.mask if isinstance(each.padding.mask, np.ndarray) else None
    if x.ndim == 3 and x.dtype.kind == "f":
        x = without_padding(x, mask)
    return Sequences(x, Padding(mask, on_host, hidden=True), types)


def tell_once(model: Any, words: str) -> None:
    """Warn, unless this model has done so before."""
    if "_told" not in vars(model):
        model._told = True
        warnings.warn(words, stacklevel=5)
