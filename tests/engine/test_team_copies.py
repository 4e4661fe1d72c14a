"""A team whose workers are copies of the process."""

import multiprocessing

import numpy as np
import pytest

from npformer import BatchTooLargeError
from npformer.engine import team as engine_team
from npformer.engine.processes import CannotCopyError
from npformer.engine.team import Team
from npformer.models.losses import SoftmaxCrossEntropy
from tests.engine.helpers import blas_threads, linux_only, refuse_fork, refuse_memory, trained


@pytest.mark.covering(1)
@linux_only
@pytest.mark.parametrize(("number", "micro_batch"), [(1, None), (2, None), (3, 2), (100, None)])
@pytest.mark.parametrize("changes", [{}, {"padding": "per_length"}, {"mixer": "dense_synthesizer"}])
def test_processes_and_threads_are_the_same_run(larger_model, number, micro_batch, changes):
    runs = [trained(larger_model(**changes), number, micro_batch, p) for p in (False, True)]
    np.testing.assert_array_equal(runs[1], runs[0])


@linux_only
def test_processes_are_told_all_of_a_batch(small_model, rng):
    model = small_model(pooling="none", n_token_types=2)
    ids, types = rng.integers(0, 7, (9, 6)), rng.integers(0, 2, (9, 6))
    labels, mask = rng.integers(-1, 3, (9, 6)), np.arange(6) < rng.integers(1, 7, 9)[:, None]
    loss, gradients = model.loss_and_gradients(ids, labels, mask, types=types, label_smoothing=0.1)
    with Team(model, 3, processes=True, loss=SoftmaxCrossEntropy(label_smoothing=0.1)) as team:
        found, summed = team.step(model.batch(ids, labels, mask, types))
        assert len(multiprocessing.active_children()) == 2
    assert float(found) == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(summed.flat, gradients.flat, rtol=0, atol=1e-13)
    assert not multiprocessing.active_children()


@linux_only
def test_an_error_of_a_process_is_raised_and_does_no_harm(small_model, simple_batch, monkeypatch):
    model, (x, y), accumulate = small_model(), simple_batch, engine_team.accumulate
    expected = model.loss_and_gradients(x, y)[1].flat

    def failing(model, loss, batch, *rest):
        (given,) = batch.arrays()
        if len(given) == 2 and (given == x[4:]).all():
            raise MemoryError("no memory in the last part")
        return accumulate(model, loss, batch, *rest)

    with Team(model, 3, processes=True) as team:
        with monkeypatch.context() as patch:
            patch.setattr(engine_team, "accumulate", failing)
            with pytest.raises(BatchTooLargeError, match="no memory in the last part") as caught:
                team.step(model.batch(x, y))
            assert "In a worker process" in caught.value.__cause__.__notes__[0]
        assert not multiprocessing.active_children()
        for _ in range(3):
            _, gradients = team.step(model.batch(x, y))
            np.testing.assert_allclose(gradients.flat, expected, rtol=0, atol=1e-13)


@linux_only
def test_processes_limit_blas(small_model, simple_batch, before_share, two_blas_threads):
    def check(batch, context):
        if multiprocessing.parent_process() is not None and blas_threads() != [1]:
            raise RuntimeError(f"BLAS has {blas_threads()} threads")

    before_share(check)
    model = small_model()
    with Team(model, 2, processes=True) as team:
        for _ in range(2):
            team.step(model.batch(*simple_batch))
            assert blas_threads() == two_blas_threads


# Where there are none -----------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["yes", 1, None, 2.0])
def test_processes_are_true_false_or_auto(small_model, asked):
    with pytest.raises(ValueError, match=r"processes is .*; expected True, False or 'auto'"):
        Team(small_model(), 2, processes=asked)


def test_processes_where_there_can_be_none(small_model, simple_batch, monkeypatch):
    monkeypatch.setattr("npformer.engine.processes.possible", lambda asked_for: False)
    model = small_model()
    with pytest.raises(ValueError, match="processes is True; expected False or 'auto' here"):
        Team(model, 2, processes=True)
    with Team(model, 2, processes="auto") as team:
        team.step(model.batch(*simple_batch))
    assert not multiprocessing.active_children()


@linux_only
@pytest.mark.parametrize("refuse", [refuse_fork, refuse_memory])
def test_threads_compute_where_no_process_starts(small_model, simple_batch, monkeypatch, refuse):
    model = small_model()
    expected = model.loss_and_gradients(*simple_batch, workers=2)[1].flat
    refuse(monkeypatch)
    with Team(model, 2, processes="auto") as team:
        for _ in range(2):
            _, gradients = team.step(model.batch(*simple_batch))
            np.testing.assert_array_equal(gradients.flat, expected)
    with Team(model, 2, processes=True) as team, pytest.raises(CannotCopyError):
        team.step(model.batch(*simple_batch))


@linux_only
def test_parameters_in_several_pieces_are_left_to_threads(small_model, simple_batch):
    model = small_model()
    model.classify = type(model.classify)(*model.classify.weight.shape, seed=0, dtype="float64")
    with pytest.raises(ValueError, match="lie in one buffer"):
        Team(model, 2, processes=True)
    with Team(model, 2, processes="auto") as team:
        team.step(model.batch(*simple_batch))
