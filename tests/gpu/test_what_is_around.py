"""Precision, files, memory, and how batches get to the GPU."""

import gc
from typing import Any

import numpy as np
import pytest

import npformer as nf
from npformer.cli.doctor import diagnose
from npformer.core import arrays as backends
from npformer.engine import trusted_kernels
from tests.device.cases import IDS, LABELS, MASK, classifier
from tests.gpu import hold_up, require_gpu

require_gpu()


def upload(x: np.ndarray) -> Any:
    return nf.asarray(x, "cupy")


# Precision

EXACT, ROUNDED = 1e-5, 3e-3
"""Relative errors of float32 products of length 512, and of factors rounded to 10 bits."""


def error_of_products(shape_a: tuple[int, ...], shape_b: tuple[int, ...]) -> float:
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=shape) for shape in (shape_a, shape_b))
    y = nf.to_numpy(upload(a.astype("float32")) @ upload(b.astype("float32")))
    return float(np.abs(y - a @ b).max() / np.abs(a @ b).max())


PRODUCTS = [
    pytest.param((256, 512), (512, 256), id="two matrices"),
    pytest.param((8, 256, 512), (8, 512, 256), id="as many matrices on both sides"),
    pytest.param((8, 256, 512), (512, 256), id="many by one"),
    pytest.param((2, 4, 256, 512), (4, 512, 256), id="some for each head"),
]


@pytest.mark.parametrize(("a", "b"), PRODUCTS)
def test_products_are_float32_unless_asked(a, b) -> None:
    assert error_of_products(a, b) <= EXACT


@pytest.mark.parametrize(("a", "b"), PRODUCTS)
def test_tf32_holds_for_every_product_in_its_statement(a, b) -> None:
    try:
        at = nf.use_precision("tf32")
    except ValueError as problem:
        pytest.skip(str(problem))
    with at:
        error = error_of_products(a, b)
    assert EXACT < error <= ROUNDED
    assert error_of_products(a, b) <= EXACT


def test_a_model_learns_in_tf32_as_in_float32() -> None:
    losses = {}
    for precision in ("float32", "tf32"):
        model = classifier("float32").to("cupy")
        history = nf.fit(model, (IDS, LABELS, MASK), epochs=20, progress=False, precision=precision)
        losses[precision] = history.train_loss
    np.testing.assert_allclose(losses["tf32"], losses["float32"], rtol=0.05)


# Files


@pytest.mark.parametrize(("written", "read"), [("numpy", "cupy"), ("cupy", "numpy")])
def test_a_file_of_one_side_opens_on_the_other(tmp_path, written, read) -> None:
    model = classifier("float64").to(written)
    nf.fit(model, (IDS, LABELS, MASK), epochs=2, progress=False)
    nf.save(model, tmp_path / "model.safetensors")
    again = nf.load(tmp_path / "model.safetensors", backend=read)
    assert again.backend == read
    here, there = (nf.to_numpy(m(IDS, MASK)) for m in (model, again))
    np.testing.assert_allclose(there, here, rtol=1e-10, atol=1e-12)


# Feeding batches


def test_batches_that_are_fed_arrive_whole() -> None:
    """Many large ones, as fast as the host can, with work in between that takes long."""
    feed = backends.get_backend("cupy").feed()
    busy = upload(np.ones((2048, 2048), dtype="float32"))
    sums = []
    for step in range(20):
        x = np.full((1024, 1024), step, dtype="int64")
        there, mask, none = feed(x, np.ones(1000, dtype=bool), None)
        assert none is None
        for _ in range(5):
            busy = busy @ busy / 2048.0
        sums.append((there.min(), there.max(), mask.all()))
    for step, (low, high, is_complete) in enumerate(sums):
        assert (int(low), int(high), bool(is_complete)) == (step, step, True)
    feed.close()


def test_the_gpu_waits_for_a_copy_that_is_late() -> None:
    feed = backends.get_backend("cupy").feed()
    for _ in range(2):  # both slots have memory that holds 0, and kernels are loaded
        (there,) = feed(np.zeros((64, 64), dtype="int64"))
        assert (int(there.min()), int(there.max())) == (0, 0)
    feed.close()
    with feed._copying:
        hold_up()
    (there,) = feed(np.full((64, 64), 7))
    assert (int(there.min()), int(there.max())) == (7, 7)
    feed.close()


def test_a_batch_is_not_overwritten_while_the_gpu_still_needs_it() -> None:
    feed = backends.get_backend("cupy").feed()
    for _ in range(2):
        assert int(feed(np.zeros((64, 64), dtype="int64"))[0].sum()) == 0
    feed.close()
    hold_up()
    sums = [feed(np.full((64, 64), step))[0].sum() for step in range(1, 4)]
    assert [int(total) for total in sums] == [64 * 64 * step for step in range(1, 4)]
    feed.close()


# Memory


def test_running_out_of_memory_says_what_to_try_and_lets_go() -> None:
    import cupy

    pool = cupy.get_default_memory_pool()
    model = classifier("float32", d_ff=256).to("cupy")
    many = np.tile(IDS, (512, 1)), np.tile(LABELS, 512)
    model.loss_and_gradients(*(array[:3] for array in many))
    before = pool.get_limit()
    gc.collect()
    pool.free_all_blocks()  # what it keeps for later would be enough
    pool.set_limit(size=pool.total_bytes() + 2**20)
    try:
        with pytest.raises(
            nf.BatchTooLargeError, match="batch_size=768 or micro_batch=768"
        ) as caught:
            model.loss_and_gradients(*many)
        assert isinstance(caught.value.__cause__, MemoryError)
        assert "Out of memory allocating" in str(caught.value)
        model.loss_and_gradients(*(array[:3] for array in many))
    finally:
        pool.set_limit(size=before)


def test_steps_take_no_more_memory_than_the_first_ones() -> None:
    import cupy

    pool = cupy.get_default_memory_pool()
    model = classifier("float32", dropout=0.1).to("cupy")
    optimizer = nf.Adam(model.parameters())
    pool_bytes = []
    for seed in range(20):
        _, gradients = model.loss_and_gradients(IDS, LABELS, MASK, seed=seed)
        optimizer.step(gradients)
        pool_bytes.append(pool.total_bytes())
    assert pool_bytes[-1] == pool_bytes[3]


# The doctor


def test_the_doctor_is_content() -> None:
    lines = list(diagnose(nf.distributed.Communicator()))
    assert [line for line in lines if line.ok is False] == []
    assert {"GPU", "memory", "driver", "gradients", "products"} <= {line.what for line in lines}


# Kernels


@pytest.mark.parametrize(
    ("dtype", "precision"), [("float32", "float32"), ("float32", "tf32"), ("float64", "float32")]
)
def test_a_process_of_its_own_finds_kernels_right(monkeypatch, tmp_path, dtype, precision) -> None:
    monkeypatch.delenv(trusted_kernels.CHECK_VARIABLE)
    monkeypatch.setenv(trusted_kernels.CACHE_VARIABLE, str(tmp_path))
    trusted_kernels.kernel_verdict(dtype, precision)  # CuPy's own kernels are compiled at first
    second_verdict = trusted_kernels.kernel_verdict(dtype, precision, again=True)
    assert second_verdict["problems"] == {}
    assert second_verdict["seconds"] <= 2.0
