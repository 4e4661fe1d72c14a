"""How far GELU and its derivative are from the right values, in units in the last place."""

import math

import numpy as np
from scipy.special import ndtr

GRID = np.unique(np.concatenate([np.linspace(-13.0, 13.0, 5201), np.geomspace(1e-30, 1e-3, 99)]))
"""From where x Phi(x) is about to leave the normal numbers of float32."""


def gelu_in_float64(x):
    """x Phi(x), its derivative, and the sum of the derivative's terms without their signs."""
    x = x.astype("float64")
    density = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    return x * ndtr(x), ndtr(x) + x * density, ndtr(x) + np.abs(x) * density


def last_places(found, right, size):
    """The largest error, in units in the last place of `size`."""
    units = np.spacing(np.abs(size).astype(found.dtype))
    return float((np.abs(found - right) / units.astype("float64")).max())


def gelu_errors(x, y, derivative):
    """The largest errors of float32 results, of the derivative in units of its larger term."""
    right, slope, size = gelu_in_float64(x)
    return last_places(y, right, right), last_places(derivative, slope, size)
