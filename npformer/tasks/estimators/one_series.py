"""What a series must be to be read."""

from typing import Any

import numpy as np

from npformer.core import checks


def check_series(name: str, steps: Any) -> np.ndarray:
    """Return a series as a float64 array (steps, features), after checking it."""
    checks.ordered(name, steps)
    try:
        array = np.asarray(steps)
    except ValueError:
        array = np.array(None)
    if array.dtype.kind not in "fiub" or array.ndim not in (1, 2) or array.size == 0:
        what = "is empty" if array.size == 0 else f"is {array.dtype} {array.shape}"
        raise ValueError(
            f"{name} {what}; expected numbers, (steps, features), or (steps,) for one feature. "
            "Every step needs the same number of features"
        )
    array = array.astype("float64").reshape(len(array), -1)
    if not np.isfinite(array).all():
        step = int((~np.isfinite(array)).any(axis=1).argmax())
        raise ValueError(
            f"{name} has NaN or infinity in step {step}; expected numbers. Fill the gap, or leave "
            "the step out"
        )
    return array
