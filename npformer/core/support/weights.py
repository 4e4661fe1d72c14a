"""Weights of samples or classes: only their ratios matter."""

import numpy as np

ORDINARY = 32
"""Weights whose largest lies from 2^-32 to 2^32 stay as they are, to the last bit."""


def moderate(weights: np.ndarray) -> np.ndarray:
    """Return weights divided by a power of two if the largest is far from 1: it is then near 1.

    A weighted mean does not change by a common factor. But float32 holds neither the sum of weights
    of 1e38, nor 1 / 1e-40.
    """
    exponent = exponent_of(float(weights.max(initial=0.0)))
    return np.ldexp(weights, -exponent) if exponent else weights


def exponent_of(largest: float) -> int:
    """Return e for weights to be divided by 2^e; 0 if they are ordinary, or no numbers."""
    if not 0.0 < largest < np.inf:
        return 0
    exponent = int(np.frexp(largest)[1])
    return 0 if abs(exponent) <= ORDINARY else exponent
