"""The fake device refuses what a GPU would refuse, or would do silently wrong."""

import copy
import pickle
from collections.abc import Callable
from operator import iadd, imul, setitem
from typing import Any

import numpy as np
import pytest

import npformer as nf
from tests import fake_device
from tests.fake_device import FakeArray, add_at, asarray, count

xp = fake_device.module

against_cupy = pytest.mark.skipif(bool(fake_device.NOT_CHECKED), reason=fake_device.NOT_CHECKED)


def device(*entries: float, dtype: str = "float32") -> FakeArray:
    return asarray(np.array(entries, dtype=dtype))


def square() -> FakeArray:
    return asarray(np.eye(2))


@pytest.mark.parametrize(
    "mix",
    [
        lambda x, host: x + host,
        lambda x, host: host + x,
        lambda x, host: x @ host,
        lambda x, host: host @ x,
        lambda x, host: x == host,
        lambda x, host: xp.maximum(x, host),
        lambda x, host: xp.where(host > 0, x, 0.0),
        lambda x, host: xp.concatenate([x, host]),
        lambda x, host: x.dot(host),
        lambda x, host: xp.exp(host),
        lambda x, host: fake_device.erfcx(host),
        lambda x, host: fake_device.fft.fft(host),
        lambda x, host: add_at(x, ids(0), host[:1]),
    ],
)
def test_host_and_device_arrays_do_not_mix(mix) -> None:
    host = np.ones(2, dtype="float32")
    with pytest.raises(TypeError, match="Unsupported type <class 'numpy"):
        mix(device(1.0, 2.0), host)


@pytest.mark.parametrize(
    "mix",
    [
        lambda x, number: x * number,
        lambda x, number: number * x,
        lambda x, number: x > number,
        lambda x, number: xp.maximum(x, number),
        lambda x, number: xp.where(x > 0.0, x, number),
        lambda x, number: x.fill(number),
        lambda x, number: x.__setitem__(0, number),
    ],
)
@pytest.mark.parametrize("number", [np.float64(2.0), np.float32(2.0), np.int64(2), np.bool_(True)])
def test_a_numpy_scalar_is_not_an_operand(number, mix) -> None:
    with pytest.raises(TypeError, match="a NumPy scalar"):
        mix(device(1.0), number)


def ids(*entries: int) -> FakeArray:
    return asarray(np.array(entries))


