"""CheckedModel: the checks and the upload of a classifier's inputs."""

import copy
import warnings
from typing import Any

import numpy as np

from npformer.classifier.weights import target_weights
from npformer.core import (
    Array,
    Feed,
    Padding,
    asarray,
    check_ends_in_padding,
    checks,
    described,
    to_numpy,
)
from npformer.engine.snapshot import snapshot_of
from npformer.layers import Pooling
from npformer.losses import Classification, Loss
from npformer.mixers import WholeSequenceMixer
from npformer.models import Batch, SequenceModel


class CheckedModel(SequenceModel):
    """A `SequenceModel` that makes checked batches from a user's arrays."""

    _told_of_masks: bool  # not there before the model has warned

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
        wants, has = loss.n_outputs(self.n_classes), self.loss.n_outputs(self.n_classes)
        if wants != has:
            raise ValueError(
                f"a {type(loss).__name__} of {self.n_classes} classes wants {wants} outputs "
                f"and this model has {has}; expected as many. Build the model for it, with "
                "output=..., or choose a loss that fits"
            )
        return loss

    @property
    def per_token(self) -> bool:
        """Whether there is an answer for each token."""
        return isinstance(self.pool, Pooling) and self.pool.per_token

    def batch(
        self,
        x: Array,
        y: Array | None = None,
        mask: Array | None = None,
        types: Array | None = None,
        *,
        loss: Loss | None = None,
        sample_weight: Any = None,
    ) -> Batch:
        """Return checked samples on the model's backend; arguments as in `loss_and_gradients`."""
        samples = self.check(x, y, mask, types, loss=loss, sample_weight=sample_weight)
        return self.upload(samples, loss=loss)

    def check(
        self,
        x: Array,
        y: Array | None = None,
        mask: Array | None = None,
        types: Array | None = None,
        *,
        loss: Loss | None = None,
        sample_weight: Any = None,
    ) -> Batch:
        """Return checked samples, as in `batch`, without uploading them."""
        self.embed.check(x, mask)
        if mask is None and (self.padding_id is not None or self.expects_mask):
            mask = self.mask_for(x)
        if types is not None:
            self.embed.check_types(types, x)
        padding = None if mask is None else Padding(mask)
        length, max_len = x.shape[1], self.config.max_len
        if isinstance(self.pool, Pooling) and self.pool.full_length and length != max_len:
            raise ValueError(
                f"x has length {length}; expected max_len = {max_len}, because "
                f"pooling={self.pooling!r} needs every sequence at full length. Pad them and pass "
                "a mask, or use pooling='mean'"
            )
        if mask is not None:
            self.check_padding(mask)
        if y is None:
            if loss is not None:
                raise TypeError("y is None; expected targets, which the loss needs")
            return Batch(x, None, padding, types)
        if len(x) == 0:
            raise ValueError("x has no samples; expected a batch of at least 1")
        loss = self.loss if loss is None else loss
        checks.on_host_or("y", y, self)
        if self.per_token and mask is not None and y.shape[:2] == mask.shape:
            # This waits for the device only if y is on the host and the mask is not.
            keep = to_numpy(mask) if isinstance(y, np.ndarray) else asarray(mask, self.backend)
            y = loss.without_padding(y, keep)
        answers = x.shape[: 1 + self.per_token]
        loss.check(y, answers, self.n_classes)
        if sample_weight is None:
            return Batch(x, y, padding, types)
        return Batch(x, y, padding, types, target_weights(sample_weight, answers, loss, self.dtype))

    def mask_for(self, x: Array) -> Array | None:
        """Return the mask of inputs that came without one: what is not `padding_id`. Say so once.

        A mask that is forgotten costs much accuracy and no error.
        """
        if self.padding_id is None:
            if self.expects_mask:
                _tell_once(
                    self,
                    "there is no mask, and the model was trained with masks: padding is taken for "
                    "tokens. Pass mask=..., which is True at every token, also if none is padding",
                )
            return None
        mask = x != self.padding_id
        if isinstance(x, np.ndarray) and mask.all():  # on a device this would wait
            return None
        _tell_once(
            self,
            f"there is no mask, so tokens with the id {self.padding_id}, the model's padding_id, "
            "are taken for padding. Pass mask=... to say so yourself",
        )
        return mask

    def upload(
        self,
        batch: Batch,
        feed: Feed | None = None,
        *,
        loss: Loss | None = None,
        backend: str | None = None,
    ) -> Batch:
        """Upload checked samples to the model's backend.

        `loss` counts the targets while they are still on the host. A caller that knows the backend
        passes it, because asking takes time.
        """
        if (backend := backend or snapshot_of(self).backend) == "numpy" and batch.padding is None:
            return batch
        padding = batch.padding
        mask = None if padding is None else padding.mask
        several = batch.x, batch.y, mask, batch.types, batch.weights
        if feed is not None:
            several = feed(*several)
        x, y, on_device, types, weights = (a if a is None else asarray(a, backend) for a in several)
        if padding is not None:
            x = self.embed.without_padding(x, on_device)
            on_host = mask if isinstance(mask, np.ndarray) else None
            padding = Padding(on_device, on_host, hidden=True)
        counts = batch.counts
        if isinstance(batch.y, np.ndarray) and counts is None:  # on a device this would wait
            counts = batch.counts_for(loss or self.loss)
        return Batch(x, y, padding, types, weights, counts)

    def check_padding(self, mask: Array) -> None:
        """Check that padding is only at the end, if a mixer computes each sequence at its length.

        A mask on a GPU is left to the layers, because looking at it waits for the device.
        """
        if self.config.padding != "per_length" or not isinstance(mask, np.ndarray):
            return
        checks.boolean("mask", mask)
        if mask.ndim == 2 and any(isinstance(m, WholeSequenceMixer) for _, m in self.layers()):
            check_ends_in_padding(mask)


def _tell_once(model: CheckedModel, words: str) -> None:
    """Warn, unless this model has done so before."""
    if not hasattr(model, "_told_of_masks"):
        model._told_of_masks = True
        warnings.warn(words, stacklevel=5)
