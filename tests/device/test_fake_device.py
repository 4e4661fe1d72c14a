"""The fake device refuses what a GPU would refuse, or would do silently wrong."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import npformer as nf
from tests import fake_device
from tests.fake_device import FakeArray, asarray, count

xp = fake_device.module

against_cupy = pytest.mark.skipif(bool(fake_device.NOT_CHECKED), reason=fake_device.NOT_CHECKED)


def device(*entries: float, dtype: str = "float32") -> FakeArray:
    return asarray(np.array(entries, dtype=dtype))


# NumPy is kept out


@pytest.mark.parametrize("convert", [np.asarray, np.array, np.asanyarray])
def test_numpy_cannot_convert_a_device_array(convert) -> None:
    with pytest.raises(TypeError, match="Implicit conversion to a NumPy array is not allowed"):
        convert(device(1.0))


@pytest.mark.parametrize("function", [np.exp, np.sum, np.zeros_like, np.concatenate])
def test_a_numpy_function_refuses_a_device_array(function) -> None:
    x = device(1.0)
    with pytest.raises(TypeError, match=f"numpy.{function.__name__} of a device array"):
        function([x] if function is np.concatenate else x)


def test_numpy_where_refuses_a_device_array() -> None:
    with pytest.raises(TypeError, match=r"numpy\.where of a device array"):
        np.where(device(1.0) > 0.0, 1.0, 0.0)


def test_a_host_array_does_not_take_a_device_array() -> None:
    host = np.zeros(1)
    with pytest.raises(TypeError, match="Implicit conversion"):
        host[...] = device(1.0)


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
        lambda x, host: fake_device.erf(host),
        lambda x, host: fake_device.fft.fft(host),
        lambda x, host: fake_device.add_at(x, asarray(np.array([0])), host[:1]),
    ],
)
def test_host_and_device_arrays_do_not_mix(mix) -> None:
    host = np.ones(2, dtype="float32")
    with pytest.raises(TypeError, match="Unsupported type <class 'numpy"):
        mix(device(1.0, 2.0), host)


def test_a_device_array_does_not_add_a_host_array_in_place() -> None:
    x = device(1.0, 2.0)
    with pytest.raises(TypeError, match="Unsupported type"):
        x += np.ones(2)


def test_a_host_array_does_not_add_a_device_array_in_place() -> None:
    host = np.ones(2)
    with pytest.raises(TypeError, match="Unsupported type"):
        host += device(1.0, 2.0)


def test_a_host_array_is_not_assigned_to_a_device_array() -> None:
    x = device(1.0, 2.0)
    with pytest.raises(TypeError, match="Unsupported type"):
        x[...] = np.zeros(2)


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
def test_a_numpy_scalar_is_not_an_operand(mix, number) -> None:
    with pytest.raises(TypeError, match="a NumPy scalar"):
        mix(device(1.0), number)


def test_a_python_number_is_an_operand() -> None:
    assert (2.0 * device(1.0) + 1).dtype == "float32"


def test_float32_and_float64_do_not_mix() -> None:
    with pytest.raises(TypeError, match="float32 becomes float64"):
        device(1.0) + device(1.0, dtype="float64")


def test_float32_over_a_count_does_not_become_float64() -> None:
    with pytest.raises(TypeError, match="float32 becomes float64"):
        device(1.0, 2.0) / (device(1.0, 2.0) > 0.0).sum()


def test_float64_is_not_rounded_by_assignment() -> None:
    x = device(1.0)
    with pytest.raises(TypeError, match="float32 becomes float64"):
        x[...] = device(1.0, dtype="float64")


# Indexing


@pytest.mark.parametrize("index", [np.array([0]), np.array([True, False])])
def test_a_host_array_is_no_index(index) -> None:
    with pytest.raises(TypeError, match="as index: CuPy would upload it"):
        device(1.0, 2.0)[index]


@pytest.mark.parametrize("index", [[0, 1], True])
def test_a_list_or_a_bool_is_no_index(index) -> None:
    with pytest.raises(TypeError, match="as index: CuPy would upload it"):
        device(1.0, 2.0)[index]


def test_a_float_array_is_no_index() -> None:
    with pytest.raises(IndexError, match="expected whole numbers"):
        device(1.0, 2.0)[device(0.0)]


def test_a_device_array_of_numbers_is_an_index() -> None:
    x = device(1.0, 2.0)[asarray(np.array([1, 0, 1]))]
    assert x.tolist() == [2.0, 1.0, 2.0]


@pytest.mark.parametrize("wrong", [2, -3])
def test_an_index_out_of_range_does_not_wrap(wrong) -> None:
    with pytest.raises(IndexError, match="CuPy would wrap it silently"):
        device(1.0, 2.0)[asarray(np.array([0, wrong]))]


def test_assignment_out_of_range_does_not_wrap() -> None:
    x = device(1.0, 2.0)
    with pytest.raises(IndexError, match="CuPy would wrap it silently"):
        x[asarray(np.array([2]))] = 0.0


def test_adding_at_an_index_out_of_range_does_not_wrap() -> None:
    with pytest.raises(IndexError, match="CuPy would wrap it silently"):
        fake_device.add_at(device(1.0), asarray(np.array([1])), device(1.0))


def test_adding_at_a_repeated_index_adds_each_time() -> None:
    x = device(0.0, 0.0)
    fake_device.add_at(x, asarray(np.array([1, 1])), device(2.0, 3.0))
    assert x.tolist() == [0.0, 5.0]


def test_assigning_twice_to_one_place_is_refused() -> None:
    x = asarray(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="an index occurs twice"):
        x[asarray(np.array([1, 1])), :1] = asarray(np.ones((2, 1)))


def test_adding_with_a_repeated_index_is_refused() -> None:
    x = device(0.0, 0.0)
    with pytest.raises(ValueError, match="an index occurs twice"):
        x[asarray(np.array([1, 1]))] += device(2.0, 3.0)


def test_one_number_may_be_assigned_twice_to_one_place() -> None:
    x = device(1.0, 1.0)
    x[asarray(np.array([1, 1]))] = 0.0
    assert x.tolist() == [1.0, 0.0]


def test_a_list_is_not_assigned() -> None:
    x = device(1.0, 1.0)
    with pytest.raises(TypeError, match="a list assigned"):
        x[...] = [2.0, 3.0]


def test_a_slice_is_a_view() -> None:
    x = device(1.0, 2.0)
    x[1:][...] = 5.0
    assert x.tolist() == [1.0, 5.0]


def test_a_single_entry_is_a_view_of_no_axes() -> None:
    x = device(1.0, 2.0)
    x[1][...] = 5.0
    assert x[1].shape == ()
    assert x.tolist() == [1.0, 5.0]


# Results stay on the device


@pytest.mark.parametrize(
    "reduce",
    [
        lambda x: x.sum(),
        lambda x: x.mean(),
        lambda x: x.max(),
        lambda x: (x > 0.0).all(),
        lambda x: x.argmax(),
        lambda x: xp.sum(x),
        lambda x: xp.array_equal(x, x),
        lambda x: x.sum() + 1.0,
    ],
)
def test_a_reduction_stays_on_the_device(reduce) -> None:
    with count() as counted:
        y = reduce(device(1.0, 2.0))
    assert isinstance(y, FakeArray)
    assert y.shape == ()
    assert counted.synchronisations == 0


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


def test_shape_dtype_and_length_are_known_without_waiting() -> None:
    x = device(1.0, 2.0)
    with count() as counted:
        assert (len(x), x.shape, x.ndim, x.size, x.dtype.name) == (2, (2,), 1, 2, "float32")
    assert counted.synchronisations == 0


def test_a_device_array_is_no_python_index() -> None:
    with pytest.raises(TypeError, match="no __index__"):
        range(asarray(np.array(3)))


def test_the_truth_of_several_numbers_is_ambiguous() -> None:
    with pytest.raises(ValueError, match="ambiguous"):
        bool(device(1.0, 2.0))


# Uploads and calls


def test_uploads_are_counted() -> None:
    with count() as counted:
        x = asarray(np.zeros(2))
        nf.asarray(np.zeros(2), backend="fake")
        xp.asarray([1.0])
        asarray(x)
    assert counted.uploads == 3


def test_the_host_array_may_change_after_the_upload() -> None:
    host = np.zeros(1)
    x = asarray(host)
    host[...] = 1.0
    assert x.tolist() == [0.0]


def test_a_download_is_a_copy() -> None:
    x = device(0.0)
    fake_device.download(x)[...] = 1.0
    assert x.tolist() == [0.0]


def test_an_array_of_objects_is_not_uploaded() -> None:
    with pytest.raises(ValueError, match="Unsupported dtype"):
        asarray(np.array(["a"]))


def test_calls_are_counted() -> None:
    x = device(1.0)
    with count() as counted:
        xp.exp(x * 2.0).sum()
    assert counted.calls == 3


def test_counts_nest() -> None:
    with count() as outer:
        float(device(1.0)[0])
        with count() as inner:
            float(device(1.0)[0])
    assert (outer.synchronisations, inner.synchronisations) == (2, 1)


# Names and keywords are CuPy's


@against_cupy
@pytest.mark.parametrize("name", ["block", "insert", "einsum_path", "vecdot", "errstate"])
def test_a_name_that_cupy_lacks_is_refused(name) -> None:
    assert hasattr(np, name)
    with pytest.raises(AttributeError, match=f"cupy has no '{name}'"):
        getattr(xp, name)


def test_random_numbers_are_not_drawn_on_the_device() -> None:
    with pytest.raises(AttributeError, match="draw on the host"):
        _ = xp.random


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
        lambda x: fake_device.erf(x, where=x > 0.0),
    ],
)
def test_a_keyword_that_cupy_lacks_is_refused(call) -> None:
    with pytest.raises(TypeError, match="cupy"):
        call(device(1.0))


@against_cupy
def test_a_transform_that_cupy_lacks_is_refused() -> None:
    with pytest.raises(AttributeError, match=r"cupy\.fft has no 'dct'"):
        _ = fake_device.fft.dct


def test_a_method_that_cupys_arrays_lack_is_refused() -> None:
    with pytest.raises(AttributeError, match="no 'itemset'"):
        _ = device(1.0).itemset


def test_matmul_writes_into_a_contiguous_array() -> None:
    a, out = asarray(np.eye(2)), asarray(np.zeros((2, 2)))
    assert xp.matmul(a, a, out=out) is out
    assert out.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_matmul_does_not_write_into_a_transposed_array() -> None:
    a = asarray(np.eye(2))
    with pytest.raises(ValueError, match="not C-contiguous"):
        xp.matmul(a, a, out=asarray(np.zeros((2, 2))).T)


def test_matmul_does_not_write_into_another_dtype() -> None:
    a = asarray(np.eye(2))
    with pytest.raises(TypeError, match="not that of its operands"):
        xp.matmul(a, a, out=asarray(np.zeros((2, 2), dtype="float32")))


def test_an_operator_in_place_keeps_the_array() -> None:
    x = y = device(1.0, 2.0)
    x *= 2.0
    assert x is y
    assert y.tolist() == [2.0, 4.0]


def test_a_copy_has_its_own_memory() -> None:
    x = device(1.0)
    y = copy.deepcopy(x)
    y[...] = 2.0
    assert x.tolist() == [1.0]


def test_a_device_array_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="does not open on a machine without a GPU"):
        pickle.dumps(device(1.0))


def test_the_transform_of_float32_stays_in_single_precision() -> None:
    assert fake_device.fft.fft2(asarray(np.ones((2, 2), dtype="float32"))).real.dtype == "float32"


# What CuPy does beside multiplying


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
        (lambda: ones(3, 9)[:, :4] @ ones(4, 3), []),
        (lambda: ones(2, 5, 4)[:, :3] @ ones(2, 4, 3), ["a factor (2, 3, 4) of"]),
    ],
)
def test_products_that_copy_are_noted(multiply, expected) -> None:
    with count() as counted:
        multiply()
    assert len(counted.copies) == len(expected)
    for note, words in zip(counted.copies, expected, strict=True):
        assert note.startswith(words)


def test_memory_has_a_limit() -> None:
    x = ones(8)
    with fake_device.limit(64):
        x + x
        with pytest.raises(MemoryError, match="Out of memory allocating 128 bytes"):
            xp.concatenate([x, x, x, x])
    xp.concatenate([x, x, x, x])


def test_what_was_fed_is_gone_with_the_next_batch() -> None:
    feed = fake_device.FakeFeed()
    (first,) = feed(np.zeros(2))
    (second, none) = feed(np.ones(2), None)
    assert none is None
    assert first.tolist() == [99.0, 99.0]
    assert second.tolist() == [1.0, 1.0]
