"""Running out of memory says what to try, and lets go of what was computed."""

from typing import Any

import numpy as np
import pytest

import npformer as nf
from npformer.core import guard_computation
from tests.device.cases import IDS, LABELS, MASK, classifier, fit, flat
from tests.fake_device import FakeArray, FakeOutOfMemoryError, count, limit


def assert_helpful(error: nf.BatchTooLargeError, *words: str) -> None:
    text = str(error)
    assert "out of memory on backend 'fake'" in text
    assert "Out of memory allocating" in text, "how much was asked for"
    assert "\n" not in text
    for word in words:
        assert word in text
    assert isinstance(error, MemoryError)
    assert isinstance(error.__cause__, FakeOutOfMemoryError)


@pytest.fixture
def wide() -> nf.SequenceClassifier:
    return classifier("float32", d_ff=64).to("fake")


ROOM = 5 * 64 * 4 * 16  # bytes of 16 sequences inside the feed-forward network; weights are less
MANY = np.tile(IDS, (16, 1)), np.tile(LABELS, 16), np.tile(MASK, (16, 1))


TOO_LARGE: dict[str, tuple[Any, int, tuple[str, ...]]] = {
    "fit": (lambda m: fit(m, MANY, batch_size=48), 48, ("batch_size=24", "micro_batch=24")),
    "fit in micro-batches": (
        lambda m: fit(m, MANY, batch_size=48, micro_batch=20),
        20,
        ("batch_size=24", "micro_batch=10"),
    ),
    "gradients": (lambda m: m.loss_and_gradients(*MANY), 48, ("micro_batch=24",)),
    "predict": (lambda m: m.predict(MANY[0]), 48, ("batch_size=24",)),
}


@pytest.mark.parametrize("what", TOO_LARGE)
def test_the_error_says_what_to_try(wide, what) -> None:
    run, n, words = TOO_LARGE[what]
    with count() as counted, limit(ROOM), pytest.raises(nf.BatchTooLargeError) as caught:
        run(wide)
    assert_helpful(caught.value, f"with {n} sequences at a time", *words)
    assert ("micro_batch" in str(caught.value)) == (what != "predict")
    assert caught.value.batch_size == 48
    assert counted.frees == 1


@pytest.mark.parametrize("what", TOO_LARGE)
def test_the_model_stays_usable_after_the_error(wide, what) -> None:
    run, _, _ = TOO_LARGE[what]
    with limit(ROOM), pytest.raises(nf.BatchTooLargeError):
        run(wide)
    run(wide)


def test_what_the_error_says_helps(wide) -> None:
    with limit(ROOM):
        with pytest.raises(nf.BatchTooLargeError):
            fit(wide, MANY, batch_size=24)
        fit(wide, MANY, batch_size=24, micro_batch=12)
        fit(wide, MANY, batch_size=12)
        assert len(wide.predict(MANY[0], MANY[2], batch_size=16)) == 48


def test_validation_fits_where_training_does(wide) -> None:
    with limit(4 * ROOM):
        fit(wide, MANY, batch_size=16, validation=MANY)


def test_a_single_sequence_that_does_not_fit_needs_something_else() -> None:
    long = classifier("float32", mixer="identity", max_len=600, d_ff=16).to("fake")
    with limit(16 * 600 * 4 - 1), pytest.raises(nf.BatchTooLargeError) as caught:
        long.loss_and_gradients(np.zeros((1, 600), dtype="int64"), LABELS[:1])
    assert_helpful(
        caught.value, "with 1 sequence at a time", "shorter sequences or a smaller model"
    )


def test_the_error_holds_no_activations(wide) -> None:
    """A frame of the traceback that kept them would keep the memory taken."""
    with limit(ROOM), pytest.raises(nf.BatchTooLargeError) as caught:
        wide.loss_and_gradients(*MANY)
    held, trace = 0, caught.value.__cause__.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_name in ("_accumulate", "accumulate", "forward"):
            held += sum(isinstance(x, FakeArray) for x in trace.tb_frame.f_locals.values())
        trace = trace.tb_next
    assert held == 0


def test_the_best_weights_are_back_after_running_out_of_memory(wide) -> None:
    def schedule(step: int) -> float:
        if step == 4:
            raise MemoryError
        return 1.0

    with pytest.raises(nf.BatchTooLargeError, match="the system gave no memory"):
        fit(wide, (IDS, LABELS), validation=(IDS, LABELS), schedule=schedule, epochs=3)
    assert np.isfinite(flat(wide)).all()


def test_the_host_runs_out_of_memory_in_the_same_words(monkeypatch) -> None:
    model = classifier("float32")

    def accumulate(*arguments: Any, **options: Any) -> None:
        raise MemoryError("Unable to allocate 7.45 GiB for an array with shape (1000000000,)")

    monkeypatch.setattr("npformer.engine.team.accumulate", accumulate)
    with pytest.raises(
        nf.BatchTooLargeError, match=r"'numpy' with 3 .* 7.45 GiB .*batch_size=1 or"
    ):
        model.loss_and_gradients(IDS, LABELS)


@pytest.mark.parametrize(
    "message",
    [
        "CUBLAS_STATUS_ALLOC_FAILED",
        "CUFFT_ALLOC_FAILED",
        "cudaErrorMemoryAllocation: out of memory",
        "CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    ],
)
def test_a_library_that_finds_no_memory_says_what_to_try_too(message) -> None:
    helpful = pytest.raises(nf.BatchTooLargeError, match=f"{message}.*Try batch_size=4")
    with helpful, guard_computation("numpy", 8):
        raise RuntimeError(message)


def test_another_error_of_a_library_stays_what_it_is() -> None:
    as_it_is = pytest.raises(RuntimeError, match=r"^CUBLAS_STATUS_EXECUTION_FAILED$")
    with as_it_is, guard_computation("numpy", 8):
        raise RuntimeError("CUBLAS_STATUS_EXECUTION_FAILED")
