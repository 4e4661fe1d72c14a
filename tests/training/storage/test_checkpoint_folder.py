"""The file of a checkpoint: values, and arrays among them, come back as they were."""

import numpy as np
import pytest

import npformer as nf
from npformer.training.storage import checkpoint_folder as folders

EMPTY = dict.fromkeys(folders.SECTIONS)


def written(folder, value):
    folders.write(folder, EMPTY | {"progress": value})
    return folders.read(folder)["progress"]


@pytest.mark.parametrize("dtype", sorted(folders.DTYPES, key=str), ids=str)
def test_arrays_of_each_dtype_keep_their_bits(tmp_path, rng, dtype):
    array = np.frombuffer(rng.bytes(24 * dtype.itemsize), dtype).reshape(4, 6)
    if dtype.kind == "b":
        array = rng.random((4, 6)) < 0.5
    for view in (array, array[::-2, 1:].T, array[:0], array[1, 2, ...]):
        stored = written(tmp_path, {"deep": [view, 1]})["deep"][0]
        assert (stored.dtype, stored.shape) == (view.dtype, view.shape)
        assert stored.tobytes() == view.tobytes()


def test_an_array_of_the_other_byte_order_keeps_its_numbers(tmp_path):
    array = np.arange(5.0)
    stored = written(tmp_path, array.astype(array.dtype.newbyteorder("S")))
    assert stored.dtype == "float64"
    np.testing.assert_array_equal(stored, array)


def test_names_with_dots_are_told_apart(tmp_path):
    one = np.ones(1)
    two = np.zeros(2)
    three = np.full(3, 3.0)
    stored = written(tmp_path, {"a.b": one, "a": {"b": two, "b+": three}})
    np.testing.assert_array_equal(stored["a.b"], one)
    np.testing.assert_array_equal(stored["a"]["b"], two)
    np.testing.assert_array_equal(stored["a"]["b+"], three)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.array([1j]), r"progress.mine.0 has dtype complex128; expected numbers or bool"),
        (np.array(["a"]), "progress.mine.0 has dtype <U1; expected numbers or bool"),
        (np.array([None]), "progress.mine.0 has dtype object; expected numbers or bool"),
        (np.float32(1), r"progress.mine.0 is a float32; expected texts, numbers, .* NumPy arrays"),
        ({1, 2}, r"progress.mine.0 is a set; expected texts, numbers"),
        (len, "progress.mine.0 is a builtin_function_or_method; expected texts"),
    ],
    ids=str,
)
def test_what_a_checkpoint_cannot_hold_is_named(tmp_path, value, words):
    with pytest.raises(TypeError, match=words):
        written(tmp_path, {"mine": [value]})
    assert folders.read(tmp_path) is None


@pytest.mark.parametrize(("name", "words"), [("gone", "'gone'"), ([1], "unhashable type: 'list'")])
def test_a_name_without_its_array_is_damage(tmp_path, name, words):
    folders.write(tmp_path, EMPTY | {"progress": {folders.ARRAY: name}})
    with pytest.raises(nf.CheckpointError, match=f"does not have {words}: was it edited"):
        folders.read(tmp_path)
