"""Fixtures of several files: models, and looks into a step."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from npformer.core import arrays
from npformer.engine import team as engine_team
from npformer.engine import worker_counts, workspace
from npformer.models import SequenceModel
from tests import fake_device
from tests.engine.helpers import blas_threads
from tests.engine.users import MASK


@pytest.fixture
def simple_batch():
    """Ids (6, 6) and labels (6,) for `small_model`; the first ids are 0 to 5."""
    x = np.arange(36).reshape(6, 6) % 7
    x[:, 0] = range(6)
    return x, np.arange(6) % 3


@pytest.fixture
def larger_model(small_model, monkeypatch):
    """Make a model most of whose arrays are lent: smaller ones are always new."""
    monkeypatch.setattr(workspace, "SMALL", 1 << 11)

    def make(**changes):
        return small_model(**({"d_model": 16, "d_ff": 64, "max_len": 24, "dropout": 0.2} | changes))

    return make


@pytest.fixture
def many_cores(monkeypatch):
    """Let there be three cores."""
    monkeypatch.setattr(worker_counts, "cores", lambda: 3)


@pytest.fixture
def call_on_share(monkeypatch):
    """Call a function with batch and context before each share of a step is computed."""
    accumulate = engine_team.accumulate

    def patch(call):
        def accumulate_after_call(model, loss, batch, context, *rest):
            call(batch, context)
            return accumulate(model, loss, batch, context, *rest)

        monkeypatch.setattr(engine_team, "accumulate", accumulate_after_call)

    return patch


@pytest.fixture
def two_blas_threads():
    """Give BLAS two threads and return what `blas_threads` says then."""
    with threadpool_limits(limits=2, user_api="blas"):
        yield blas_threads()


@pytest.fixture
def sizes(monkeypatch):
    """Note how many samples are predicted at a time in this process."""
    batch_sizes, forward = [], SequenceModel.forward

    def note_size(self, x, context):
        batch_sizes.append(len(x))
        return forward(self, x, context)

    monkeypatch.setattr(SequenceModel, "forward", note_size)
    return batch_sizes


@pytest.fixture
def batch():
    """Ids (8, 6), labels (8,) and a mask (8, 6) for `users.make`."""
    rng = np.random.default_rng(2)
    return rng.integers(0, 7, (8, 6)), rng.integers(0, 3, 8), MASK


@pytest.fixture
def fake_backend(monkeypatch):
    """Let there be a backend "fake", which pretends to be a device."""
    monkeypatch.setattr(arrays, "_backends", {"numpy": arrays.NUMPY})
    arrays.register(fake_device.backend())
