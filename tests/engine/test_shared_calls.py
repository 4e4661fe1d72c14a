"""Threads that share the calls of one worker."""

import numpy as np
import pytest

from npformer.engine import EngineContext, blas, snapshot, worker_counts
from npformer.engine import team as engine_team
from npformer.engine.cpu import tiles
from npformer.engine.snapshot import Cost
from npformer.engine.team import team_of
from tests.engine.helpers import blas_threads


@pytest.fixture
def shared_calls(monkeypatch):
    """Let threads share calls however little they do; return how many threads each call had."""
    monkeypatch.setattr(worker_counts, "PAIR_SECONDS", 0.0)
    monkeypatch.setattr(snapshot, "cost_of", lambda model: Cost(0.0, 1e-9))
    seen, in_parts = [], EngineContext.in_parts

    def noted(self, *arguments):
        seen.append(self.threads)
        return in_parts(self, *arguments)

    monkeypatch.setattr(EngineContext, "in_parts", noted)
    return seen


@pytest.mark.parametrize("mixer", ["attention", "dense_synthesizer"])
@pytest.mark.parametrize("number", [2, 3])
def test_they_change_no_number(small_model, shared_calls, rng, monkeypatch, mixer, number):
    monkeypatch.setattr(tiles, "SCORES", 1)  # a head at a time, as in long sequences
    changes = {"mixer": mixer, "d_model": 16, "d_ff": 32, "max_len": 40, "dropout": 0.2}
    ids, labels = rng.integers(0, 7, (1, 40)), np.array([2])
    mask = np.arange(40)[None] < 33
    results = []
    for asked in (1, number, number):
        model = small_model(**changes)
        shared_calls.clear()
        loss, gradients = model.loss_and_gradients(ids, labels, mask, workers=asked, seed=3)
        assert set(shared_calls) == {asked}
        with team_of(model, asked) as team:
            logits = team.forward(model.upload(model.check(ids, mask=mask)))
        assert set(shared_calls) == {asked}
        results.append([loss, gradients.flat, logits])
    for one, other, again in zip(*results, strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-14)
        np.testing.assert_array_equal(again, other)


def test_they_predict_all_samples_at_once(small_model, shared_calls, rng, monkeypatch, sizes):
    """They are few, and with fewer at a time there may be fewer heads than threads."""
    monkeypatch.setattr(engine_team, "PREDICTED_AT_ONCE", 1)
    model = small_model()
    with team_of(model, 4) as team:
        team.forward(model.check(rng.integers(0, 7, (2, 6))))
    assert sizes == [2]
    assert set(shared_calls) == {4}


@pytest.mark.usefixtures("shared_calls")
def test_blas_has_one_thread(small_model, rng, before_share, two_blas_threads, monkeypatch):
    if not two_blas_threads:
        pytest.skip("NumPy's BLAS is none that threadpoolctl knows")
    seen = []
    before_share(lambda batch, context: seen.append(blas_threads()))
    monkeypatch.setattr(blas, "BLAS_SECONDS", 0.0)
    small_model().loss_and_gradients(rng.integers(0, 7, (1, 6)), np.array([1]), workers=2)
    assert blas_threads() == two_blas_threads
    assert {threads for each in seen for threads in each} == {1}
