"""What training needs from a model: its inputs, targets, loss, figures and padding."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from npformer.core import Array, Feed, Layer, Padding, a_type, asarray, checks
from npformer.core.inputs import Sequences, inputs_of_arrays
from npformer.core.support.explained_errors import drop_class_from_names
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
    """Placeholder for the loss that a model must set: reading it raises AttributeError."""

    def __get__(self, model: Any, kind: type) -> Any:
        if model is None:
            return self
        raise AttributeError(
            f"{kind.__name__} has no loss; expected one. Set self.loss in __init__, such as "
            "npformer.losses.MeanSquaredError()"
        )


@drop_class_from_names
class Trainable(Layer):
    """What a model defines, and what training calls. `Model` adds what users call."""

    loss: Loss = _NoLoss()  # type: ignore[assignment]
    n_classes: int | None = None
    targets_of: int | None = None
    self_supervised: bool = False
    figures: Mapping[str, Callable[[Measured], float]] = FIGURES

    # What a model says -------------------------------------------------------------------------

    def check_inputs(self, inputs: tuple[Sequences, ...]) -> tuple[Sequences, ...]:
        """Return the inputs after checking them: a wrong one raises TypeError or ValueError.

        Arrays are on the host or on the model's backend. This checks backends, masks, types and
        equal numbers of samples; a subclass adds further checks, such as the range of ids.
        """
        for k, sequences in enumerate(inputs):
            index = f"[{k}]" if len(inputs) > 1 else ""
            x = sequences.x
            checks.on_host_or(f"x{index}", x, self)
            if x.ndim == 0 or len(x) != len(inputs[0].x):
                raise ValueError(
                    f"x{index} has shape {tuple(x.shape)}; expected an entry for each of the "
                    f"samples, {len(inputs[0].x) if inputs[0].x.ndim else 'at least 1'}"
                )
            if sequences.padding is not None:
                mask = sequences.padding.mask
                checks.on_host_or(f"mask{index}", mask, self)
                checks.mask(f"mask{index}", mask, tuple(x.shape[:2]))
            if sequences.types is not None:
                types = sequences.types
                checks.on_host_or(f"types{index}", types, self)
                checks.shape(f"types{index}", types, tuple(x.shape[:2]), "One for each token")
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
        """Return a note about some samples, for `remember`, if a training has padding.

        `before` is the note for the samples before them. Ranks exchange their last notes.
        """

    def remember(self, notes: list[Any]) -> None:
        """Receive the notes of all ranks, once, before a training with padding."""

    # What training calls -----------------------------------------------------------------------

    def loss_with(self, loss: Loss | None = None, label_smoothing: float = 0.0) -> Loss:
        """Return the loss to train on: `loss`, or the model's loss with label smoothing."""
        if loss is None and str(label_smoothing) in ("0", "0.0"):
            return self.loss
        label_smoothing = checks.rate("label_smoothing", label_smoothing)
        if loss is None:
            return self._loss_with_smoothing(label_smoothing)
        checks.instance("loss", loss, Loss, "npformer.losses.SoftmaxCrossEntropy() is one")
        if label_smoothing:
            raise ValueError(
                f"label_smoothing is {label_smoothing} and a loss is given; expected one of the "
                "two. Pass it to the loss: SoftmaxCrossEntropy(label_smoothing=0.1)"
            )
        if self.n_classes is not None:
            self._check_outputs(loss, self.n_classes)
        return loss

    def _loss_with_smoothing(self, label_smoothing: float) -> Loss:
        """Return the model's loss with label smoothing."""
        if not isinstance(self.loss, Classification):
            raise TypeError(
                f"label_smoothing is {label_smoothing} and the model's loss is a "
                f"{type(self.loss).__name__}, which has no labels; expected 0"
            )
        loss = copy.copy(self.loss)  # a user's loss may have further options
        loss.label_smoothing = label_smoothing
        return loss

    def _check_outputs(self, loss: Loss, n_classes: int) -> None:
        """Check that the model has as many outputs as a loss needs."""
        needed = loss.n_outputs(n_classes)
        n_outputs = self.loss.n_outputs(n_classes)
        if needed != n_outputs:
            raise ValueError(
                f"{a_type(loss)} of {n_classes} classes needs {needed} outputs "
                f"and this model has {n_outputs}; expected as many. Build the model for it, with "
                "output=..., or choose a loss that fits"
            )

    def loss_with_class_weights(self, loss: Loss, class_weight: Any, samples: Samples) -> Loss:
        """Return a loss with the class weights that `class_weight` gives for some samples."""
        n_classes = self.n_classes
        if n_classes is None:
            raise TypeError(
                f"class_weight is given and {type(self).__name__} has no n_classes; expected a "
                "model of classes. Pass sample_weight instead"
            )

        def count_labels() -> np.ndarray:
            return samples.sum_of(lambda batch: label_weights(batch.y, batch.weights, n_classes))

        weights = class_weights(class_weight, loss, n_classes, count_labels)
        weighted = copy.copy(loss)
        weighted.class_weight = weights  # type: ignore[attr-defined]
        if not samples.counts_for(weighted).any():
            raise ValueError(
                f"class_weight is {list(weights)}, and every label to train on has the weight 0; "
                "expected at least one class with labels and a weight above 0"
            )
        return weighted

    def strata(self, y: Array | None, loss: Loss) -> np.ndarray | None:
        """Return the class of each sample, if it has one, for a stratified split."""
        if isinstance(loss, Classification) and self.targets_of is None and y is not None:
            return np.asarray(y)
        return None

    def check(
        self, x: Any, y: Array | None = None, mask: Any = None, types: Any = None, **counted: Any
    ) -> Batch:
        """Return checked samples, not uploaded; arguments as in `loss_and_gradients`.

        `counted` may have `loss` and `sample_weight`.
        """
        x, y, mask, types = self.arrange(x, y, mask, types)
        sample_weight = counted.get("sample_weight")
        if sample_weight is not None:
            counted["sample_weight"] = check_weights(sample_weight)
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
            y = self._mask_targets(y, inputs[self.targets_of].padding, loss)
        self.check_targets(y, answers, loss)
        if sample_weight is not None:
            sample_weight = target_weights(sample_weight, answers, loss, self.dtype)
        return Batch(inputs, y, sample_weight, targets_of=self.targets_of)

    def _mask_targets(self, y: Array, padding: Padding | None, loss: Loss) -> Array:
        """Return the targets of tokens, changed so that padding does not count."""
        if padding is None:
            return y
        # This waits for the device only if y is on the host and the mask is not.
        on_host = isinstance(y, np.ndarray)
        mask = padding.on_host() if on_host else asarray(padding.mask, self.backend)
        if y.shape[:2] != mask.shape:
            return y  # `check_targets` raises the error
        return loss.without_padding(y, mask)

    def upload(self, batch: Batch, feed: Feed | None = None, *, loss: Loss | None = None) -> Batch:
        """Upload checked samples to the model's backend, with vectors set to 0 at padding.

        `loss` counts the targets while they are still on the host.
        """
        backend = self.backend
        if backend == "numpy" and not batch.has_padding:
            return batch
        y, weights, *rest = _upload_arrays(batch, backend, feed)
        inputs = tuple(map(_upload, batch.inputs, rest[::3], rest[1::3], rest[2::3]))
        if isinstance(batch.y, np.ndarray) and batch.counts is None:  # on a device this would wait
            batch = replace(batch, counts=batch.counts_for(loss or self.loss))
        return replace(batch, inputs=inputs, y=y, weights=weights)

    def batch(self, x: Any, y: Array, mask: Any = None, types: Any = None) -> Batch:
        """Return checked samples on the model's backend; arguments as in `loss_and_gradients`."""
        return self.upload(self.check(x, y, mask, types))


def _upload_arrays(batch: Batch, backend: str, feed: Feed | None) -> list[Any]:
    """Return targets, weights, and x, mask and types of each input on a backend; None for None."""
    arrays: list[Any] = [batch.y, batch.weights]
    for sequences in batch.inputs:
        arrays += [sequences.x, sequences.mask, sequences.types]
    if feed is not None:
        arrays = list(feed(*arrays))
    return [None if array is None else asarray(array, backend) for array in arrays]


def _upload(sequences: Sequences, x: Array, mask: Array | None, types: Array | None) -> Sequences:
    """Return an input on the device, from its arrays there; vectors are 0 at padding."""
    if sequences.padding is None:
        return replace(sequences, x=x, types=types)
    host_mask = sequences.padding.mask if isinstance(sequences.padding.mask, np.ndarray) else None
    has_vectors = x.ndim == 3 and x.dtype.kind == "f"  # ids become vectors later
    if has_vectors:
        x = without_padding(x, mask)
    return Sequences(x, Padding(mask, host_mask, hidden=has_vectors), types)
