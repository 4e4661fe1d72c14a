"""Memory that is lent: never twice at a time, again afterwards, and given up when it is idle."""

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, pairwise

import numpy as np
import pytest

import npformer as nf
from npformer.engine.workspace import SMALL
from tests import fake_device

REFERENCE = np.zeros(1, dtype="float32")
LARGE = (64, 1024)


def address(x):
    return x.__array_interface__["data"][0]


@pytest.fixture
def workspace():
    return nf.Workspace()


def test_arrays_that_are_held_share_no_memory(workspace):
    lent = [workspace.empty(LARGE, REFERENCE) for _ in range(4)]
    assert not any(np.shares_memory(one, other) for one, other in combinations(lent, 2))


def test_memory_comes_back_when_the_array_is_dropped(workspace):
    first = workspace.empty(LARGE, REFERENCE)
    where, held = address(first), workspace.n_bytes
    del first
    assert address(workspace.empty(LARGE, REFERENCE)) == where
    assert workspace.n_bytes == held


@pytest.mark.parametrize("view", [lambda x: x[1:], lambda x: x.reshape(-1), lambda x: x.T[:, ::2]])
def test_a_view_holds_the_memory(workspace, view):
    lent = workspace.empty(LARGE, REFERENCE)
    where, held_view = address(lent), view(lent)
    del lent
    other = workspace.empty(LARGE, REFERENCE)
    assert address(other) != where
    assert not np.shares_memory(held_view, other)
    del held_view
    assert address(workspace.empty(LARGE, REFERENCE)) == where


def test_a_free_block_up_to_twice_as_large_is_taken_rather_than_a_new_one(workspace):
    larger = workspace.empty((2, *LARGE), REFERENCE)
    where, held = address(larger), workspace.n_bytes
    del larger
    assert address(workspace.empty(LARGE, REFERENCE)) == where
    assert workspace.n_bytes == held


def test_a_much_larger_free_block_is_left_for_large_arrays(workspace):
    larger = workspace.empty((3, *LARGE), REFERENCE)
    where, held = address(larger), workspace.n_bytes
    del larger
    assert address(workspace.empty(LARGE, REFERENCE)) != where
    assert workspace.n_bytes > held


def test_a_free_block_of_the_size_comes_before_a_larger_one(workspace):
    exact, larger = workspace.empty(LARGE, REFERENCE), workspace.empty((2, *LARGE), REFERENCE)
    where = address(exact)
    del exact, larger
    assert address(workspace.empty(LARGE, REFERENCE)) == where


def test_a_shape_of_about_the_size_takes_the_same_memory(workspace):
    first = workspace.empty((1000, 1000), REFERENCE)
    where = address(first)
    del first
    assert address(workspace.empty((999, 999), REFERENCE)) == where
    assert address(workspace.empty((500_000,), REFERENCE, "float64")) == where


shapes = pytest.mark.parametrize(
    "shape", [(), (0,), (3, 0, 5), (0, 1 << 20), (1 << 14,), LARGE, (3, 5, 7001), (1 << 20,)]
)
dtypes = pytest.mark.parametrize("dtype", ["float32", "float64", "bool"])


@shapes
@dtypes
def test_an_array_has_the_requested_shape(workspace, shape, dtype):
    assert workspace.empty(shape, REFERENCE, dtype).shape == shape


@shapes
@dtypes
def test_an_array_has_the_requested_dtype(workspace, shape, dtype):
    lent = workspace.empty(shape, REFERENCE, dtype)
    assert lent.dtype == workspace.empty(shape, np.zeros(1, dtype)).dtype == dtype


@shapes
@dtypes
def test_an_array_is_laid_out_for_vector_instructions(workspace, shape, dtype):
    lent = workspace.empty(shape, REFERENCE, dtype)
    assert lent.flags.c_contiguous
    assert address(lent) % 64 == 0 or lent.nbytes < SMALL


@shapes
@dtypes
def test_an_array_can_be_written_to(workspace, shape, dtype):
    lent = workspace.empty(shape, REFERENCE, dtype)
    assert lent.flags.writeable
    lent[...] = 1
    assert lent.all()


