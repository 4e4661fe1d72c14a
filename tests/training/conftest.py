"""Data that a small classifier learns in a few steps, and signals as they usually are."""

import signal

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


@pytest.fixture
def usual_handlers():
    """What runs in the background may ignore SIGINT and SIGHUP, and so would what it starts."""
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for signum, handler in before.items():
        signal.signal(signum, handler)
