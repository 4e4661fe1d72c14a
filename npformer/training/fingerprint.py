"""What a training was given: a digest of its data, and the settings that have to agree."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from npformer.optim import Adam
from npformer.training.stored_samples import Samples, StoredSamples


def digest_of(samples: Samples | None) -> str | None:
    """Return a digest of all samples: labels, masks, types, weights, their shapes and dtypes."""
    if samples is None:
        return None
    if isinstance(samples, StoredSamples):
        return samples.digest
    found = hashlib.sha256()
    mask = None if samples.padding is None else samples.padding.mask
    for array in (samples.x, samples.y, mask):
        if array is None:
            found.update(b"none")
        else:
            found.update(f"{array.dtype.str}{array.shape}".encode())
            found.update(np.ascontiguousarray(array).data)
    for name, array in (("types", samples.types), ("weights", samples.weights)):
        if array is not None:
            found.update(f"{name}{array.dtype.str}{array.shape}".encode())
            found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def factors_of(optimizer: Adam, steps: int) -> dict[str, float]:
    """Return the schedule's factors at some steps of a training."""
    at = (m * 10**k for k in range(10) for m in (1, 2, 5))
    return {str(step): float(optimizer.schedule(step)) for step in at if step <= steps}


def check_agreement(
    before: Mapping[str, Any], now: Mapping[str, Any], *, epochs_differ: bool
) -> None:
    """Check that a training goes on with what it began with.

    `must` has to be the same; of `may`, a difference is told by a warning, because the numbers then
    agree up to rounding only. Raises ValueError, which names each difference.
    """
    problems = [
        f"{name} is {value!r}, and was {before['must'][name]!r}"
        for name, value in now["must"].items()
        if value != before["must"][name]
    ]
    if problems:
        raise ValueError(
            f"the training cannot go on from the checkpoint: {'; '.join(problems)}. Expected what "
            "it began with. Pass the same again, or begin another training in another folder"
        )
    common = before["schedule"].keys() & now["schedule"].keys()
    other = sorted((s for s in common if before["schedule"][s] != now["schedule"][s]), key=int)
    if other:
        was, is_now = (each["schedule"][other[0]] for each in (before, now))
        change = f"the learning rate's factor at step {other[0]} is {is_now!r}, and was {was!r}"
        if not epochs_differ:
            raise ValueError(
                f"the training cannot go on from the checkpoint: {change}. Expected the same. Pass "
                "the same schedule, or begin another training in another folder"
            )
        warnings.warn(
            f"{change}: it depends on the number of epochs. Steps from here on take the new one",
            stacklevel=2,
        )
    changed = [
        f"{name} is {value!r}, and was {before['may'][name]!r}"
        for name, value in now["may"].items()
        if value != before["may"][name]
    ]
    if changed:
        warnings.warn(
            f"{'; '.join(changed)}: the training goes on, and equals one that was not stopped up "
            "to rounding, not bit for bit",
            stacklevel=2,
        )
