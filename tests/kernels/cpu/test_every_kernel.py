"""What holds for every kernel: the numbers of its pairs, no state, no argument changed."""

import threading

import numpy as np
import pytest

from npformer import functional as F
from npformer.engine import Workspace
from npformer.engine import context as engine_context
from npformer.engine.cpu import KERNELS, UPDATES, averaging, tiles
from npformer.engine.threads import side_by_side
from npformer.engine.workspace import LINE
from tests.kernels.cpu import helpers


@pytest.fixture(params=helpers.CASES.values(), ids=helpers.CASES.keys())
def case(request):
    return request.param


@pytest.fixture(autouse=True)
def small_arrays_are_lent_as_well(monkeypatch):
    monkeypatch.setattr("npformer.engine.workspace.SMALL", LINE)


def add_gaps(x):
    """Return the same numbers, NaN between them."""
    view = np.full([2 * n + 1 for n in x.shape], np.nan)[tuple(slice(1, None, 2) for _ in x.shape)]
    view[...] = x
    return view


def backwards(x):
    """Return the same numbers, the last one first in memory."""
    return x[::-1].copy()[::-1]


LAYOUTS = add_gaps, backwards, np.asfortranarray


def test_every_kernel_has_a_case():
    assert {case.name for case in helpers.CASES.values()} == helpers.DIFFERENTIABLE


def test_adam_has_the_only_kernel_for_an_update():
    assert set(UPDATES) == {"adam_update"}


def test_a_kernel_for_one_pair_has_its_name():
    layers = {"linear", "layer_norm", "rms_norm", "embedding", "dropout", "fourier_mixing"}
    assert {name for name in KERNELS if hasattr(F, name)} == layers | {"softmax_cross_entropy"}


def test_y_and_all_gradients_are_those_of_the_pairs(case):
    helpers.assert_parity(case)


def test_arrays_of_any_layout(case):
    for layout in LAYOUTS:
        y, cache = helpers.forward(case, tuple(map(layout, case.arrays)), case.context())
        dy = helpers.gradient_for(y)
        gradients = helpers.backward(case, layout(dy) if y.ndim else dy, cache)
        helpers.assert_close([y, *gradients], helpers.expected(case), 1e-12)


def test_a_gradient_that_is_one_number_repeated(case):
    y, cache = helpers.forward(case, case.arrays, case.context())
    dy = np.broadcast_to(np.float64(0.25), y.shape)  # as a mean hands it back; not writable
    helpers.assert_close(
        [y, *helpers.backward(case, dy, cache)], helpers.expected(case, dy=dy), 1e-12
    )


def test_memory_that_is_lent_changes_no_bit(case):
    workspace = Workspace()
    for dtype in ("float64", "float32"):
        alone = helpers.run(case, dtype)
        for _ in range(3):
            helpers.assert_same(helpers.run(case, dtype, workspace=workspace), alone)


IN_PARTS = {
    "attention_heads": (3, 4),  # projections, row maxima, averages; averages, turns, dx, dW
    "dense_heads": (3, 3),
    "feed_forward": (1, 1),  # rows; rows, columns of dW1 and rows of dW2
    "gated_feed_forward": (1, 1),
    "layer_norm": (1, 1),
    "rms_norm": (1, 1),
    "linear": (1, 2),
    "residual_norm": (1, 1),
    "softmax_cross_entropy": (1, 1),
}
"""How many times each kernel calls `map_slices`, forward and backward, at most."""


@pytest.fixture(params=[False, True], ids=["whole rows", "tiles"])
def long_sequences(request, case, monkeypatch):
    """Have one sample and head at a time, as long sequences have, or tiles of them."""
    monkeypatch.setattr(averaging, "tiling_of", tiles.Tiling)  # which keeps none of other sizes
    monkeypatch.setattr(tiles, "SCORES", 1)
    if request.param:  # some tiles in each direction, also of what is long by itself
        monkeypatch.setattr(tiles, "TILE", 64 if case.arrays[0].shape[1:2] > (256,) else 4)
        monkeypatch.setattr(averaging, "STORED", 2)


@pytest.fixture
def calls(monkeypatch):
    """Note how many parts calls have, and let these begin at once."""
    call_counts = []

    def count_call(do, slices):
        call_counts.append(len(slices))
        all_here = threading.Barrier(len(slices), timeout=30)

        def begin(slice_of_call):
            all_here.wait()
            return do(slice_of_call)

        return side_by_side(begin, slices)

    monkeypatch.setattr(engine_context, "side_by_side", count_call)
    return call_counts


@pytest.mark.usefixtures("long_sequences")
@pytest.mark.parametrize("threads", [2, 3])
def test_threads_that_share_a_call_change_no_number(case, threads, calls):
    workspace = Workspace()
    for dtype, bound in (("float64", helpers.DOUBLE), ("float32", helpers.SINGLE)):
        ours = helpers.run(case, dtype, threads=threads, workspace=workspace)
        helpers.assert_close(ours, helpers.expected(case, dtype), bound)
        helpers.assert_same(helpers.run(case, dtype, threads=threads), ours)
    assert bool(calls) == (case.name in IN_PARTS)


