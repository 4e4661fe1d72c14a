"""A user's weights of samples, turned into weights of targets."""

from typing import Any

import numpy as np

from npformer.core import checks
from npformer.core.support.weights import moderate
from npformer.models.losses import Loss


def checked_weights(sample_weight: Any) -> np.ndarray | None:
    """Return weights of samples or tokens that float32 can hold, checked; None stays None."""
    if sample_weight is None:
        return None
    return moderate(checks.weights("sample_weight", sample_weight))


def target_weights(
    sample_weight: Any, answers: tuple[int, ...], loss: Loss, dtype: str
) -> np.ndarray:
    """Return the weight of each target, of the shape `answers`, after checking all of them.

    `sample_weight` has a number for each sample, or for each token if tokens have targets.
    """
    if not loss.takes_weights:
        raise TypeError(
            f"sample_weight is given and {type(loss).__name__} weighs no targets; expected a loss "
            "with forward(self, outputs, y, weights=None). Leave sample_weight out, or write the "
            "weighted mean there"
        )
    found = checks.weights("sample_weight", sample_weight)
    if found.shape not in (answers[:1], answers):
        or_token = f" or {answers}, one for each token" if len(answers) > 1 else ""
        raise ValueError(
            f"sample_weight has shape {found.shape}; expected {answers[:1]}, one number for each "
            f"sample{or_token}"
        )
    cast = found.astype(dtype)
    by_sample = cast.reshape(len(cast), *(1,) * (len(answers) - 1)) if cast.ndim == 1 else cast
    return np.ascontiguousarray(np.broadcast_to(by_sample, answers))
