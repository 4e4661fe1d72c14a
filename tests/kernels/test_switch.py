"""Kernels on and off: for a process, a call, and for layers and arrays that have none."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from unittest.mock import Mock

import numpy as np
import pytest

import npformer as nf
from npformer import Context, Encoder, EncoderConfig, Gradients
from npformer import layers as L
from npformer.core import dispatch
from npformer.core.dispatch import faster
from npformer.core.support.scoped_setting import ScopedSetting
from npformer.engine import EngineContext, Workspace, cpu, fast_models, gpu
from npformer.engine.kernel_tables import kernels_of
from npformer.engine.threads import side_by_side
from npformer.engine.twin_classes import Fast, Saved
from npformer.engine.twins import Twins
from npformer.engine.updates import device_generator
from npformer.proof import complex_step
from tests.engine.users import Scaled
from tests.passes import assert_same, both_passes


class Used(Exception):
    """A kernel was called."""


@pytest.fixture(autouse=True)
def on(monkeypatch):
    """Begin with kernels, and end as it was."""
    monkeypatch.setattr(dispatch, "_enabled", ScopedSetting("kernels of this test", True))


@pytest.fixture
def kernels_raise(monkeypatch):
    """Make every kernel say that it was called."""
    refuse = Mock(side_effect=Used)
    for name in cpu.KERNELS:
        monkeypatch.setitem(cpu.KERNELS, name, (refuse, refuse))
    for name in cpu.UPDATES:
        monkeypatch.setitem(cpu.UPDATES, name, refuse)


def encoder(dtype="float64", **changes):
    config = EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=12, max_len=6, **changes)
    return Encoder(config, dtype=dtype)


X = np.random.default_rng(0).normal(size=(2, 5, 8))


def uses_kernels():
    try:
        both_passes(nf.fast(encoder()), X)
    except Used:
        return True
    return False


# The process --------------------------------------------------------------------------------------
def test_for_the_process_until_they_are_switched_again(kernels_raise):
    assert uses_kernels()
    nf.use_kernels(False)
    assert not uses_kernels()
    with nf.use_kernels(False):
        pass
    assert not uses_kernels(), "off stays off after a body that was off"
    nf.use_kernels(True)
    assert uses_kernels()


def test_in_with_statements_for_their_bodies(kernels_raise):
    with nf.use_kernels(False):
        with nf.use_kernels(True):
            assert uses_kernels()
            with nf.use_kernels(False):
                assert not uses_kernels()
            assert uses_kernels()
        assert not uses_kernels()
    assert uses_kernels()
    with pytest.raises(ZeroDivisionError), nf.use_kernels(False):
        raise ZeroDivisionError
    assert uses_kernels(), "an error switches back too"


def test_without_a_with_statement_for_all_threads(kernels_raise):
    nf.use_kernels(False)
    with ThreadPoolExecutor(1) as pool:
        assert not pool.submit(uses_kernels).result()


def test_a_with_statement_changes_nothing_for_other_threads(kernels_raise):
    with nf.use_kernels(False), ThreadPoolExecutor(1) as pool:
        assert pool.submit(uses_kernels).result()
        assert not uses_kernels()


def test_threads_that_overlap_leave_nothing_behind(kernels_raise):
    """A in, B in, A out, B out: a switch that restores what it found would end as A was inside."""
    with ThreadPoolExecutor(1) as a, ThreadPoolExecutor(1) as b:
        of_a, of_b = ExitStack(), ExitStack()
        a.submit(lambda: of_a.enter_context(nf.use_kernels(False))).result()
        b.submit(lambda: of_b.enter_context(nf.use_kernels(False))).result()
        a.submit(of_a.close).result()
        assert a.submit(uses_kernels).result()
        assert not b.submit(uses_kernels).result()
        b.submit(of_b.close).result()
        assert b.submit(uses_kernels).result()
    assert uses_kernels()


def test_generators_may_leave_their_switches_in_any_order():
    def inside(enabled):
        with nf.use_kernels(enabled):
            yield dispatch.enabled()

    first, second = inside(False), inside(False)
    assert [next(first), next(second)] == [False, False]
    first.close()
    assert not dispatch.enabled(), "the second one is still inside"
    second.close()
    assert dispatch.enabled()


def test_one_object_may_be_entered_in_two_contexts():
    switch = nf.use_kernels(False)
    with nf.use_kernels(True), ThreadPoolExecutor(1) as pool:
        with switch:
            pool.submit(switch.__enter__).result()
        assert dispatch.enabled()
        assert not pool.submit(dispatch.enabled).result()
        pool.submit(switch.__exit__).result()
        assert pool.submit(dispatch.enabled).result()


def test_the_package_s_own_threads_have_the_value_of_their_caller():
    with nf.use_kernels(False):
        assert side_by_side(lambda number: dispatch.enabled(), [0, 1]) == [False, False]
    assert side_by_side(lambda number: dispatch.enabled(), [0, 1]) == [True, True]


def test_one_object_can_be_entered_twice(kernels_raise):
    switch = nf.use_kernels(False)
    assert not uses_kernels()
    with switch, switch:
        assert not uses_kernels()
    assert uses_kernels(), "in a with statement, it is no default any more"


def test_a_default_lasts_however_often_it_is_set(kernels_raise):
    for _ in range(3):
        nf.use_kernels(False)
    assert not uses_kernels()


@pytest.mark.parametrize("enabled", [0, 1, None, "no", np.False_])
def test_other_values_than_true_or_false_are_refused(enabled, kernels_raise):
    with pytest.raises(TypeError, match=r"enabled is .*; expected True or False"):
        nf.use_kernels(enabled)
    assert uses_kernels()


def test_off_a_model_is_its_own_twin():
    layer = encoder()
    with nf.use_kernels(False):
        assert nf.fast(layer) is layer
        assert nf.fast(layer, of_data=True) is layer
    assert isinstance(nf.fast(layer), Fast)


def test_a_backward_pass_belongs_to_its_forward_pass(rng, kernels_raise):
    layer = L.Linear(4, 5, seed=0, dtype="float64")
    x, expected = rng.normal(size=(3, 4)), Gradients(layer)
    with nf.use_kernels(False):
        y, cache = nf.fast(layer).forward(x, Context())
        dx = layer.backward(y, cache, expected)
    gradients = Gradients(layer)
    np.testing.assert_array_equal(nf.fast(layer).backward(y, cache, gradients), dx)
    assert_same(gradients.values(), expected.values())


def test_and_to_no_other_though_kernels_are_off_by_then(rng):
    layer = L.Linear(4, 5, seed=0, dtype="float64")
    twin = nf.fast(layer)
    y, cache = twin.forward(rng.normal(size=(3, 4)), Context())
    assert type(cache) is Saved
    assert cache.backward is cpu.KERNELS["linear"][1]
    with nf.use_kernels(False):
        assert twin.backward(y, cache, Gradients(layer)).shape == (3, 4)


# A call -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mixer", nf.MIXERS)
def test_a_twin_does_not_make_its_layer_fast(kernels_raise, mixer):
    layer = encoder(mixer=mixer)
    with pytest.raises(Used):
        both_passes(nf.fast(layer), X)
    assert not any(isinstance(sublayer, Fast) for _, sublayer in layer.layers())
    both_passes(layer, X)


def test_a_feed_forward_network_is_one_kernel_unless_a_part_is_a_users(rng):
    def kernels_used(layer):
        _, cache = nf.fast(layer).forward(rng.normal(size=(2, 3, 8)), Context())
        caches = cache if isinstance(cache, list | tuple) else (cache,)
        return [layer_cache.backward for layer_cache in caches if type(layer_cache) is Saved]

    linear, feed_forward = (cpu.KERNELS[name][1] for name in ("linear", "feed_forward"))
    layer = L.PositionwiseFeedForward(8, 12, "gelu", seed=0, dtype="float64")
    assert kernels_used(layer) == [feed_forward]
    layer.expand = Scaled(8, 12, seed=0, dtype="float64")
    assert kernels_used(layer) == [linear]  # contract's alone
    layer.expand = L.Linear(8, 12, bias=False, seed=0, dtype="float64")
    assert kernels_used(layer) == [linear, linear]
    with nf.use_kernels(False):
        assert kernels_used(layer) == []


def test_a_pair_without_a_kernel_is_the_pair(rng, monkeypatch):
    monkeypatch.delitem(cpu.KERNELS, "linear")
    layer, x = L.Linear(4, 5, seed=0, dtype="float64"), rng.normal(size=(3, 4))
    _, cache = nf.fast(layer).forward(x, Context())
    assert type(cache) is not Saved
    assert_same(both_passes(nf.fast(layer), x), both_passes(layer, x))


def test_the_update_of_adam(rng):
    x = rng.normal(size=3)
    assert faster(nf.optim.adam_update, x) is cpu.UPDATES["adam_update"]
    assert faster(nf.optim.clip_by_global_norm, x) is None
    assert faster(np.sum, x) is None
    assert faster(nf.optim.adam_update, np.ones((2, 3))) is cpu.UPDATES["adam_update"]
    assert faster(nf.optim.adam_update, np.ones((3, 2)).T) is None  # `reshape` would copy it
    with nf.use_kernels(False):
        assert faster(nf.optim.adam_update, x) is None


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_sum_is_lent_memory_where_there_are_kernels(rng, monkeypatch, norm):
    for name in ("layer_norm", "dropout", "residual_norm"):
        monkeypatch.delitem(cpu.KERNELS, name)
    config = EncoderConfig(d_model=64, n_heads=2, max_len=40, mixer="identity", norm=norm)
    block, x = Encoder(config, dtype="float64").blocks[0], rng.normal(size=(5, 40, 64))
    block.feed_forward = L.Tanh()  # so that there is nothing but sums

    def lent(layer):
        workspace = Workspace()
        y, _ = layer.forward(x, EngineContext(workspace=workspace))
        np.testing.assert_array_equal(y, block.forward(x, Context())[0])
        return workspace.n_bytes

    assert lent(nf.fast(block)) >= x.nbytes
    with nf.use_kernels(False):
        assert lent(nf.fast(block)) == 0
    monkeypatch.delitem(cpu.KERNELS, "linear")
    assert lent(nf.fast(block)) == 0


def test_what_is_added_may_be_repeated(rng):
    one, other, workspace = rng.normal(size=(5, 40, 64)), rng.normal(size=(40, 64)), Workspace()
    summed = fast_models.add(one, other, EngineContext(workspace=workspace))
    np.testing.assert_array_equal(summed, one + other)
    assert workspace.n_bytes >= one.nbytes


# Arrays -------------------------------------------------------------------------------------------
def kernel(name, x):
    """Return the kernel that a twin of NumPy's takes for arrays such as x."""
    return Twins(cpu.KERNELS, np.ndarray).kernel(name, x)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("mixer", ["attention", "dense_synthesizer", "fourier"])
