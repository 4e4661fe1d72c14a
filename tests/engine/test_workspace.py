"""Memory that is lent: never twice at a time, again afterwards, and given up when it is idle."""

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

import npformer as nf
from npformer.core import arrays as backend
from npformer.engine.workspace import SMALL
from tests import fake_device

NEAR = np.zeros(1, dtype="float32")
LARGE = (64, 1024)


def address(x):
    return x.__array_interface__["data"][0]


def held_by(arrays):
    """Return the bytes of arrays whose sizes are those of blocks."""
    return sum(x.nbytes for x in arrays)


@pytest.fixture
def workspace():
    return nf.Workspace()


def test_arrays_that_are_held_share_no_memory(workspace):
    lent = [workspace.empty(LARGE, NEAR) for _ in range(4)]
    for i in range(4):
        for j in range(i):
            assert not np.shares_memory(lent[i], lent[j])


def test_memory_comes_back_when_the_array_is_dropped(workspace):
    first = workspace.empty(LARGE, NEAR)
    where, held = address(first), workspace.n_bytes
    del first
    assert address(workspace.empty(LARGE, NEAR)) == where
    assert workspace.n_bytes == held


@pytest.mark.parametrize("view", [lambda x: x[1:], lambda x: x.reshape(-1), lambda x: x.T[:, ::2]])
def test_a_view_holds_the_memory(workspace, view):
    lent = workspace.empty(LARGE, NEAR)
    where, kept = address(lent), view(lent)
    del lent
    other = workspace.empty(LARGE, NEAR)
    assert address(other) != where
    assert not np.shares_memory(kept, other)
    del kept
    assert address(workspace.empty(LARGE, NEAR)) == where


def test_a_shape_of_about_the_size_takes_the_same_memory(workspace):
    first = workspace.empty((1000, 1000), NEAR)
    where = address(first)
    del first
    assert address(workspace.empty((999, 999), NEAR)) == where
    assert address(workspace.empty((500_000,), NEAR, "float64")) == where


@pytest.mark.parametrize("shape", [(64, 1024), (3, 5, 7001), (1 << 20,)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bool"])
def test_shape_dtype_and_alignment(workspace, shape, dtype):
    lent = workspace.empty(shape, NEAR, dtype)
    assert lent.shape == shape
    assert lent.dtype == dtype
    assert lent.flags.c_contiguous
    assert lent.flags.writeable
    assert address(lent) % 64 == 0 or lent.nbytes < SMALL
    lent[...] = 1
    assert lent.all()


def test_the_dtype_is_that_of_the_array_beside_it(workspace):
    assert workspace.empty((3,), np.zeros(1, "float64")).dtype == "float64"
    assert workspace.empty((0, 4), NEAR).shape == (0, 4)


def test_idle_memory_is_given_up_and_used_memory_is_not(workspace):
    used = workspace.empty(LARGE, NEAR)
    idle = [workspace.empty((512, 1024), NEAR) for _ in range(3)]
    held = workspace.n_bytes
    size = used.nbytes
    del used, idle
    for _ in range(40):
        workspace.tidy(patience=4)
        workspace.empty(LARGE, NEAR)
    assert size <= workspace.n_bytes < 2 * size < held


def test_steady_use_keeps_its_memory(workspace):
    for step in range(40):
        workspace.tidy(patience=4)
        lent = [workspace.empty(LARGE, NEAR) for _ in range(3)]
        assert workspace.n_bytes == held_by(lent)
        if step % 2:
            lent.pop()  # not all come back in one order
        del lent


def test_memory_that_is_asked_for_in_every_few_steps_stays(workspace):
    for step in range(40):
        workspace.tidy(patience=8)
        if step % 5 == 0:
            lent = workspace.empty(LARGE, NEAR)
            del lent
        assert workspace.n_bytes == 64 * 1024 * 4


def test_memory_that_is_lent_for_long_is_not_given_up(workspace):
    lent = workspace.empty(LARGE, NEAR)
    lent[...] = 7.0
    for _ in range(40):
        workspace.tidy(patience=2)
        workspace.empty(LARGE, NEAR)[...] = 1.0
    assert (lent == 7.0).all()
    where = address(lent)
    del lent
    assert address(workspace.empty(LARGE, NEAR)) == where


def test_what_the_fullest_step_needs_stays_between_two_looks(workspace):
    """Blocks go only if they were free at every moment since the last look."""
    for step in range(64):
        workspace.tidy(patience=8)
        lent = [workspace.empty(LARGE, NEAR) for _ in range(5 if step % 4 == 0 else 1)]
        del lent
        assert workspace.n_bytes == 5 * 64 * 1024 * 4


def test_the_count_of_bytes_is_that_of_the_blocks(workspace, rng):
    """Through any order of asking, dropping and tidying."""
    lent = []
    for _ in range(2000):
        choice = rng.random()
        if choice < 0.5:
            lent.append(workspace.empty((int(rng.integers(1, 60_000)),), NEAR))
        elif lent and choice < 0.9:
            lent.pop(int(rng.integers(len(lent))))
        elif choice > 0.98:
            workspace.tidy(patience=3)
    del lent
    assert workspace.n_bytes == sum(size * len(f) for size, f in workspace._free.items())
    for _ in range(4):
        workspace.tidy(patience=2)
    assert workspace.n_bytes == 0


def test_little_memory_is_wasted(workspace):
    for size in range(SMALL, 4 * SMALL, 997):
        before = workspace.n_bytes
        lent = workspace.empty((size,), NEAR, "uint8")
        assert lent.nbytes <= workspace.n_bytes - before or workspace.n_bytes == before
        del lent
    sizes = list(workspace._free)
    assert len(sizes) <= 8 * 2 + 1  # eight from a power of two to the next
    assert all(1.0 < b / a <= 1.125 for a, b in pairwise(sizes))


def test_small_arrays_are_simply_made(workspace):
    lent = workspace.empty((SMALL - 1,), NEAR, "uint8")
    assert workspace.n_bytes == 0
    assert lent.base is None
    workspace.empty((SMALL,), NEAR, "uint8")
    assert workspace.n_bytes > 0


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 5), (0, 1 << 20), (1 << 14,)])
def test_shapes_of_any_kind(workspace, shape):
    lent = workspace.empty(shape, NEAR)
    assert lent.shape == shape
    lent[...] = 2.0


