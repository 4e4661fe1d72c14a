"""Checks of the arguments of the checks: arrays, masks, and the layer itself."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from npformer.core import a_type, describe


def float_array(name: str, x: Any, least_axes: int) -> np.ndarray:
    """Return x after checking that it is an array of finite floats with some entries."""
    if type(x) is not np.ndarray:
        raise TypeError(f"{name} is {describe(x)}; expected a NumPy array of floats")
    if x.dtype.kind != "f":
        raise TypeError(
            f"{name} has dtype {x.dtype}; expected float64. Write {name}.astype('float64')"
        )
    if x.ndim < least_axes or x.size == 0:
        raise ValueError(
            f"{name} has shape {x.shape}; expected at least {least_axes} axes and one entry, such "
            "as (2, 5, 8) for (batch, length, features)"
        )
    if not np.isfinite(x).all():
        raise ValueError(f"{name} has NaN or infinity; expected finite numbers")
    checked: np.ndarray = x
    return checked


def mask_array(name: str, mask: Any) -> np.ndarray:
    """Return a mask after checking that it is an array of booleans, whole numbers or floats."""
    if type(mask) is not np.ndarray or mask.dtype.kind not in "biuf" or mask.ndim == 0:
        raise TypeError(
            f"{name} is {describe(mask)}; expected a NumPy array, such as a boolean one of shape "
            "(batch, length)"
        )
    if np.isnan(mask).any():
        raise ValueError(f"{name} has NaN; expected numbers")
    checked: np.ndarray = mask
    return checked


def copy_of(target: Any) -> Any:
    """Return a copy of what is checked, so that it stays as it is."""
    try:
        return copy.deepcopy(target)
    except Exception as error:  # of a user's class, or of what cannot be copied
        raise TypeError(
            f"got {a_type(target)}, which cannot be copied ({type(error).__name__}: {error}); "
            "expected a layer or an optimizer, or a function without arguments that makes one"
        ) from error
