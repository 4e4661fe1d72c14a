"""What `fit` makes of some of its arguments."""

from __future__ import annotations

import copy
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Any

import numpy as np

from npformer.core import PRECISIONS, Feed, Layer, checks, get_backend, use_precision
from npformer.data.lengths import lengths_of, sees_padding
from npformer.data.stored_samples import Samples, Seen, StoredSamples
from npformer.engine.updates import device_generator
from npformer.losses import Loss
from npformer.optim import Adam
from npformer.trainable import SequenceClassifier
from npformer.trainable.weights import class_weights, label_weights


def check_patience(patience: int | None, validation: Any) -> None:
    """Raise ValueError for patience without validation data."""
    if patience is not None and validation is None:
        raise ValueError(
            f"patience is {patience} and there is no validation data; expected some, because "
            "it decides which epoch is better. Pass validation=(x, y), or patience=None"
        )


def weighted_loss(
    model: SequenceClassifier, loss: Loss, given: bool, class_weight: Any, samples: Samples
) -> Loss:
    """Return a loss in which classes weigh what `class_weight` says of some samples.

    `given`: the user has chosen the loss.
    """
    if class_weight is None:
        return loss
    if given:
        raise ValueError(
            "class_weight and a loss are given; expected one of the two. Give it to the loss: "
            "SoftmaxCrossEntropy(class_weight=[1.0, 2.0])"
        )
    weighted = copy.copy(loss)

    def of_labels() -> np.ndarray:
        if isinstance(samples, StoredSamples):
            return samples.label_weights(model.n_classes)
        return label_weights(samples.y, samples.weights, model.n_classes)

    numbers = class_weights(class_weight, loss, model.n_classes, of_labels)
    weighted.class_weight = numbers  # type: ignore[attr-defined]
    if not samples.counts_for(weighted).any():
        raise ValueError(
            f"class_weight is {list(numbers)}, and every label to train on has the weight 0; "
            "expected at least one class with labels and a weight above 0"
        )
    return weighted


def optimizer_for(model: SequenceClassifier, optimizer: object, **settings: Any) -> Adam:
    """Return the given optimizer, or a new one with those of the settings that are not None."""
    given = {name: value for name, value in settings.items() if value is not None}
    if not model.parameters():
        raise ValueError(
            "every parameter of the model is frozen, so there is nothing to train; expected at "
            "least one that is not: model.unfreeze('classify.*')"
        )
    if optimizer is None:
        return Adam(model.parameters(), **given)
    if not isinstance(optimizer, Adam):
        raise TypeError(
            f"optimizer is {optimizer!r}; expected an npformer.Adam, such as "
            "Adam(model.parameters()), or None"
        )
    if given:
        both = " and ".join(f"{name}={value!r}" for name, value in given.items())
        raise ValueError(
            f"optimizer is given together with {both}; expected only one of the two, because an "
            "optimizer has its own settings. Pass them to Adam(...)"
        )
    if not trains(optimizer, model):
        raise ValueError(
            "optimizer's parameters are not this model's; expected exactly the model's own arrays. "
            "After loading, copying or moving a model make a new optimizer: "
            "Adam(model.parameters())"
        )
    return optimizer


def trains(optimizer: Adam, model: Layer) -> bool:
    """Return whether an optimizer updates exactly the model's own arrays, not copies of them."""
    theirs, ours = optimizer.parameters, model.parameters()
    return list(theirs) == list(ours) and all(theirs[name] is ours[name] for name in ours)


def dropout_generator(model: SequenceClassifier, masks: str, rng: np.random.Generator) -> Any:
    """Return the generator of dropout's masks; on a GPU, if asked for, one of the device.

    It is a child of `rng`, so that the order of the samples does not depend on dropout.
    """
    (own,) = rng.spawn(1)
    if masks == "device" and model.backend != "numpy":
        return device_generator(model.backend, int(own.integers(1 << 63))) or own
    return own


def note_padding(model: SequenceClassifier, samples: Samples) -> None:
    """Make a model remember how padding is marked in its training data.

    The id at all padding is the model's `padding_id`, if no token has it and it has none yet.
    """
    if isinstance(samples, StoredSamples):
        seen = samples.seen
    else:
        asks = samples.padding is not None and model.padding_id is None
        seen = Seen().note(samples, model.vocab_size if asks else None)
    if not seen.masked:
        return
    model.expects_mask = True
    if model.padding_id is None:
        model.padding_id = seen.padding_id()


def lengths_for(model: SequenceClassifier, samples: Samples, batches: str) -> np.ndarray | None:
    """Return the lengths by which samples are put into batches; None to shuffle all of them."""
    if isinstance(samples, StoredSamples):
        lengths, length = samples.lengths, samples.padded_length
    elif samples.padding is not None:
        lengths, length = lengths_of(samples.padding.on_host()), samples.x.shape[1]
    else:
        lengths = None
    if batches == "shuffled" or lengths is None:
        return None
    if sees_padding(model):
        if batches == "by_length":
            raise ValueError(
                "batches is 'by_length' and the amount of padding changes what this model "
                "computes (padding='zero' or pooling='flatten'); expected 'shuffled' or 'auto'"
            )
        return None
    return None if (lengths == length).all() else lengths


def feed_of(backend: str) -> AbstractContextManager[Feed | None]:
    """Return the feed that uploads batches while the device computes; None on the CPU."""
    start = get_backend(backend).feed
    return nullcontext() if start is None else closing(start())


def precision_of(model: SequenceClassifier, precision: str | None) -> AbstractContextManager[Any]:
    """Return a context in which matrix products have a precision; None changes nothing."""
    if precision is None:
        return nullcontext()
    checks.choice("precision", precision, PRECISIONS)
    if precision == "tf32" and model.dtype != "float32":
        raise ValueError(
            f"precision is 'tf32' and the model's dtype is {model.dtype}; expected float32, whose "
            "products TF32 rounds. Build the model with dtype='float32', or leave precision out"
        )
    return use_precision(precision, model.backend)
