"""Kernels on and off: for a process, a call, and for arrays that have none."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import npformer as nf
from npformer import Context, Encoder, EncoderConfig, Gradients, Workspace, complex_step, kernels
from npformer import functional as F
from npformer.kernels import cpu

CONFIG = EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=12, max_len=6)


class Used(Exception):
    """A kernel was called."""


@pytest.fixture(autouse=True)
def on():
    """Begin with kernels, and end as it was."""
    before = kernels._enabled
    kernels._enabled = True
    yield
    kernels._enabled = before


@pytest.fixture
def refusing(monkeypatch):
    """Make every kernel say that it was called."""

    def refuse(*arguments, **options):
        raise Used

    for name in cpu.KERNELS:
        monkeypatch.setitem(cpu.KERNELS, name, (refuse, refuse))
    for name in cpu.UPDATES:
        monkeypatch.setitem(cpu.UPDATES, name, refuse)


def forward_and_backward(context, x=None, **changes):
    layer = Encoder(EncoderConfig(**{**CONFIG.to_dict(), **changes}), dtype="float64")
    x = np.random.default_rng(0).normal(size=(2, 5, 8)) if x is None else x
    y, cache = layer.forward(x, context)
    return y, layer.backward(np.ones_like(y), cache, Gradients(layer))


def uses_kernels():
    try:
        forward_and_backward(Context())
    except Used:
        return True
    return False


# The process --------------------------------------------------------------------------------------


def test_kernels_are_on_unless_they_are_switched_off(refusing):
    assert uses_kernels()
    nf.use_kernels(False)
    assert not uses_kernels()
    nf.use_kernels(True)
    assert uses_kernels()


def test_in_a_with_statement_for_its_body(refusing):
    with nf.use_kernels(False):
        assert not uses_kernels()
    assert uses_kernels()


def test_nested(refusing):
    with nf.use_kernels(False):
        with nf.use_kernels(True):
            assert uses_kernels()
            with nf.use_kernels(False):
                assert not uses_kernels()
            assert uses_kernels()
        assert not uses_kernels()
    assert uses_kernels()


def test_an_error_switches_back_and_goes_through(refusing):
    with pytest.raises(ZeroDivisionError), nf.use_kernels(False):
        raise ZeroDivisionError
    assert uses_kernels()


def test_off_stays_off_after_a_body_that_was_off(refusing):
    nf.use_kernels(False)
    with nf.use_kernels(False):
        pass
    assert not uses_kernels()


def test_for_all_threads(refusing):
    with nf.use_kernels(False), ThreadPoolExecutor(1) as pool:
        assert not pool.submit(uses_kernels).result()


@pytest.mark.parametrize("enabled", [0, 1, None, "no", np.False_])
def test_anything_but_true_or_false_is_refused_and_changes_nothing(enabled, refusing):
    with pytest.raises(TypeError, match=r"enabled is .*; expected True or False"):
        nf.use_kernels(enabled)
    assert uses_kernels()


def test_a_backward_pass_belongs_to_its_forward_pass(rng, refusing):
    x, W, b = rng.normal(size=(3, 4)), rng.normal(size=(4, 5)), rng.normal(size=5)
    with nf.use_kernels(False):
        y, cache = kernels.forward(F.linear, Context(), x, W, b)
    assert len(kernels.backward(y, cache)) == 3


# A call -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("mixer", nf.MIXERS)
def test_a_plain_context_takes_functional_pairs_alone(refusing, mixer, norm):
    y, dx = forward_and_backward(Context(plain=True), mixer=mixer, norm=norm)
    with nf.use_kernels(False):
        off, dx_off = forward_and_backward(Context(), mixer=mixer, norm=norm)
    np.testing.assert_array_equal(y, off)
    np.testing.assert_array_equal(dx, dx_off)


def test_a_plain_context_has_no_fused_kernel(rng):
    x = rng.normal(size=(2, 3, 8))
    assert kernels.fused("feed_forward", x, Context()) is not None
    assert kernels.fused("feed_forward", x, Context(plain=True)) is None
    assert kernels.fused("no such kernel", x, Context()) is None


def test_a_pair_without_a_kernel_is_the_pair(rng):
    x = rng.normal(size=(3, 4))
    y, cache = kernels.forward(F.softmax, Context(), x, axis=0)
    expected, expected_cache = F.softmax(x, axis=0)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(kernels.backward(x, cache), F.softmax_backward(x, expected_cache))


def test_the_update_of_adam(rng):
    x = rng.normal(size=3)
    assert kernels.find("adam_update", x) is cpu.UPDATES["adam_update"]
    assert kernels.find("no such update", x) is None
    with nf.use_kernels(False):
        assert kernels.find("adam_update", x) is None


def test_a_sum_is_lent_memory_where_there_are_kernels(rng):
    one, other = rng.normal(size=(5, 40, 64)), rng.normal(size=(40, 64))
    for enabled in (True, False):
        workspace = Workspace()
        with nf.use_kernels(enabled):
            summed = kernels.add(one, other, Context(workspace=workspace))
        np.testing.assert_array_equal(summed, one + other)
        assert bool(workspace.n_bytes) == enabled


# Arrays -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("mixer", ["attention", "dense_synthesizer", "fourier"])
def test_complex_steps_go_without_kernels(refusing, mixer, norm):
    x = complex_step.guarded(np.random.default_rng(0).normal(size=(2, 5, 8)))
    layer = Encoder(EncoderConfig(**{**CONFIG.to_dict(), "mixer": mixer, "norm": norm}))
    with complex_step._complex_world():
        y, _ = layer.forward(x, Context())
    assert y.dtype.kind == "c"


@pytest.mark.parametrize("dtype", ["complex128", "float16", "bool", "object"])
def test_there_are_no_kernels_for_other_dtypes(dtype):
    x = np.ones((2, 3), dtype)
    assert kernels.fused("feed_forward", x, Context()) is None
    assert kernels.find("adam_update", x) is None


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8"])
def test_there_are_kernels_for_numbers_and_token_ids(dtype):
    assert kernels.fused("feed_forward", np.ones((2, 3), dtype), Context()) is not None


def test_there_are_no_kernels_for_a_class_of_its_own():
    class Own(np.ndarray):
        pass

    x = np.ones((2, 3)).view(Own)
    assert kernels.fused("feed_forward", x, Context()) is None
    assert kernels.find("adam_update", x) is None