@pytest.mark.parametrize("name", sorted(helpers.DIFFERENTIABLE))
def test_which_kernels_compute_in_parts(name, calls, monkeypatch):
    monkeypatch.setattr(averaging, "tiling_of", tiles.Tiling)  # which keeps none of other sizes
    monkeypatch.setattr(tiles, "SCORES", 1)
    most = (0, 0)
    for case in helpers.CASES.values():
        if case.name == name:
            calls.clear()
            y, cache = helpers.forward(case, case.arrays, case.context(threads=2))
            ahead = len(calls)
            helpers.backward(case, helpers.gradient_for(y), cache)
            most = max(most[0], ahead), max(most[1], len(calls) - ahead)
    assert most == IN_PARTS.get(name, (0, 0))


@pytest.mark.usefixtures("long_sequences")
def test_no_part_of_a_call_waits_for_another(case, monkeypatch):
    """The order in which parts are computed changes no bit, so that of threads does not either."""
    monkeypatch.setattr(engine_context, "side_by_side", lambda do, slices: [do(p) for p in slices])
    in_order = helpers.run(case, threads=3)
    monkeypatch.setattr(
        engine_context,
        "side_by_side",
        lambda do, slices: [do(slice_of_call) for slice_of_call in slices[::-1]][::-1],
    )
    helpers.assert_same(helpers.run(case, threads=3), in_order)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(helpers.DIFFERENTIABLE))
def test_arrays_are_lent(name, dtype):
    largest = 0
    for case in helpers.CASES.values():
        if case.name == name:
            workspace = Workspace()
            helpers.run(case, dtype, workspace=workspace)
            largest = max(largest, workspace.n_bytes)
    assert largest > 0


def test_without_a_backward_pass_y_is_the_same(case):
    for dtype in ("float64", "float32"):
        arrays = tuple(a.astype(dtype) for a in case.arrays)
        y_with_cache, _ = helpers.forward(case, arrays, case.context())
        y, _ = helpers.forward(case, arrays, case.context(keep=False))
        np.testing.assert_array_equal(y, y_with_cache)
        lent, _ = helpers.forward(case, arrays, case.context(keep=False, workspace=Workspace()))
        np.testing.assert_array_equal(lent, y_with_cache)


def test_no_argument_changes(case):
    """Arguments may even be read-only."""
    arrays = tuple(a.copy() for a in case.arrays)
    for array in arrays:
        array.flags.writeable = False
    y, cache = helpers.forward(case, arrays, case.context())
    helpers.assert_same(arrays, case.arrays)
    original_y, dy = y.copy(), helpers.gradient_for(y)
    before = dy.copy()
    helpers.backward(case, dy, cache)
    helpers.assert_same([*arrays, dy, y], [*case.arrays, before, original_y])
    dy.flags.writeable = False
    helpers.backward(case, dy, cache)


def test_backward_twice_gives_the_same_twice(case):
    for workspace in (None, Workspace()):
        y, cache = helpers.forward(case, case.arrays, case.context(workspace=workspace))
        dy = helpers.gradient_for(y)
        first = helpers.backward(case, dy, cache)
        first_copies = [g.copy() for g in first]
        helpers.backward(case, 2.0 * dy + 1.0, cache)
        second = helpers.backward(case, dy, cache)
        helpers.assert_same(second, first_copies)
        helpers.assert_same(first, first_copies)


def test_a_cache_and_results_survive_later_calls(case):
    alone = helpers.run(case)
    for workspace in (None, Workspace()):
        y, cache = helpers.forward(case, case.arrays, case.context(workspace=workspace))
        gradients = helpers.backward(case, helpers.gradient_for(y), cache)
        for later in (1.0, 2.0):
            later_arrays = tuple(later + 0.5 * a for a in case.arrays)
            y_later, cache_later = helpers.forward(
                case, later_arrays, case.context(workspace=workspace)
            )
            helpers.backward(case, helpers.gradient_for(y_later), cache_later)
            del y_later, cache_later
        again = helpers.backward(case, helpers.gradient_for(y), cache)
        helpers.assert_same([y, *gradients], alone)
        helpers.assert_same(again, alone[1:])


def test_a_cache_outlives_its_workspace(case):
    workspace = Workspace()
    y, cache = helpers.forward(case, case.arrays, case.context(workspace=workspace))
    del workspace
    helpers.assert_same(
        [y, *helpers.backward(case, helpers.gradient_for(y), cache)], helpers.run(case)
    )


def test_memory_comes_back_when_results_and_cache_are_dropped(case):
    workspace = Workspace()
    helpers.run(case, workspace=workspace)
    helpers.run(case, workspace=workspace)
    held = workspace.n_bytes
    for _ in range(5):
        helpers.run(case, workspace=workspace)
    assert workspace.n_bytes == held
