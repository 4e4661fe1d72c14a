"""What the ranks of a training have in common when it starts: arguments, data, weights, seeds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from npformer.core import Seed, described, initializers
from npformer.data.batch import Batch
from npformer.data.stored_samples import Samples, StoredSamples
from npformer.distributed import Communicator
from npformer.optim import Adam
from npformer.optim.sharded_adam import ShardedAdam
from npformer.storage.fingerprint import factors_of
from npformer.trainable import SequenceClassifier
from npformer.training.callbacks import Callback

ADAM = ("lr", "betas", "eps", "weight_decay", "no_decay", "steps")
"""Settings of Adam that are compared, beside its schedule."""

FACTORS_UP_TO = 10_000
"""Steps for which schedules are compared."""

LOOKED_AT = 64
"""Samples that are compared, besides all labels: those of another order or another file differ."""


def common_generator(ranks: Communicator, seed: Seed) -> np.random.Generator:
    """Return the generator of a training, in the same state on all ranks: that of rank 0."""
    own = initializers.generator(seed)
    if ranks.size == 1 or isinstance(seed, int | np.integer):
        return own
    of_first = ranks.first(own)
    same = of_first.bit_generator.state == own.bit_generator.state
    return own if same else of_first


def begin_together(
    ranks: Communicator, model: SequenceClassifier, optimizer: Adam, **given: Any
) -> None:
    """Check that all ranks were given the same; give them the weights and moments of rank 0.

    Raises ValueError, which names what differs.
    """
    if ranks.size == 1:
        return
    compared = {"model": model, "optimizer": optimizer, **given}
    of_ranks = ranks.gather({name: _comparable(value) for name, value in compared.items()})
    for rank, found in enumerate(of_ranks):
        for name, value in found.items():
            if value != (first := of_ranks[0][name]):
                raise ValueError(
                    f"{name} is {value} on rank {rank}, and {first} on rank 0; expected the same "
                    "on all ranks. Each takes its own part of every batch, so none needs a part of "
                    "the data made for it"
                )
    for parameter in model.named_parameters().values():
        ranks.broadcast(parameter.value)
    if optimizer.steps:  # as many on each
        optimizer.restore(*ranks.first(optimizer.state() if ranks.rank == 0 else ({}, {})))


def sharded(optimizer: Adam, ranks: Communicator, callbacks: Iterable[Callback]) -> Adam:
    """Return an optimizer whose moments are shared out over ranks; the same one for a single rank.

    Raises ValueError for a callback that would see, or change, gradients which no rank has whole.
    """
    for each in callbacks:
        if type(each).before_update is not Callback.before_update:
            raise ValueError(
                f"shard_moments is True and {described(each)} has before_update, for which no rank "
                "has the gradients; expected one of the two. Leave shard_moments out"
            )
    return optimizer if ranks.size == 1 else ShardedAdam(optimizer, ranks)


def _comparable(value: Any) -> Any:
    """Return what stands for a value in a comparison, and can be read in a message."""
    if isinstance(value, Batch | StoredSamples):
        return _in_short(value)
    if isinstance(value, SequenceClassifier):
        shapes = {name: p.shape for name, p in value.named_parameters().items()}
        digest = hashlib.sha256(repr(shapes).encode()).hexdigest()[:8]
        kind = f"{value.dtype} on {value.backend}"
        return f"{len(shapes)} parameters, {kind} (digest of their shapes {digest})"
    if isinstance(value, Adam):
        settings = {name: getattr(value, name) for name in ADAM}
        return f"Adam({settings}, schedule={factors_of(value, FACTORS_UP_TO)})"
    return value if isinstance(value, str | int | float | None) else described(value)


def _in_short(samples: Samples) -> str:
    """Return shape and a digest of samples: of all labels, and of some of the rest."""
    n = len(samples)
    some = samples.of_rows(np.unique(np.linspace(0, n - 1, min(n, LOOKED_AT)).astype(int)))
    mask = None if some.padding is None else some.padding.on_host()
    found = hashlib.sha256()
    for array in (samples.y, some.x, some.y, mask, some.types, some.weights):
        if array is not None:
            found.update(f"{array.dtype}{array.shape}".encode())
            found.update(np.ascontiguousarray(array).data)
    return f"{n} samples of shape {some.x.shape[1:]} (digest {found.hexdigest()[:8]})"
