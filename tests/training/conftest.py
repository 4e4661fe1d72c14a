"""Data that a small classifier learns in a few steps."""

import numpy as np
import pytest


def signs(rng, n):
    """Return sequences of two features; the sign of one entry is the label."""
    x = rng.normal(size=(n, 4, 2))
    return x, (x[:, 1, 0] > 0).astype("int64")


@pytest.fixture
def data(rng):
    return signs(rng, 20)


@pytest.fixture
def validation():
    return signs(np.random.default_rng(1), 40)


@pytest.fixture
def make(small_model):
    """Make a classifier for `data`, with changes."""

    def build(**changes):
        return small_model(**({"n_features": 2, "pooling": "flatten", "max_len": 4} | changes))

    return build
