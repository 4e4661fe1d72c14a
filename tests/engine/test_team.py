"""A team: what its workers sum to, that runs repeat, and what they leave behind."""

import os
import subprocess
import sys
import threading
import time
from typing import ClassVar

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from npformer.engine import blas, workspace
from npformer.engine import team as engine_team
from npformer.engine.blas import one_blas_thread
from npformer.engine.team import Team
from npformer.engine.twin_classes import model_cache
from npformer.layers import Dropout
from npformer.models import SequenceModel
from tests.engine.helpers import blas_threads, run_in_threads, train

SHORT = 1e-5


@pytest.fixture(params=["sequences", "tokens", "no label in the second half"])
def batch(request, small_model, rng):
    """Make a float64 model and a batch of any size for it."""

    def make(n, **changes):
        ids, mask = rng.integers(0, 7, (n, 6)), np.arange(6) < rng.integers(1, 7, n)[:, None]
        if request.param == "sequences":
            return small_model(**changes), ids, rng.integers(0, 3, n), mask
        labels = np.where(rng.random((n, 6)) < 0.5, -1, rng.integers(0, 3, (n, 6)))
        if request.param.startswith("no label"):
            labels[n // 2 :] = -1
        return small_model(pooling="none", **changes), ids, labels, mask

    return make


def assert_sums_up(model, *arrays, rtol=1e-12, atol=1e-12, **options):
    """Check that a step in parts is the step of the whole batch."""
    smoothing = {name: options[name] for name in options if name == "label_smoothing"}
    loss, gradients = model.loss_and_gradients(*arrays, **smoothing)
    summed_loss, summed = model.loss_and_gradients(*arrays, **options)
    assert summed_loss == pytest.approx(loss, rel=1e-12, abs=1e-12)
    assert list(summed) == list(gradients)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(summed[name], gradient, rtol=rtol, atol=atol, err_msg=name)


# What they sum to ---------------------------------------------------------------------------------
@pytest.mark.parametrize(("n", "number"), [(8, 2), (5, 2), (5, 3), (4, 4), (3, 64)])
def test_the_parts_sum_to_the_whole_batch(batch, n, number):
    assert_sums_up(*batch(n), workers=number, label_smoothing=0.1)


def test_a_single_logit_sums_up_too(small_model, rng):
    model = small_model(n_classes=2, output="sigmoid")
    assert_sums_up(model, rng.integers(0, 7, (5, 6)), rng.integers(0, 2, 5), workers=2, atol=1e-13)


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("micro_batch", [1, 2, 3, 7, 8, 100])
def test_micro_batches_sum_to_the_whole_batch(batch, micro_batch, number):
    assert_sums_up(
        *batch(7), workers=number, micro_batch=micro_batch, label_smoothing=0.1, rtol=0, atol=1e-13
    )


def test_a_batch_without_any_label_adds_nothing(small_model, rng):
    model, x = small_model(pooling="none"), rng.integers(0, 7, (4, 6))
    for number in (1, 2):
        loss, gradients = model.loss_and_gradients(x, np.full((4, 6), -1), workers=number)
        assert loss == 0.0
        np.testing.assert_array_equal(gradients.flat, 0.0)


def test_the_parts_are_of_one_precision(small_model, rng):
    model = small_model(dtype="float32")
    arrays = rng.integers(0, 7, (4, 6)), np.arange(4) % 3
    _, gradients = model.loss_and_gradients(*arrays)
    with Team(model, 2) as team:
        summed_loss, summed = team.step(model.batch(*arrays))
    assert summed_loss.dtype == summed.flat.dtype == gradients.flat.dtype == "float32"


def test_a_team_may_be_given_batches_of_any_size(small_model, rng):
    model = small_model()
    with Team(model, 3) as team:
        for n in (2, 1, 7, 3, 1, 5):
            x, y = rng.integers(0, 7, (n, 6)), rng.integers(0, 3, n)
            alone, gradients = model.loss_and_gradients(x, y)
            loss, summed = team.step(model.batch(x, y))
            assert float(loss) == pytest.approx(alone, rel=1e-12)
            np.testing.assert_allclose(summed.flat, gradients.flat, rtol=1e-12, atol=1e-13)


# Some samples at a time ---------------------------------------------------------------------------
@pytest.mark.parametrize("micro_batch", [1, 3, 100])
def test_a_team_predicts_in_micro_batches_what_it_predicts_at_once(batch, micro_batch):
    model, x, _, mask = batch(7)
    for number in (1, 2):
        with Team(model, number, micro_batch) as team:
            predictions = team.forward(model.upload(model.check(x, mask=mask)))
            np.testing.assert_allclose(predictions, model(x, mask), rtol=0, atol=1e-13)


def test_micro_batches_bound_the_memory(small_model, rng):
    model = small_model(d_model=32, d_ff=64, max_len=64)
    x, y = rng.integers(0, 7, (16, 64)), np.arange(16) % 3
    held = {}
    for micro_batch in (None, 8, 2):
        workspaces = []
        with Team(model, 1, micro_batch, workspaces) as team:
            for _ in range(3):
                team.step(model.batch(x, y))
        (workspace,) = workspaces
        held[micro_batch] = workspace.n_bytes
    assert held[8] < 0.6 * held[None]
    assert held[2] < 0.2 * held[None]


@pytest.mark.parametrize("micro_batch", [0, -1, 2.0, "2", True])
def test_a_micro_batch_that_is_no_number_of_samples_is_refused(small_model, micro_batch):
    with pytest.raises(ValueError, match=r"micro_batch is .*; expected a whole number"):
        Team(small_model(), 1, micro_batch)


# The same again -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("number", "micro_batch", "dtype"),
    [(1, None, "float64"), (2, None, "float32"), (3, None, "float32"), (2, 2, "float32")],
)
def test_a_run_repeats_bit_for_bit(larger_model, number, micro_batch, dtype):
    runs = [train(larger_model(dtype=dtype), number, micro_batch) for _ in range(3)]
    np.testing.assert_array_equal(runs[1], runs[0])
    np.testing.assert_array_equal(runs[2], runs[0])
    assert np.isfinite(runs[0]).all()


