"""Batches on their way to the device arrive whole, and train as they would on the host."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import npformer as nf
from npformer.core.cupy.pinned_feed import PinnedFeed
from tests.device.cases import IDS, LABELS, MASK, batch, classifier, fit, flat
from tests.fake_device import FakeFeed


@pytest.fixture
def feeds(monkeypatch) -> list[FakeFeed]:
    """The feeds that were made during a test."""
    all_feeds: list[FakeFeed] = []
    start = FakeFeed.__init__

    def note(self: FakeFeed) -> None:
        start(self)
        all_feeds.append(self)

    monkeypatch.setattr(FakeFeed, "__init__", note)
    return all_feeds


def test_fit_closes_its_only_feed(feeds) -> None:
    fit(classifier("float32").to("fake"), (IDS, LABELS, MASK))
    (feed,) = feeds
    assert feed.closed


def test_the_feed_is_closed_after_an_error_too(feeds) -> None:
    def schedule(step: int) -> float:
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        fit(classifier("float32").to("fake"), (IDS, LABELS), schedule=schedule)
    assert feeds[0].closed


def test_on_the_host_there_is_no_feed(feeds) -> None:
    fit(classifier("float32"), (IDS, LABELS))
    assert feeds == []


@pytest.mark.parametrize("masked", [True, False], ids=["padded", "full"])
@pytest.mark.parametrize("micro_batch", [None, 1, 2])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"dropout": 0.2},
        {"features": True},
        {"pooling": "none"},
        {"mixer": "fourier", "padding": "per_length"},
        {"output": "sigmoid"},
    ],
    ids=str,
)
def test_what_was_fed_trains_as_on_the_host(micro_batch, masked, changes) -> None:
    """Also where samples have unequally many labels, so that micro-batches weigh differently."""
    weights, losses = [], []
    with nf.use_kernels(False):
        for name in ("numpy", "fake"):
            model = classifier("float64", **changes).to(name)
            data = (*batch(model), MASK) if masked else batch(model)
            history = fit(model, data, micro_batch=micro_batch, batch_size=3, workers=1)
            weights.append(flat(model))
            losses.append(history.train_loss)
    np.testing.assert_allclose(weights[1], weights[0], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-10)


class Stream:
    """A CUDA stream whose work is done as late as it may be."""

    def __init__(self, **options: Any) -> None:
        self.todo: list[Any] = []

    def record(self, event: Event) -> Event:
        event.stream, event.position = self, len(self.todo)
        self.todo.append(event.happen)
        return event

    def wait_event(self, event: Event) -> None:
        self.todo.append(event.synchronize)

    def synchronize(self) -> None:
        while self.todo:
            self.todo.pop(0)()


class Event:
    """What marks a place in a stream."""

    def __init__(self, disable_timing: bool) -> None:
        self.happened = False
        self.stream: Any = None

    def happen(self) -> None:
        self.happened = True

    def synchronize(self) -> None:
        while not self.happened:
            self.stream.todo.pop(0)()


class DeviceBytes:
    """Memory that is written when a stream comes to it."""

    def __init__(self, entries: np.ndarray) -> None:
        self.entries = entries

    def __getitem__(self, index: Any) -> DeviceBytes:
        return DeviceBytes(self.entries[index])

    def set(self, pinned: np.ndarray, stream: Stream) -> None:
        stream.todo.append(lambda: np.copyto(self.entries, pinned))

    def view(self, dtype: Any) -> DeviceBytes:
        return DeviceBytes(self.entries.view(dtype))

    def reshape(self, shape: Any) -> DeviceBytes:
        return DeviceBytes(self.entries.reshape(shape))


@pytest.fixture
def cuda() -> Any:
    """As much of CuPy as a feed uses, with streams that put everything off."""
    computing = Stream()
    return SimpleNamespace(
        computing=computing,
        cuda=SimpleNamespace(Stream=Stream, Event=Event, get_current_stream=lambda: computing),
        empty=lambda n, dtype: DeviceBytes(np.zeros(n, dtype)),
    )


def make_batch(step: int, rows: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.full((rows, 3), step, dtype="int64")
    return x, np.full(rows, float(step), dtype="float32"), np.ones((rows, 3), dtype=bool)


@pytest.mark.parametrize("sizes", [[4] * 9, [4, 4, 4, 1], [1, 2, 3, 4, 5, 6], [6, 1, 6, 1, 6]])
def test_a_feed_never_overwrites_what_is_still_used(cuda, sizes) -> None:
    """Work is launched as fast as the feed lets it, and done as late as the streams let it."""
    feed = PinnedFeed(cuda, lambda n, dtype: np.zeros(n, dtype))
    fed_batches: list[Any] = []
    for step, rows in enumerate(sizes):
        fed = feed(*make_batch(step, rows))

        def compute(fed: Any = fed) -> None:
            fed_batches.append([x.entries.copy() for x in fed])

        cuda.computing.todo.append(compute)
    cuda.computing.synchronize()
    assert len(fed_batches) == len(sizes)
    for step, rows in enumerate(sizes):
        for array, expected in zip(fed_batches[step], make_batch(step, rows), strict=True):
            assert array.dtype == expected.dtype
            np.testing.assert_array_equal(array, expected)


def test_a_feed_passes_over_what_is_not_there(cuda) -> None:
    feed = PinnedFeed(cuda, lambda n, dtype: np.zeros(n, dtype))
    x, y, mask = feed(np.arange(3), np.arange(2.0), None)
    assert mask is None
    cuda.computing.synchronize()
    np.testing.assert_array_equal(x.entries, np.arange(3))
    np.testing.assert_array_equal(y.entries, np.arange(2.0))
    feed.close()


def test_a_feed_lets_the_host_run_ahead_by_some_batches_only(cuda) -> None:
    feed = PinnedFeed(cuda, lambda n, dtype: np.zeros(n, dtype))
    finished_steps: list[int] = []
    for step in range(8):
        feed(*make_batch(step))
        cuda.computing.todo.append(lambda step=step: finished_steps.append(step))
    assert len(finished_steps) >= 4


def test_a_feed_copies_while_the_device_computes(cuda) -> None:
    feed = PinnedFeed(cuda, lambda n, dtype: np.zeros(n, dtype))
    first, second = feed(*make_batch(0)), None
    cuda.computing.todo.append(lambda: None)  # the first step, which has not begun
    second = feed(*make_batch(1))
    feed.close()  # the copying stream runs to its end, the computing one does nothing
    assert cuda.computing.todo
    np.testing.assert_array_equal(first[0].entries, make_batch(0)[0])
    np.testing.assert_array_equal(second[0].entries, make_batch(1)[0])