def test_only_idle_memory_is_given_up(workspace):
    needed = workspace.empty(LARGE, REFERENCE)
    idle = [workspace.empty((512, 1024), REFERENCE) for _ in range(3)]
    held = workspace.n_bytes
    size = needed.nbytes
    del needed, idle
    for _ in range(40):
        workspace.tidy(patience=4)
        workspace.empty(LARGE, REFERENCE)
    assert size <= workspace.n_bytes < 2 * size < held


@pytest.mark.parametrize(
    ("patience", "needed", "most"),
    [
        (4, lambda step: 3, 3),
        (8, lambda step: step % 5 == 0, 1),
        (8, lambda step: 5 if step % 4 == 0 else 1, 5),
    ],
)
def test_memory_that_some_step_between_two_counts_needs_stays(workspace, patience, needed, most):
    for step in range(64):
        workspace.tidy(patience)
        lent = [workspace.empty(LARGE, REFERENCE) for _ in range(needed(step))]
        assert workspace.n_bytes == most * 64 * 1024 * 4
        if step % 2 and lent:
            lent.pop(0)  # blocks come back in changing orders
        del lent


def test_memory_that_is_lent_for_long_is_not_given_up(workspace):
    lent = workspace.empty(LARGE, REFERENCE)
    lent[...] = 7.0
    for _ in range(40):
        workspace.tidy(patience=2)
        workspace.empty(LARGE, REFERENCE)[...] = 1.0
    assert (lent == 7.0).all()
    where = address(lent)
    del lent
    assert address(workspace.empty(LARGE, REFERENCE)) == where


def test_the_count_of_bytes_is_that_of_the_blocks(workspace, rng):
    """Through any order of asking, dropping and tidying."""
    lent = []
    for _ in range(2000):
        choice = rng.random()
        if choice < 0.5:
            lent.append(workspace.empty((int(rng.integers(1, 60_000)),), REFERENCE))
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
        lent = workspace.empty((size,), REFERENCE, "uint8")
        assert lent.nbytes <= workspace.n_bytes - before or workspace.n_bytes == before
        del lent
    sizes = list(workspace._free)
    assert len(sizes) <= 8 * 2 + 1  # eight from a power of two to the next
    assert all(1.0 < b / a <= 1.125 for a, b in pairwise(sizes))


def test_small_arrays_are_simply_made(workspace):
    lent = workspace.empty((SMALL - 1,), REFERENCE, "uint8")
    assert workspace.n_bytes == 0
    assert lent.base is None
    workspace.empty((SMALL,), REFERENCE, "uint8")
    assert workspace.n_bytes > 0


@pytest.mark.usefixtures("fake_backend")
def test_an_array_of_another_backend_is_made_by_its_library(workspace):
    """CuPy has its own pool."""
    lent = workspace.empty(LARGE, nf.asarray(REFERENCE, "fake"), "float64")
    assert isinstance(lent, fake_device.FakeArray)
    assert (lent.shape, lent.dtype) == (LARGE, "float64")
    assert workspace.n_bytes == 0


def test_batches_of_changing_length_share_their_memory(workspace):
    rng = np.random.default_rng(0)
    longest = 0
    for length in rng.integers(200, 400, 500):
        workspace.tidy()
        longest = max(longest, workspace.empty((32, int(length), 64), REFERENCE).nbytes)
    assert workspace.n_bytes < 8 * longest


def test_a_copy_has_no_memory(workspace):
    lent = workspace.empty(LARGE, REFERENCE)
    for other in (copy.deepcopy(workspace), pickle.loads(pickle.dumps(workspace))):
        assert other.n_bytes == 0
        assert not np.shares_memory(other.empty(LARGE, REFERENCE), lent)


def test_an_array_outlives_its_workspace():
    workspace = nf.Workspace()
    lent = workspace.empty(LARGE, REFERENCE)
    lent[...] = 7.0
    del workspace
    gc.collect()
    assert (lent == 7.0).all()


def test_arrays_may_be_dropped_in_another_thread(workspace):
    with ThreadPoolExecutor(4) as pool:
        for _ in range(50):
            lent = [workspace.empty(LARGE, REFERENCE) for _ in range(8)]
            for i, x in enumerate(lent):
                x[...] = i
            assert all(pool.map(lambda x: x.min() == x.max(), lent))
            while lent:
                pool.submit(lambda x: None, lent.pop())
