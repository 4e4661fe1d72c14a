"""Worker threads: how many, what they sum to, and what they leave behind."""

from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from npformer import MIXERS, workers
from npformer.workers import Team, choose, one_blas_thread, work

CPU, GPU = SimpleNamespace(backend="numpy"), SimpleNamespace(backend="cupy")
LONG, SHORT = 10 * workers.SMALL, workers.SMALL / 10


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


def blas_threads():
    """Return how many threads NumPy's BLAS has; SciPy may bring another, which nobody calls."""
    found = [entry for entry in threadpool_info() if entry["user_api"] == "blas"]
    of_numpy = [entry for entry in found if "numpy" in entry["filepath"]]
    return [entry["num_threads"] for entry in of_numpy or found]


# How many -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "model", "batch", "seconds", "expected"),
    [
        (1, CPU, 64, LONG, 1),
        (3, CPU, 64, LONG, 3),
        (3, CPU, 64, SHORT, 3),
        (100, CPU, 5, LONG, 5),
        ("auto", CPU, 64, LONG, 8),
        ("auto", CPU, 31, LONG, 7),
        ("auto", CPU, 8, LONG, 2),
        ("auto", CPU, 3, LONG, 1),
        ("auto", CPU, 64, SHORT, 1),
        ("auto", GPU, 64, LONG, 1),
        (1, GPU, 64, LONG, 1),
    ],
)
def test_the_number_of_threads(monkeypatch, asked, model, batch, seconds, expected):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert choose(asked, model, batch, seconds) == expected


