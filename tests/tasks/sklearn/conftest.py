"""Small estimators and data."""

import numpy as np
import pytest

from tests.needs import NEEDS

pytest.importorskip("sklearn", reason=NEEDS["sklearn"])

from npformer.sklearn import EncoderClassifier

SMALL = {"d_model": 8, "n_layers": 1, "n_heads": 2, "d_ff": 8}


@pytest.fixture
def small():
    """Make a small estimator that trains for a few epochs, with changes."""

    def make(**changes):
        settings = {**SMALL, "max_iter": 12, "learning_rate": 1e-2, "random_state": 0}
        return EncoderClassifier(**(settings | changes))

    return make


@pytest.fixture
def ids(rng):
    """Token ids (120, 6) whose class is whether the first is below 5."""
    x = rng.integers(0, 10, (120, 6))
    x[:, 1:] = np.maximum(x[:, 1:], 5)
    return x, np.where(x[:, 0] < 5, "low", "high")


@pytest.fixture
def series(rng):
    """Series (120, 5, 2) whose class is the sign of a feature's mean."""
    x = rng.standard_normal((120, 5, 2)) * [1.0, 50.0] + [0.0, 7.0]
    return x, (x[:, :, 0].mean(axis=1) > 0).astype(int)


@pytest.fixture
def texts(rng):
    """Forty texts and their labels."""
    words = {"good": ["great", "fine", "lovely"], "bad": ["awful", "poor", "sad"]}
    labels = rng.choice(["good", "bad"], 40)
    return [f"It was a {rng.choice(words[label])} day." for label in labels], labels
