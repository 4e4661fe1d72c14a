"""What training needs from a model: its inputs, targets, loss, figures and padding."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from npformer.core import Array, Feed, Layer, Padding, a_type, asarray, checks
from npformer.core.inputs import Sequences, inputs_of_arrays
from npformer.data.samples import Samples
from npformer.data.weights import check_weights, target_weights
from npformer.layers import Pooling
from npformer.layers.pooling import without_padding
from npformer.mixers import WholeSequenceMixer
from npformer.models.batch import Batch
from npformer.models.losses import Classification, Loss, Measured
from npformer.models.trainable.class_weights import class_weights, label_weights
from npformer.models.trainable.metrics import FIGURES


class _NoLoss:
    """Stands for the loss that a model has to set: reading it raises AttributeError."""

    def __get__(self, model: Any, kind: type) -> Any:
        if model is None:
            return self
        raise AttributeError(
            f"{kind.__name__} has no loss; expected one. Set self.loss in __init__, such as "
            "npformer.losses.MeanSquaredError()"
        )


class Trainable(Layer):
    """What a model says, and what training calls. `Model` adds what users call."""

    loss: Loss = _NoLoss()  # type: ignore[assignment]
    n_classes: int | None = None
    targets_of: int | None = None
    self_supervised: bool = False
    figures: Mapping[str, Callable[[Measured], float]] = FIGURES

    # What a model says -------------------------------------------------------------------------

    def check_inputs(self, inputs: tuple[Sequences, ...]) -> tuple[Sequences, ...]:
        """Return the inputs after checking them: a wrong one raises TypeError or ValueError.

        Arrays are on the host or on the model's backend. This checks backends, masks, types and
        equal numbers of samples; a subclass adds checks of its own, such as the range of ids.
        """
        for k, each in enumerate(inputs):
            which = f"[{k}]" if len(inputs) > 1 else ""
            x, mask, types = f"x{which}", f"mask{which}", f"types{which}"
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

    def arrange(self, x: Any, y: Any, mask: Any, types: Any) -> tuple[Any, Any, Any, Any]:
        """Return a user's data as inputs and targets, on the host or in files, without checks.

        A model overrides this if users pass something else, such as targets that it shifts.
        """
        return x, y, mask, types

    def check_targets(self, y: Array, answers: tuple[int, ...], loss: Loss) -> None:
        """Check targets; `answers` is (batch,), or (batch, length) if tokens have answers."""
        if self.n_classes is None and isinstance(loss, Classification):
            raise TypeError(
                f"{type(self).__name__} has no n_classes, which {a_type(loss)} needs; "
                "expected the number of classes. Set self.n_classes in __init__"
            )
        loss.check(y, answers, self.n_classes)  # type: ignore[arg-type]

    def skips_padding(self) -> bool:
        """Return whether padding may be cut, because its amount changes no output.

        It may not if a mixer mixes padding as zeros, or a pooling needs all of max_len.
        """
        return not any(
            (isinstance(layer, WholeSequenceMixer) and layer.padding == "zero")
            or (isinstance(layer, Pooling) and layer.full_length)
            for _, layer in self.layers()
        )

    def numbers_returned(self, inputs: tuple[Sequences, ...]) -> int:
        """Return about how many numbers the outputs for one sample have, to limit memory."""
        tokens = 1 if self.targets_of is None else inputs[self.targets_of].length
        return tokens * (1 if self.n_classes is None else self.loss.n_outputs(self.n_classes))

    def note(self, batch: Batch, before: Any = None) -> Any:
        """Return what `remember` is to know of some samples of a training that has padding.

        `before` is what this returned for the samples before them. Ranks exchange the results.
        """

    def remember(self, notes: list[Any]) -> None:
        """Receive what `note` returned on each rank: once, before a training with padding."""

    # What training calls -----------------------------------------------------------------------

    def loss_with(self, loss: Loss | None = None, label_smoothing: float = 0.0) -> Loss:
        """Return the loss to train on: the given one, or the model's own with label smoothing."""
        if loss is None and str(label_smoothing) in ("0", "0.0"):
            return self.loss
        label_smoothing = checks.rate("label_smoothing", label_smoothing)
        if loss is None:
            return self._smoothed_loss(label_smoothing)
        checks.instance("loss", loss, Loss, "npformer.losses.SoftmaxCrossEntropy() is one")
        if label_smoothing:
            raise ValueError(
                f"label_smoothing is {label_smoothing} and a loss is given; expected one of the "
                "two. Pass it to the loss: SoftmaxCrossEntropy(label_smoothing=0.1)"
            )
        if self.n_classes is not None:
            self._check_outputs(loss, self.n_classes)
        return loss

    def _smoothed_loss(self, label_smoothing: float) -> Loss:
        """Return the model's own loss with label smoothing."""
        if not isinstance(self.loss, Classification):
            raise TypeError(
                f"label_smoothing is {label_smoothing} and the model's loss is a "
                f"{type(self.loss).__name__}, which has no labels; expected 0"
            )
        smoothed = copy.copy(self.loss)  # a user's loss may have further options
        smoothed.label_smoothing = label_smoothing
        return smoothed

    def _check_outputs(self, loss: Loss, n_classes: int) -> None:
        """Check that the model has as many outputs as a loss needs."""
        wants, has = loss.n_outputs(n_classes), self.loss.n_outputs(n_classes)
        if wants != has:
            raise ValueError(
                f"{a_type(loss)} of {n_classes} classes needs {wants} outputs "
                f"and this model has {has}; expected as many. Build the model for it, with "
                "output=..., or choose a loss that fits"
            )

    def loss_with_class_weights(self, loss: Loss, class_weight: Any, samples: Samples) -> Loss:
        """Return a loss with the class weights that `class_weight` gives for some samples."""
        if (n := self.n_classes) is None:
            raise TypeError(
                f"class_weight is given and {type(self).__name__} has no n_classes; expected a "
                "model of classes. Pass sample_weight instead"
            )
        weighted = copy.copy(loss)
        of_labels = partial(samples.sum_of, lambda some: label_weights(some.y, some.weights, n))
        numbers = class_weights(class_weight, loss, n, of_labels)
        weighted.class_weight = numbers  # type: ignore[attr-defined]
        if not samples.counts_for(weighted).any():
            raise ValueError(
                f"class_weight is {list(numbers)}, and every label to train on has the weight 0; "
                "expected at least one class with labels and a weight above 0"
            )
        return weighted

    def strata(self, y: Array | None, loss: Loss) -> np.ndarray | None:
        """Return the class of each sample, if it has one: each gives its share to validation."""
        by_class = isinstance(loss, Classification) and self.targets_of is None and y is not None
        return np.asarray(y) if by_class else None

    def check(
        self, x: Any, y: Array | None = None, mask: Any = None, types: Any = None, **counted: Any
    ) -> Batch:
        """Return checked samples, not uploaded; arguments as in `loss_and_gradients`.

        `counted` are the loss, and the weights of the samples in it.
        """
        x, y, mask, types = self.arrange(x, y, mask, types)
        if (weights := counted.get("sample_weight")) is not None:
            counted["sample_weight"] = check_weights(weights)
        batch = self.check_samples(inputs_of_arrays(self, x, mask, types), y, **counted)
        if y is not None and len(batch) == 0:
            raise ValueError("x has no samples; expected a batch of at least 1")
        return batch

    def check_samples(
        self,
        inputs: tuple[Sequences, ...],
        y: Array | None,
        loss: Loss | None = None,
        sample_weight: Any = None,
    ) -> Batch:
        """Return checked samples, whose arrays are arranged as inputs and targets already."""
        inputs = self.check_inputs(inputs)
        if y is None:
            if loss is not None:
                raise TypeError("y is None; expected targets, which the loss needs")
            return Batch(inputs, targets_of=self.targets_of)
        loss = self.loss if loss is None else loss
        checks.on_host_or("y", y, self)
        if self.targets_of is None:
            answers = tuple(inputs[0].x.shape[:1])  # one for each sample
        else:
            answers = tuple(inputs[self.targets_of].x.shape[:2])  # one for each token
            y = self._without_padding(y, inputs[self.targets_of].padding, loss)
        self.check_targets(y, answers, loss)
        if sample_weight is not None:
            sample_weight = target_weights(sample_weight, answers, loss, self.dtype)
        return Batch(inputs, y, sample_weight, targets_of=self.targets_of)

    def _without_padding(self, y: Array, padding: Padding | None, loss: Loss) -> Array:
        """Return targets of tokens, none where a token is padding."""
        if padding is None:
            return y
        # This waits for the device only if y is on the host and the mask is not.
        on_host = isinstance(y, np.ndarray)
        mask = padding.on_host() if on_host else asarray(padding.mask, self.backend)
        return loss.without_padding(y, mask) if y.shape[:2] == mask.shape else y

    def upload(self, batch: Batch, feed: Feed | None = None, *, loss: Loss | None = None) -> Batch:
        """Upload checked samples to the model's backend, with vectors set to 0 at padding.

        `loss` counts the targets while they are still on the host.
        """
        backend = self.backend
        if backend == "numpy" and not batch.has_padding:
            return batch
        y, weights, *rest = _uploaded_arrays(batch, backend, feed)
        inputs = tuple(map(_upload, batch.inputs, rest[::3], rest[1::3], rest[2::3]))
        if isinstance(batch.y, np.ndarray) and batch.counts is None:  # on a device this would wait
            batch = replace(batch, counts=batch.counts_for(loss or self.loss))
        return replace(batch, inputs=inputs, y=y, weights=weights)

    def batch(self, x: Any, y: Array, mask: Any = None, types: Any = None) -> Batch:
        """Return checked samples on the model's backend; arguments as in `loss_and_gradients`."""
        return self.upload(self.check(x, y, mask, types))


def _uploaded_arrays(batch: Batch, backend: str, feed: Feed | None) -> list[Any]:
    """Return targets, weights, and x, mask and types of each input on a backend; None for None."""
    arrays: list[Any] = [batch.y, batch.weights]
    for sequences in batch.inputs:
        arrays += [sequences.x, sequences.mask, sequences.types]
    on_their_way = arrays if feed is None else feed(*arrays)
    return [None if array is None else asarray(array, backend) for array in on_their_way]


def _upload(each: Sequences, x: Array, mask: Array | None, types: Array | None) -> Sequences:
    """Return an input on the device, from its arrays there; vectors are 0 at padding."""
    if each.padding is None:
        return replace(each, x=x, types=types)
    on_host = each.padding.mask if isinstance(each.padding.mask, np.ndarray) else None
    vectors = x.ndim == 3 and x.dtype.kind == "f"  # ids become vectors later
    x = without_padding(x, mask) if vectors else x
    return Sequences(x, Padding(mask, on_host, hidden=vectors), types)