def test_complex_steps_go_without_kernels(either, kernels_raise, mixer, norm):
    x = complex_step.complex_copy(np.random.default_rng(0).normal(size=(2, 5, 8)))
    layer = encoder("float32", mixer=mixer, norm=norm)
    with complex_step._complex_world():
        y, _ = either(layer).forward(x, Context())
    assert y.dtype.kind == "c"


class Own(np.ndarray):
    """Another class than NumPy's."""


@pytest.mark.parametrize(
    "x",
    [
        *(np.ones((2, 3), kind) for kind in ("complex128", "float16", "bool", "O")),
        np.ones((2, 3)).view(Own),
    ],
)
def test_other_arrays_have_no_kernels(x):
    assert kernel("feed_forward", x) is None
    assert faster(nf.optim.adam_update, x) is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_there_are_kernels_for_numbers(dtype):
    x = np.ones((2, 3), dtype)
    assert kernel("feed_forward", x) is cpu.KERNELS["feed_forward"]
    assert kernel("no such kernel", x) is None
    _, cache = nf.fast(L.Linear(3, 4, seed=0, dtype=dtype)).forward(x, Context())
    assert type(cache) is Saved


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_there_are_kernels_for_token_ids(dtype):
    _, cache = nf.fast(L.Embedding(3, 4, seed=0)).forward(np.ones((2, 3), dtype), Context())
    assert type(cache) is Saved
    assert cache.backward is cpu.KERNELS["embedding"][1]


def test_there_are_no_kernels_for_a_backend_that_the_engine_does_not_know(monkeypatch):
    assert kernels_of("numpy") is cpu.KERNELS
    assert kernels_of("cupy") is gpu.KERNELS
    assert kernels_of("no such backend") is None
    assert device_generator("numpy", 0) is None
    layer = encoder()
    monkeypatch.setattr(Encoder, "backend", "no such backend")
    assert nf.fast(layer) is layer