def test_larger_models_lend(larger_model, rng):
    model = larger_model(dtype="float32")
    with Team(model, 3) as team:
        team.step(model.batch(rng.integers(0, 7, (9, 24)), rng.integers(0, 3, 9)), generator=rng)
        assert all(lends.n_bytes > 1 << 15 for lends in team.workspaces)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_dropout_is_the_same_for_the_same_seed(batch, number):
    model, x, y, mask = batch(5, dropout=0.3)
    runs = [model.loss_and_gradients(x, y, mask, workers=number, seed=seed) for seed in (3, 3, 4)]
    assert runs[0][0] == runs[1][0] != runs[2][0]
    np.testing.assert_array_equal(runs[0][1].flat, runs[1][1].flat)


def test_each_worker_draws_its_own_dropout(small_model, call_on_share):
    drawn = []

    def note(batch, context):
        drawn.append(context.generator.bit_generator.state["state"]["state"])

    call_on_share(note)
    model = small_model(dropout=0.3)
    model.loss_and_gradients(np.zeros((6, 6), int), np.zeros(6, int), workers=3, seed=0)
    assert len(set(drawn)) == 3


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("mixer", ["attention", "dense_synthesizer"])
def test_two_threads_that_train_at_once_get_what_each_gets_alone(larger_model, mixer, number):
    alone = [train(larger_model(mixer=mixer, seed=seed), number) for seed in (0, 1)]
    together = [None, None]

    def run(i):
        together[i] = train(larger_model(mixer=mixer, seed=i), number)

    run_in_threads(2, run)
    np.testing.assert_array_equal(together[0], alone[0])
    np.testing.assert_array_equal(together[1], alone[1])


def test_threads_that_share_a_model_get_what_each_gets_alone(larger_model):
    model = larger_model(pooling="none", dropout=0.0)
    rng = np.random.default_rng(0)
    batches = [(rng.integers(0, 7, (9, 24)), rng.integers(0, 3, (9, 24))) for _ in range(4)]
    alone = [(model(x), model.loss_and_gradients(x, y)[1].flat) for x, y in batches]
    same = []

    def run(i):
        (x, y), (logits, gradients) = batches[i], alone[i]
        for _ in range(10):
            same.append(np.array_equal(model(x), logits))
            same.append(np.array_equal(model.loss_and_gradients(x, y)[1].flat, gradients))

    run_in_threads(4, run)
    assert same == 80 * [True]


# Memory -------------------------------------------------------------------------------------------
def test_memory_stays_with_the_model_and_is_lent_to_one_call_at_a_time(small_model, call_on_share):
    model, x, y = small_model(), np.zeros((8, 6), int), np.arange(8) % 3
    for _ in range(3):
        model.loss_and_gradients(x, y, workers=2)
        model(x)
    shelf = model_cache(model).workspaces
    assert [len(team) for team in shelf] == [2]
    held, left = shelf[0], []

    def note(batch, context):
        left.append(list(shelf))
        if len(left) == 1:
            model(x)  # a call within a call, as from another thread

    call_on_share(note)
    model.loss_and_gradients(x, y)
    assert left == [[]]
    assert model_cache(model).workspaces is shelf
    assert len(shelf) == 2
    assert held in shelf