AS_INDEX = "as index: CuPy would upload it"
WRAPS = "CuPy would wrap it silently"
GROWS = "float32 becomes float64"
TWICE = "an index occurs twice"
REFUSED = {
    "numpy.where": (lambda x: np.where(x > 0.0, 1.0, 0.0), TypeError, r"numpy\.where of a device"),
    "assigned to the host": (lambda x: setitem(np.zeros(1), ..., x), TypeError, "Implicit conv"),
    "host += device": (lambda x: iadd(np.ones(2), x), TypeError, "Unsupported type"),
    "device += host": (lambda x: iadd(x, np.ones(2)), TypeError, "Unsupported type"),
    "host assigned": (lambda x: setitem(x, ..., np.zeros(2)), TypeError, "Unsupported type"),
    "two dtypes": (lambda x: x + device(1.0, dtype="float64"), TypeError, GROWS),
    "over a count": (lambda x: x / (x > 0.0).sum(), TypeError, GROWS),
    "rounded": (lambda x: setitem(x, ..., device(1.0, dtype="float64")), TypeError, GROWS),
    "whole numbers of the host": (lambda x: x[np.array([0])], TypeError, AS_INDEX),
    "bools of the host": (lambda x: x[np.array([True, False])], TypeError, AS_INDEX),
    "a list as index": (lambda x: x[[0, 1]], TypeError, AS_INDEX),
    "a bool as index": (lambda x: x[True], TypeError, AS_INDEX),
    "floats as index": (lambda x: x[device(0.0)], IndexError, "expected whole numbers"),
    "index too large": (lambda x: x[ids(0, 2)], IndexError, WRAPS),
    "index too small": (lambda x: x[ids(0, -3)], IndexError, WRAPS),
    "assigned out of range": (lambda x: setitem(x, ids(2), 0.0), IndexError, WRAPS),
    "added out of range": (lambda x: add_at(x, ids(2), device(1.0)), IndexError, WRAPS),
    "assigned twice": (lambda x: setitem(x, ids(1, 1), device(2.0, 3.0)), ValueError, TWICE),
    "assigned twice to a row": (
        lambda x: setitem(square(), (ids(1, 1), slice(1)), asarray(np.ones((2, 1)))),
        ValueError,
        TWICE,
    ),
    "a list assigned": (lambda x: setitem(x, ..., [2.0, 3.0]), TypeError, "a list assigned"),
    "range of it": (lambda x: range(asarray(np.array(3))), TypeError, "no __index__"),
    "truth of several": (bool, ValueError, "ambiguous"),
    "objects": (lambda x: asarray(np.array(["a"])), ValueError, "Unsupported dtype"),
    "a method": (lambda x: x.itemset, AttributeError, "no 'itemset'"),
    "random numbers": (lambda x: xp.random, AttributeError, "draw on the host"),
    "matmul into a view": (
        lambda x: xp.matmul(square(), square(), out=square().T),
        ValueError,
        "not C-contiguous",
    ),
    "matmul into another dtype": (
        lambda x: xp.matmul(square(), square(), out=square().astype("float32")),
        TypeError,
        "not that of its operands",
    ),
    "pickled": (pickle.dumps, TypeError, "does not open on a machine without a GPU"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_gpu_would_refuse_or_get_wrong_is_refused(what) -> None:
    do, error, message = REFUSED[what]
    with pytest.raises(error, match=message):
        do(device(1.0, 2.0))


def modify(x: FakeArray, change: Callable[..., Any], *arguments: Any) -> FakeArray:
    change(x, *arguments)
    return x


GIVES: dict[str, tuple[Callable[[FakeArray], FakeArray], list[float]]] = {
    "Python numbers as operands": (lambda x: 2.0 * x + 1, [3.0, 5.0]),
    "an index of the device": (lambda x: x[ids(1, 0, 1)], [2.0, 1.0, 2.0]),
    "added twice": (lambda x: modify(x, add_at, ids(1, 1), device(2.0, 3.0)), [1.0, 7.0]),
    "one number assigned twice": (lambda x: modify(x, setitem, ids(1, 1), 0.0), [1.0, 0.0]),
    "a slice is a view": (
        lambda x: modify(x, lambda x: setitem(x[1:], ..., 5.0)),
        [1.0, 5.0],
    ),
    "an entry is a view": (
        lambda x: modify(x, lambda x: setitem(x[1], ..., 5.0)),
        [1.0, 5.0],
    ),
    "in place": (lambda x: modify(x, imul, 2.0), [2.0, 4.0]),
    "a download is a copy": (
        lambda x: modify(x, lambda x: setitem(fake_device.download(x), ..., 9.0)),
        [1.0, 2.0],
    ),
    "a copy has its own memory": (
        lambda x: modify(x, lambda x: setitem(copy.deepcopy(x), ..., 9.0)),
        [1.0, 2.0],
    ),
    "matmul into an array": (
        lambda x: modify(x, lambda x: xp.matmul(square().astype("float32"), 2.0 * x, out=x)),
        [2.0, 4.0],
    ),
}


@pytest.mark.parametrize("what", GIVES)
def test_what_a_gpu_would_give(what) -> None:
    do, expected = GIVES[what]
    result = do(device(1.0, 2.0))
    assert result.tolist() == expected
    assert result.dtype == "float32"


@pytest.mark.parametrize(
    "wait",
    [
        lambda x: float(x.sum()),
        lambda x: int(x.sum()),
        lambda x: bool(x.sum()),
        lambda x: x.sum().item(),
        lambda x: x.tolist(),
        lambda x: x.get(),
        lambda x: fake_device.download(x),
        lambda x: nf.to_numpy(x),
        lambda x: list(x),
        lambda x: repr(x),
        lambda x: f"{x.sum():.3f}",
        lambda x: x.nonzero(),
        lambda x: xp.nonzero(x),
        lambda x: xp.where(x),
        lambda x: xp.unique(x),
        lambda x: x[asarray(np.array([True, False]))],
        lambda x: x.__setitem__(asarray(np.array([True, False])), 0.0),
    ],
)
def test_looking_at_values_is_counted(wait) -> None:
    x = device(1.0, 2.0)
    with count() as counted:
        wait(x)
    assert counted.synchronisations == 1, counted.waits


@against_cupy
@pytest.mark.parametrize("name", ["block", "insert", "einsum_path", "vecdot", "errstate"])
def test_a_name_that_cupy_lacks_is_refused(name) -> None:
    assert hasattr(np, name)
    with pytest.raises(AttributeError, match=f"cupy has no '{name}'"):
        getattr(xp, name)


@against_cupy
@pytest.mark.parametrize(
    "call",
    [
        lambda x: xp.sum(x, where=x > 0.0),
        lambda x: x.sum(where=x > 0.0),
        lambda x: x.max(initial=0.0),
        lambda x: xp.exp(x, where=x > 0.0),
        lambda x: xp.zeros(3, like=x),
        lambda x: fake_device.fft.fft(x, workers=2),
        lambda x: fake_device.fft.fft2(x, overwrite_x=True),
        lambda x: fake_device.erfcx(x, where=x > 0.0),
    ],
)
def test_a_keyword_that_cupy_lacks_is_refused(call) -> None:
    with pytest.raises(TypeError, match="cupy"):
        call(device(1.0))


def ones(*shape: int) -> FakeArray:
    return asarray(np.ones(shape, dtype="float32"))


@pytest.mark.parametrize(
    ("multiply", "expected"),
    [
        (lambda: ones(3, 4) @ ones(3, 4).T, []),
        (lambda: ones(2, 3, 4) @ ones(2, 4, 3), []),
        (lambda: ones(2, 3, 4) @ ones(2, 3, 4).mT, ["a factor (2, 4, 3) of"]),
        (lambda: xp.matmul(ones(2, 3, 4), ones(2, 3, 4).mT), ["a factor (2, 4, 3) of"]),
        (lambda: ones(2, 3, 4) @ ones(4, 3), ["(2, 3, 4) @ (4, 3) goes through pointers"]),
        (lambda: ones(3, 9)[:, :4] @ ones(4, 3), ["a factor (3, 4) of"]),
        (lambda: ones(2, 5, 4)[:, :3] @ ones(2, 4, 3), ["a factor (2, 3, 4) of"]),
    ],
)
def test_products_that_copy_are_noted(multiply, expected) -> None:
    with count() as counted:
        multiply()
    assert len(counted.copies) == len(expected)
    for note, words in zip(counted.copies, expected, strict=True):
        assert note.startswith(words)


def test_what_was_fed_is_gone_with_the_next_batch() -> None:
    feed = fake_device.FakeFeed()
    (first,) = feed(np.zeros(2))
    (second, none) = feed(np.ones(2), None)
    assert none is None
    assert first.tolist() == [99.0, 99.0]
    assert second.tolist() == [1.0, 1.0]
