"""Turn a user's weights of samples into weights of targets."""

from typing import Any

import numpy as np

from npformer.core import checks
from npformer.core.support.weights import moderate
from npformer.models.losses import Loss


def check_weights(sample_weight: Any) -> np.ndarray | None:
    """Return weights of samples or tokens, checked and scaled for float32; None for None."""
    if sample_weight is None:
        return None
    return moderate(checks.weights("sample_weight", sample_weight))


def target_weights(
    sample_weight: Any, target_shape: tuple[int, ...], loss: Loss, dtype: str
) -> np.ndarray:
    """Return the weight of each target, an array of shape `target_shape`, after checking them.

    `sample_weight` has a number for each sample, or for each token if tokens have targets.
    """
    if not loss.takes_weights:
        raise TypeError(
            f"sample_weight is given and {type(loss).__name__} weighs no targets; expected a loss "
            "with forward(self, outputs, y, weights=None). Leave sample_weight out, or write the "
            "weighted mean there"
        )
    weights = checks.weights("sample_weight", sample_weight)
    if weights.shape not in (target_shape[:1], target_shape):
        or_token = f" or {target_shape}, one for each token" if len(target_shape) > 1 else ""
        raise ValueError(
            f"sample_weight has shape {weights.shape}; expected {target_shape[:1]}, one number for "
            f"each sample{or_token}"
        )
    weights = weights.astype(dtype)
    if weights.ndim == 1:  # one for each sample, also for all its tokens
        weights = weights.reshape(len(weights), *(1,) * (len(target_shape) - 1))
    return np.ascontiguousarray(np.broadcast_to(weights, target_shape))