@pytest.mark.parametrize("number", [1, 2])
def test_results_that_were_returned_are_not_overwritten(larger_model, rng, number):
    """Results too large to be made anew lie in memory that is lent, and stay there."""
    model = larger_model(pooling="none", dropout=0.0, n_classes=10, max_len=48)
    x, y = rng.integers(0, 7, (16, 48)), rng.integers(0, 10, (16, 48))
    mask = np.arange(48) < rng.integers(1, 49, 16)[:, None]

    def all_results():
        loss, gradients = model.loss_and_gradients(x, y, mask, workers=number)
        logits = model(x, mask)
        assert logits.nbytes > workspace.SMALL
        view = model(x, mask)[3:5, ::2]
        probabilities, labels = model.predict_probabilities(x, mask), model.predict(x, mask)
        return [np.array(loss), gradients.flat, logits, view, probabilities, labels]

    first = all_results()
    copies = [a.copy() for a in first]
    x = x[::-1].copy()
    second = all_results()
    for one, copy, other in zip(first, copies, second, strict=True):
        np.testing.assert_array_equal(one, copy)
        assert not np.shares_memory(one, other)


def test_a_step_overwrites_the_gradients_of_the_one_before(small_model, token_batch):
    model, (x, y, mask) = small_model(), token_batch
    with Team(model, 2) as team:
        _, gradients = team.step(model.batch(x, y, mask))
        before = gradients.flat.copy()
        _, later = team.step(model.batch(x[::-1].copy(), y, mask))
    assert later is gradients
    assert (later.flat != before).any()


def test_a_copy_of_gradients_is_not_overwritten(small_model, token_batch):
    model, (x, y, mask) = small_model(), token_batch
    with Team(model, 2) as team:
        _, gradients = team.step(model.batch(x, y, mask))
        copied_gradients = gradients.copy()
        before = gradients.flat.copy()
        team.step(model.batch(x[::-1].copy(), y, mask))
    np.testing.assert_array_equal(copied_gradients.flat, before)


# BLAS and cores -----------------------------------------------------------------------------------
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("error", [None, ZeroDivisionError(), KeyboardInterrupt()])
def test_blas_is_limited(small_model, token_batch, call_on_share, two_blas_threads, number, error):
    model, (x, y, mask), thread_counts = small_model(), token_batch, []
    if not two_blas_threads:
        pytest.skip("NumPy's BLAS is none that threadpoolctl knows")

    def note(batch, context):
        thread_counts.append(blas_threads())
        if error is not None:
            raise error

    call_on_share(note)
    if error is None:
        model.loss_and_gradients(x, y, mask, workers=number)
    else:
        with pytest.raises(type(error)):
            model.loss_and_gradients(x, y, mask, workers=number)
    assert blas_threads() == two_blas_threads
    until_an_error = thread_counts if error is None else thread_counts[:1]
    assert {threads for counts in until_an_error for threads in counts} == {1}


def test_much_work_has_blas(small_model, token_batch, call_on_share, two_blas_threads, monkeypatch):
    thread_counts = []
    call_on_share(lambda batch, context: thread_counts.append(blas_threads()))
    monkeypatch.setattr(blas, "BLAS_SECONDS", 0.0)
    small_model().loss_and_gradients(*token_batch, workers=1)
    assert thread_counts == [two_blas_threads]


def test_a_gpu_leaves_blas_alone(two_blas_threads):
    with one_blas_thread("cupy", SHORT, 1):
        assert blas_threads() == two_blas_threads


def test_overlapping_steps_restore_the_blas_limit_when_the_last_one_ends(two_blas_threads):
    inside, leave = threading.Event(), threading.Event()

    def other():
        with one_blas_thread("numpy", SHORT, 1):
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=other)
    with one_blas_thread("numpy", SHORT, 1):
        thread.start()
        assert inside.wait(30)
    assert set(blas_threads()) <= {1}
    leave.set()
    thread.join(30)
    assert blas_threads() == two_blas_threads


def test_any_thread_may_hold_blas_to_one_thread_after_another_did():
    before, inside = blas_threads(), []
    with one_blas_thread("numpy", SHORT, 1):
        pass

    def other(_):
        with one_blas_thread("numpy", SHORT, 1):
            inside.extend(blas_threads())

    run_in_threads(1, other)
    assert set(inside) <= {1}
    assert blas_threads() == before
    with threadpool_limits(limits=1, user_api="blas"):
        assert set(blas_threads()) <= {1}
    assert blas_threads() == before