def test_where_nobody_knows_the_number_of_cores_one_thread_works(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert choose("auto", CPU, 64, LONG) == 1


@pytest.mark.parametrize("asked", [0, -1, True, 2.0, "2", "many", None])
def test_anything_but_a_number_or_auto_is_refused(asked):
    with pytest.raises(ValueError, match=r"workers is .*; expected a whole number .* or 'auto'"):
        choose(asked, CPU, 64, LONG)


def test_a_gpu_takes_no_workers():
    with pytest.raises(ValueError, match="workers is 2 on backend 'cupy'; expected 1"):
        choose(2, GPU, 64, LONG)


def test_work_grows_with_the_model_and_with_the_tokens(small_model):
    small, large = small_model(), small_model(d_model=16)
    assert work(small, 200) == pytest.approx(2 * work(small, 100))
    assert work(large, 100) > work(small, 100)


# What they sum to ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "number"), [(8, 2), (5, 2), (5, 3), (4, 4), (3, 64)])
def test_the_parts_sum_to_the_whole_batch(batch, n, number):
    model, x, y, mask = batch(n)
    loss, gradients = model.loss_and_gradients(x, y, mask, label_smoothing=0.1)
    summed_loss, summed = model.loss_and_gradients(x, y, mask, workers=number, label_smoothing=0.1)
    assert summed_loss == pytest.approx(loss, rel=1e-12, abs=1e-12)
    assert list(summed) == list(gradients)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(summed[name], gradient, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("mixer", MIXERS)
def test_the_parts_sum_to_the_whole_batch_whatever_mixes(small_model, token_batch, mixer):
    model = small_model(mixer=mixer, padding="per_length")
    loss, gradients = model.loss_and_gradients(*token_batch)
    summed_loss, summed = model.loss_and_gradients(*token_batch, workers=2)
    assert summed_loss == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(summed.flat, gradients.flat, rtol=1e-12, atol=1e-12)


def test_a_single_logit_sums_up_too(small_model, rng):
    model = small_model(n_classes=2, output="sigmoid")
    x, y = rng.integers(0, 7, (5, 6)), rng.integers(0, 2, 5)
    loss, gradients = model.loss_and_gradients(x, y)
    summed_loss, summed = model.loss_and_gradients(x, y, workers=2)
    assert summed_loss == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(summed.flat, gradients.flat, rtol=1e-12, atol=1e-13)


def test_a_batch_without_any_label_has_no_loss_and_no_gradients(small_model, rng):
    model, x = small_model(pooling="none"), rng.integers(0, 7, (4, 6))
    for number in (1, 2):
        loss, gradients = model.loss_and_gradients(x, np.full((4, 6), -1), workers=number)
        assert loss == 0.0
        np.testing.assert_array_equal(gradients.flat, 0.0)


def test_the_parts_are_of_one_precision(small_model, rng):
    model = small_model(dtype="float32")
    _, gradients = model.loss_and_gradients(rng.integers(0, 7, (4, 6)), np.arange(4) % 3)
    with Team(model, 2) as team:
        summed_loss, summed = team.step(
            rng.integers(0, 7, (4, 6)), np.arange(4) % 3, None, generator=None
        )
    assert summed_loss.dtype == summed.flat.dtype == gradients.flat.dtype == "float32"


def test_a_team_may_be_given_batches_of_any_size(small_model, rng):
    model = small_model()
    with Team(model, 3) as team:
        for n in (1, 2, 7, 3, 1):
            x, y = rng.integers(0, 7, (n, 6)), rng.integers(0, 3, n)
            alone, gradients = model.loss_and_gradients(x, y)
            loss, summed = team.step(x, y, None, generator=None)
            assert float(loss) == pytest.approx(alone, rel=1e-12)
            np.testing.assert_allclose(summed.flat, gradients.flat, rtol=1e-12, atol=1e-13)


# Dropout ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 2, 3])
def test_dropout_is_the_same_for_the_same_seed(batch, number):
    model, x, y, mask = batch(5, dropout=0.3)
    runs = [model.loss_and_gradients(x, y, mask, workers=number, seed=seed) for seed in (3, 3, 4)]
    assert runs[0][0] == runs[1][0] != runs[2][0]
    np.testing.assert_array_equal(runs[0][1].flat, runs[1][1].flat)


def test_each_worker_draws_its_own_dropout(small_model, monkeypatch):
    model = small_model(dropout=0.3)
    drawn, accumulate = [], type(model).accumulate

    def noted(self, x, y, context, *arguments, **options):
        drawn.append(context.generator.bit_generator.state["state"]["state"])
        return accumulate(self, x, y, context, *arguments, **options)

    monkeypatch.setattr(type(model), "accumulate", noted)
    model.loss_and_gradients(np.zeros((6, 6), int), np.zeros(6, int), workers=3, seed=0)
    assert len(set(drawn)) == 3


# What they leave behind ---------------------------------------------------------------------------


def watch_blas(monkeypatch, model, error=None):
    """Note BLAS's threads inside a step, and raise an error there."""
    seen, accumulate = [], type(model).accumulate

    def noted(self, *arguments, **options):
        seen.append(blas_threads())
        if error is not None:
            raise error
        return accumulate(self, *arguments, **options)

    monkeypatch.setattr(type(model), "accumulate", noted)
    return seen


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("error", [None, ZeroDivisionError(), KeyboardInterrupt()])
def test_blas_has_one_thread_inside_and_its_own_number_afterwards(
    small_model, token_batch, monkeypatch, number, error
):
    model, (x, y, mask) = small_model(), token_batch
    if not blas_threads():
        pytest.skip("NumPy's BLAS is none that threadpoolctl knows")
    seen = watch_blas(monkeypatch, model, error)
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        if error is None:
            model.loss_and_gradients(x, y, mask, workers=number)
        else:
            with pytest.raises(type(error)):
                model.loss_and_gradients(x, y, mask, workers=number)
        assert blas_threads() == before
    until_an_error = seen if error is None else seen[:1]
    assert {threads for each in until_an_error for threads in each} == {1}


def test_a_model_with_much_work_keeps_blas_as_it_is(small_model, token_batch, monkeypatch):
    model, (x, y, mask) = small_model(), token_batch
    seen = watch_blas(monkeypatch, model)
    monkeypatch.setattr(workers, "SMALL", 0.0)
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        model.loss_and_gradients(x, y, mask, workers=1)
    assert seen == [before]


def test_a_gpu_leaves_blas_alone():
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        with one_blas_thread(GPU, SHORT):
            assert blas_threads() == before


def test_gradients_that_were_returned_are_not_overwritten(small_model, token_batch):
    model, (x, y, mask) = small_model(), token_batch
    for number in (1, 2):
        _, gradients = model.loss_and_gradients(x, y, mask, workers=number)
        kept = gradients.flat.copy()
        model.loss_and_gradients(x[::-1].copy(), y, mask, workers=number)
        np.testing.assert_array_equal(gradients.flat, kept)


def test_an_error_in_a_worker_is_the_callers(small_model, token_batch):
    with pytest.raises(ValueError, match="dropout needs a random generator"):
        small_model(dropout=0.3).loss_and_gradients(*token_batch, workers=2)


def test_overflow_in_a_worker_is_no_warning(small_model, token_batch):
    model, (x, y, mask) = small_model(), token_batch
    for parameter in model.parameters().values():
        parameter[...] = 1e300
    for number in (1, 2):
        loss, _ = model.loss_and_gradients(x, y, mask, workers=number)
        assert not np.isfinite(loss)