def test_an_array_in_a_cycle_comes_back_when_the_cycle_is_collected(workspace):
    lent = workspace.empty(LARGE, NEAR)
    where = address(lent)
    cycle = [lent]
    cycle.append(cycle)
    del lent, cycle
    gc.collect()
    assert address(workspace.empty(LARGE, NEAR)) == where


def test_a_lent_array_may_be_copied_and_pickled(workspace):
    lent = workspace.empty(LARGE, NEAR)
    lent[...] = 3.0
    for other in (lent.copy(), copy.deepcopy(lent), pickle.loads(pickle.dumps(lent))):
        assert not np.shares_memory(other, lent)
        np.testing.assert_array_equal(other, lent)


def test_an_array_of_another_backend_is_made_by_its_library(workspace, monkeypatch):
    """CuPy has a pool of its own."""
    monkeypatch.setattr(backend, "_backends", dict(backend._backends))
    backend.register(fake_device.backend())
    lent = workspace.empty(LARGE, nf.asarray(NEAR, "fake"), "float64")
    assert isinstance(lent, fake_device.FakeArray)
    assert (lent.shape, lent.dtype) == (LARGE, "float64")
    assert workspace.n_bytes == 0


def test_batches_of_changing_length_share_their_memory(workspace):
    rng = np.random.default_rng(0)
    longest = 0
    for length in rng.integers(200, 400, 500):
        workspace.tidy()
        lent = workspace.empty((32, int(length), 64), NEAR)
        longest = max(longest, lent.nbytes)
    assert workspace.n_bytes < 8 * longest


def test_a_copy_has_no_memory(workspace):
    lent = workspace.empty(LARGE, NEAR)
    for other in (copy.deepcopy(workspace), pickle.loads(pickle.dumps(workspace))):
        assert other.n_bytes == 0
        assert not np.shares_memory(other.empty(LARGE, NEAR), lent)


def test_an_array_outlives_its_workspace():
    workspace = nf.Workspace()
    lent = workspace.empty(LARGE, NEAR)
    lent[...] = 7.0
    del workspace
    gc.collect()
    assert (lent == 7.0).all()


def test_arrays_may_be_dropped_in_another_thread(workspace):
    with ThreadPoolExecutor(4) as pool:
        for _ in range(50):
            lent = [workspace.empty(LARGE, NEAR) for _ in range(8)]
            for i, x in enumerate(lent):
                x[...] = i
            sums = list(pool.map(lambda x: x.min() == x.max(), lent))
            assert all(sums)
            while lent:
                pool.submit(lambda x: None, lent.pop())