FORK = """
import os, sys
import numpy as np
from npformer import EncoderConfig, SequenceClassifier

config = EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=12, max_len=6, dropout=0.1)
model = SequenceClassifier(config, 3, vocab_size=7)
x, y = np.arange(48).reshape(8, 6) % 7, np.arange(8) % 3

def step():
    return model.loss_and_gradients(x, y, workers=2, seed=0)[1].flat

before = step()
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(step(), before) else 3)
_, status = os.waitpid(child, 0)
assert np.array_equal(step(), before)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_has_threads_that_work():
    command = [sys.executable, "-W", "ignore", "-c", FORK]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0


# Errors -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("number", [2, 3])
def test_an_error_is_raised_when_all_have_finished(small_model, simple_batch, monkeypatch, number):
    """Else the others would still write into what the next step begins with."""
    model, accumulate, finished = small_model(), engine_team.accumulate, []
    expected = model.loss_and_gradients(*simple_batch)[1].flat
    all_begun = threading.Barrier(number, timeout=30)  # what has not begun would never begin

    def fail_for_sample_0(model, loss, batch, *rest):
        all_begun.wait()
        if batch.inputs[0].x[0, 0] == 0:
            raise ZeroDivisionError("sample 0")
        time.sleep(0.1)
        result = accumulate(model, loss, batch, *rest)
        finished.append(True)
        return result

    with Team(model, number) as team:
        with monkeypatch.context() as patch:
            patch.setattr(engine_team, "accumulate", fail_for_sample_0)
            with pytest.raises(ZeroDivisionError, match="sample 0"):
                team.step(model.batch(*simple_batch))
            assert len(finished) == number - 1
        for _ in range(3):
            _, gradients = team.step(model.batch(*simple_batch))
            np.testing.assert_allclose(gradients.flat, expected, rtol=0, atol=1e-13)


def test_an_error_in_prediction_leaves_a_model_that_works(small_model, monkeypatch, rng):
    model, x = small_model(), rng.integers(0, 7, (8, 6))
    expected, forward = model(x), SequenceModel.forward

    def fail_after_forward(self, x, context):
        forward(self, x, context)
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(SequenceModel, "forward", fail_after_forward)
        with pytest.raises(ZeroDivisionError):
            model(x)
    np.testing.assert_array_equal(model(x), expected)


def test_overflow_in_a_worker_is_no_warning(small_model, token_batch):
    model = small_model()
    for parameter in model.parameters().values():
        parameter[...] = 1e300
    for number in (1, 2):
        loss, _ = model.loss_and_gradients(*token_batch, workers=number)
        assert not np.isfinite(loss)


# Masks that keep every token ----------------------------------------------------------------------
class Looks(Dropout):
    """A user's layer that notes the padding that it is told of."""

    paddings: ClassVar[list] = []

    def forward(self, x, context):
        self.paddings.append(context.padding)
        return super().forward(x, context)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("mixer", ["attention", "fourier"])
def test_a_share_without_padding_is_computed_as_without_a_mask(small_model, rng, mixer, workers):
    model = small_model(mixer=mixer, padding="per_length")
    x, y, mask = rng.integers(0, 7, (6, 5)), rng.integers(0, 3, 6), np.ones((6, 5), bool)
    with_mask, without = (
        model.loss_and_gradients(x, y, mask_or_none, workers=workers)
        for mask_or_none in (mask, None)
    )
    assert with_mask[0] == without[0]
    np.testing.assert_array_equal(with_mask[1].flat, without[1].flat)
    mask[:3, 3:] = False  # now the second half alone has no padding
    assert_sums_up(model, x, y, mask, workers=workers)


def test_a_users_layer_is_told_of_every_mask(small_model, rng, monkeypatch):
    monkeypatch.setattr(Looks, "paddings", [])
    model = small_model()
    model.embed.dropout = Looks(0.0)
    x, y, mask = rng.integers(0, 7, (6, 5)), rng.integers(0, 3, 6), np.ones((6, 5), bool)
    model.loss_and_gradients(x, y, mask, workers=2)
    assert len(Looks.paddings) == 2
    assert all(padding.mask.all() for padding in Looks.paddings)


def test_a_mixer_that_refuses_masks_refuses_those_without_padding(small_model, rng):
    x, y = rng.integers(0, 7, (6, 5)), rng.integers(0, 3, 6)
    with pytest.raises(ValueError, match="got a padding mask"):
        small_model(mixer="fourier").loss_and_gradients(x, y, np.ones((6, 5), bool))
