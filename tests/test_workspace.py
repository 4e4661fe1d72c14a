"""Memory that is lent: never twice at a time, again afterwards, and given up when it is idle."""

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import npformer as nf

NEAR = np.zeros(1, dtype="float32")
LARGE = (64, 1024)


def address(x):
    return x.__array_interface__["data"][0]


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
    assert address(lent) % 64 == 0 or lent.nbytes < 1 << 14
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
    for _ in range(40):
        workspace.tidy(patience=4)
        lent = [workspace.empty(LARGE, NEAR) for _ in range(3)]
    held = workspace.n_bytes
    del lent
    for _ in range(40):
        workspace.tidy(patience=4)
        [workspace.empty(LARGE, NEAR) for _ in range(3)]
        assert workspace.n_bytes == held


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
