"""Let a function that draws from the global generators draw the same numbers in each call."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def repeatable_draws(seed: int) -> Iterator[None]:
    """Seed NumPy's and Python's global generators inside a `with` block, and restore them."""
    numpy_state = np.random.get_state()  # noqa: NPY002 - other people's code uses it
    python_state = random.getstate()
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)
