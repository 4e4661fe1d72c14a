"""Overfitting in words: where the validation loss turned up while the training loss fell."""

from __future__ import annotations

from typing import Any

import numpy as np

LEAST_RISE = 0.05
"""Of the lowest validation loss: by less it may rise by chance."""


def lowest_epoch(history: Any) -> int | None:
    """Return the epoch, counted from 1, of the lowest validation loss; None without any."""
    losses = np.array(history.validation_loss)
    return int(np.nanargmin(losses)) + 1 if np.isfinite(losses).any() else None


def describe_overfitting(history: Any) -> str:
    """Return where a training began to overfit, in numbers, and what to do; "" if it did not."""
    epoch = lowest_epoch(history)
    if epoch is None or epoch == len(history.validation_loss):
        return ""
    lowest = history.validation_loss[epoch - 1]
    last = history.validation_loss[-1]
    train_then = history.train_loss[epoch - 1]
    train_last = history.train_loss[-1]
    if not (last > lowest * (1.0 + LEAST_RISE) and train_last < train_then):
        return ""
    return (
        f"Overfitting: the validation loss was lowest in epoch {epoch}, {lowest:.3f}, and rose to "
        f"{last:.3f} in epoch {len(history.validation_loss)},\nwhile the training loss fell from "
        f"{train_then:.3f} to {train_last:.3f}. Train for about {epoch} epochs, with more samples "
        "or more\ndropout, or choose the weights by it: --metric loss --patience 3"
    )
