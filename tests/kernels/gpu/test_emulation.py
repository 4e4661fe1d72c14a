"""The emulated device itself: what is wrong with a kernel shows in it."""

from typing import Any

import numpy as np
import pytest

from npformer.engine import gpu
from tests.kernels.gpu import emulated
from tests.kernels.gpu.helpers import ORDERS, asarray, download

pytestmark = pytest.mark.usefixtures("cupy", "emulation")

HEAD = 'extern "C" __global__ void'
SOURCE = f"""
{HEAD} past_the_end(real* x, index_t n) {{ x[n] = 1; }}
{HEAD} to_a_constant(const real* x, index_t n) {{ ((real*)x)[0] = 1; }}
{HEAD} waits_alone(real* x, index_t n) {{ if (threadIdx.x) __syncthreads(); }}
{HEAD} shuffles_alone(real* x, index_t n) {{
    if (threadIdx.x) __shfl_xor_sync(WHOLE_WARP, x[0], 1);
}}
{HEAD} part_of_a_warp(real* x, index_t n) {{ __shfl_xor_sync(1u, x[0], 1); }}
{HEAD} reads_nan(real* x, index_t n) {{
    __shared__ real s[2];
    if (threadIdx.x) return;
    x[0] = x[n]; x[1] = x[-1]; x[2] = s[1];
    s[1] = 0;
}}
{HEAD} without_a_wait(real* x, index_t n) {{
    __shared__ real s[64];
    s[threadIdx.x] = threadIdx.x;
    x[threadIdx.x] = s[63 - threadIdx.x];
}}
{HEAD} sums(real* x, index_t n) {{
    const real mine = x[threadIdx.x];
    real one = mine, other = 2 * mine, again = mine + 1, and_again = mine + 2;
    block_sums(one, other);
    block_sums(again, and_again);
    const real first = block_sum(mine), last = block_sum(mine + 3);
    const real top = block_max(mine), low = -block_max(-mine);
    x[threadIdx.x] = one + 2 * other + 3 * first + 5 * top + 7 * again + 11 * and_again
        + 13 * last + 17 * low;
}}
{HEAD} nothing(real* x, index_t n) {{}}
"""

ALONE = "wait for others that do not come"
BROKEN = {
    "past_the_end": "outside of its arrays",
    "to_a_constant": "which it declares const",
    "waits_alone": ALONE,
    "shuffles_alone": ALONE,
    "part_of_a_warp": "a shuffle without all lanes",
}


def kernel(name: str, code: str = SOURCE) -> Any:
    common = gpu.source.FOLDER / "common.cuh"
    text = f"#define real double\n{common.read_text('utf-8')}\n{code}"
    return emulated.RawModule(code=text).get_function(name)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_kernel_is_found(name) -> None:
    with pytest.raises(emulated.LaunchError, match=BROKEN[name]):
        kernel(name)((1,), (32,), (asarray(np.zeros(3)), 3))


def test_what_is_no_cpp_is_refused() -> None:
    with pytest.raises(emulated.LaunchError, match="refuses"):
        kernel("k", f"{HEAD} k(real* x, index_t n) {{ x[0] = y; }}")


def test_a_kernel_reads_nan_where_nothing_was_written() -> None:
    x = asarray(np.zeros(3))
    kernel("reads_nan")((2,), (32,), (x, 3))
    assert np.isnan(download(x)).all()


def test_a_missing_wait_shows_in_some_order() -> None:
    results = set()
    for order in ORDERS:
        x = asarray(np.zeros(64))
        with emulated.use_order(order):
            kernel("without_a_wait")((1,), (64,), (x, 64))
        results.add(download(x).tobytes())
    assert len(results) > 1


@pytest.mark.parametrize("n_threads", [32, 96, 1024])
def test_sums_over_a_block_may_follow_each_other(n_threads) -> None:
    for order in ORDERS:
        for warp in range(n_threads // 32):
            # Whole numbers: their sums are exact. The largest is in each warp once.
            x = np.roll(np.arange(n_threads) - 5.0, 32 * warp)
            sums = 8.0 * x.sum() + (7.0 * (x + 1.0) + 11.0 * (x + 2.0) + 13.0 * (x + 3.0)).sum()
            there = asarray(x)
            with emulated.use_order(order):
                kernel("sums")((1,), (n_threads,), (there, n_threads))
            np.testing.assert_array_equal(download(there), sums + 5.0 * x.max() + 17.0 * x.min())


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: (x,),
        lambda x: (x, 3.0),
        lambda x: (x, np.int32(3)),
        lambda x: (x, True),
        lambda x: (None, 3),
        lambda x: (x.astype("float32"), 3),
        lambda x: (asarray(np.zeros((3, 3)))[:, 0], 3),
        lambda x: (np.zeros(3), 3),
    ],
)
def test_a_launch_with_other_arguments_than_declared_is_refused(wrong) -> None:
    with pytest.raises(emulated.LaunchError):
        kernel("nothing")((1,), (32,), wrong(asarray(np.zeros(3))))
