"""A training step never waits for the GPU.

Three instruments. CuPy can raise wherever one of its own functions waits (`get`, `item`, `float`,
`bool`, a boolean mask as index), which the first test verifies; it does not see what happens inside
cuFFT, cuBLAS and the driver. Calls of `Backend.download`, through which npformer fetches every
array, are counted. And while a kernel that only counts keeps the GPU busy, any wait takes long.
"""

import time
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import npformer as nf
from npformer.core import arrays as backends
from npformer.engine.team import Team
from npformer.layers import POOLINGS
from tests.device.cases import IDS, LABELS, MASK, batch, classifier, one_step
from tests.gpu import hold_up, require_gpu
from tests.needs import NEEDS

require_gpu()


@contextmanager
def raise_on_wait() -> Iterator[None]:
    """Inside, CuPy raises DeviceSynchronized where it would wait."""
    cupyx = pytest.importorskip("cupyx", reason=NEEDS["cupyx"])
    if not hasattr(cupyx, "allow_synchronize"):
        pytest.skip("this CuPy cannot say where it waits: it has no cupyx.allow_synchronize")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it does not see everything
        with cupyx.allow_synchronize(False):
            yield


@contextmanager
def count_downloads() -> Iterator[list[Any]]:
    """Give a list that grows with each array that npformer fetches."""
    original_backend = backends.get_backend("cupy")
    fetched: list[Any] = []

    def download(x: Any) -> np.ndarray:
        fetched.append(x)
        return original_backend.download(x)

    backends.register(replace(original_backend, download=download))
    try:
        yield fetched
    finally:
        backends.register(original_backend)


@contextmanager
def gpu_held_up() -> Iterator[None]:
    """Keep the GPU busy meanwhile: what ends before it is free again has not waited for it."""
    stream = hold_up()
    began = time.perf_counter()
    try:
        yield
        took = time.perf_counter() - began
        assert not stream.done, f"something waited until the GPU was free; it took {took:.2f} s"
    finally:
        stream.synchronize()


def training(**changes: Any) -> tuple[Team, nf.Adam]:
    """Return a model that has made its first step, in which kernels are compiled."""
    model = classifier("float32", **changes).to("cupy")
    team, optimizer = Team(model), nf.Adam(model.parameters())
    one_step(team, optimizer)
    return team, optimizer


@pytest.mark.parametrize("wait", [float, bool, lambda x: x.item(), lambda x: x.get()])
def test_the_instrument_sees_a_wait(wait) -> None:
    import cupyx

    x = nf.asarray(np.ones(()), "cupy")
    with raise_on_wait(), pytest.raises(cupyx.DeviceSynchronized):
        wait(x)


STEPS: list[dict[str, Any]] = [
    *(
        {"mixer": mixer, "pooling": pooling, "dropout": 0.1, "padding": "zero"}
        for mixer in nf.MIXERS
        for pooling in POOLINGS
    ),
    *(
        {"mixer": mixer, "padding": "per_length"}  # the host has the mask, and so the lengths
        for mixer in ("fourier", "hartley", "linear", "random")
    ),
    {"features": True, "norm": "pre", "dropout": 0.1},
]


@pytest.mark.parametrize("changes", STEPS, ids=str)
def test_a_step_waits_for_nothing(changes) -> None:
    model_and_optimizer = training(**changes)
    with raise_on_wait():
        one_step(*model_and_optimizer)


def test_a_step_fetches_nothing() -> None:
    model_and_optimizer = training(dropout=0.1)
    with count_downloads() as fetched:
        one_step(*model_and_optimizer)
    assert fetched == []


def test_reading_the_loss_waits_once() -> None:
    model_and_optimizer = training()
    with count_downloads() as fetched:
        nf.to_numpy(one_step(*model_and_optimizer))
    assert len(fetched) == 1


def test_a_mask_on_the_device_is_fetched_once_a_step() -> None:
    team, _ = training(mixer="fourier", padding="per_length", n_layers=3)
    with count_downloads() as fetched:
        checked_batch = team.model.batch(*batch(team.model), nf.asarray(MASK, "cupy"))
        team.step(checked_batch, generator=None)
    assert len(fetched) == 1


def test_a_step_without_kernels_waits_for_nothing() -> None:
    with nf.use_kernels(False):
        model_and_optimizer = training(dropout=0.1)
        with raise_on_wait():
            one_step(*model_and_optimizer)


@pytest.mark.parametrize(
    ("copies", "options"),
    [
        (4, {"epochs": 1, "batch_size": 2, "check_every": 3, "clip_norm": 1.0}),  # twice in 6 steps
        (1, {"epochs": 2, "batch_size": 1}),
    ],
)
def test_fit_fetches_losses_once_an_epoch_or_every_so_many_steps(copies, options) -> None:
    model = classifier("float32").to("cupy")
    data = np.tile(IDS, (copies, 1)), np.tile(LABELS, copies), np.tile(MASK, (copies, 1))
    with count_downloads() as fetched:
        nf.fit(model, data, progress=False, **options)
    assert len(fetched) == 2


def test_the_third_instrument_sees_a_wait() -> None:
    import cupy

    with gpu_held_up():
        pass
    with pytest.raises(AssertionError, match="something waited"), gpu_held_up():
        cupy.cuda.get_current_stream().synchronize()


LENGTHS = np.array([1, 2, 3, 5, 5])
"""Fewer than the 16 plans that CuPy keeps of cuFFT's: letting go of one may wait."""


def batch_of_lengths() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ids, labels and a mask of sequences of many lengths."""
    n = len(LENGTHS)
    rng = np.random.default_rng(0)
    mask = np.arange(LENGTHS[-1]) < LENGTHS[:, None]
    return rng.integers(0, 7, mask.shape), rng.integers(0, 3, n), mask


@pytest.mark.parametrize("padding", ["zero", "per_length"])
@pytest.mark.parametrize("mixer", nf.MIXERS)
def test_a_step_waits_for_nothing_that_cupy_does_not_see_either(mixer, padding) -> None:
    """Batches come through pinned memory, as in `fit`: a copy from elsewhere may wait."""
    feed = backends.get_backend("cupy").feed
    assert feed is not None
    model = classifier("float32", mixer=mixer, padding=padding, max_len=LENGTHS[-1]).to("cupy")
    arrays = batch_of_lengths()
    with closing(feed()) as pinned:
        team, optimizer = Team(model), nf.Adam(model.parameters())

        def step() -> None:
            fed = model.upload(model.check(*arrays), pinned)
            _, gradients = team.step(fed, generator=None)
            nf.clip_by_global_norm(gradients, 1.0)
            optimizer.step(gradients)

        step()
        step()  # kernels are compiled, plans made, memory is there
        with gpu_held_up():
            step()
