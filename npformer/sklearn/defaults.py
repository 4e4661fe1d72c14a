"""What "auto" stands for: batch size, epochs, and whether to hold samples out."""

import numpy as np

SMALLEST, LARGEST = 32, 256  # samples in a step
STEPS = 4000  # of a training, about
FEWEST, MOST = 10, 100  # epochs
ENOUGH = 200  # samples to hold some of them out


def batch_size_for(n: int) -> int:
    """Return the power of two next to sqrt(n), from 32 to 256; up to 64 samples are one batch."""
    if n <= 2 * SMALLEST:
        return n
    return int(np.clip(2 ** round(np.log2(n) / 2), SMALLEST, LARGEST))


def epochs_for(n: int, batch_size: int) -> int:
    """Return how many epochs make `STEPS` steps, but from 10 to 100."""
    return int(np.clip(round(STEPS / -(-n // batch_size)), FEWEST, MOST))


def hold_out(
    labels: np.ndarray, fraction: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and those held out, with the same share of each class.

    A class with a single sample keeps it for the training.
    """
    held = []
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        held.append(rows[: min(round(fraction * len(rows)), len(rows) - 1)])
    out = np.sort(np.concatenate(held))
    return np.setdiff1d(np.arange(len(labels)), out), out
