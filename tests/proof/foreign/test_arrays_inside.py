"""Arrays inside objects are found, read and written by their paths."""

import numpy as np
import pytest

from npformer.proof.foreign.arrays_inside import (
    all_paths,
    arrays_inside,
    convert_to_float64,
    read,
    steps_of,
    write,
)


class Holder:
    def __init__(self, **values):
        for name, value in values.items():
            setattr(self, name, value)


class Slotted:
    __slots__ = ("W",)

    def __init__(self):
        self.W = np.ones(2)


@pytest.mark.parametrize(
    ("root", "path"),
    [
        (Holder(W=np.ones(2)), "W"),
        (Holder(layers=[Holder(W=np.ones(2))]), "layers[0].W"),
        (Holder(grads={"W": np.ones(2)}), "grads['W']"),
        (Holder(cache=(np.ones(2),)), "cache[0]"),
        (Holder(deep={"a": [Holder(b=np.ones(2))]}), "deep['a'][0].b"),
        (Slotted(), "W"),
        ([np.ones(2)], "[0]"),
    ],
)
def test_an_array_is_found_where_its_path_says(root, path):
    assert list(arrays_inside(root)) == [path]
    assert read(root, path) is arrays_inside(root)[path]


def test_whole_numbers_are_no_arrays_of_floats():
    assert arrays_inside(Holder(ids=np.arange(3))) == {}


def test_an_object_that_holds_itself_is_walked_once():
    holder = Holder(W=np.ones(2))
    holder.parent = holder
    assert list(arrays_inside(holder)) == ["W"]


def test_a_tied_array_has_one_path_among_its_paths():
    table = np.ones(2)
    holder = Holder(embedding=table, output=table)
    assert list(arrays_inside(holder)) == ["embedding"]
    assert list(all_paths(holder)) == ["embedding", "output"]


def test_tied_arrays_stay_tied_in_float64():
    table = np.ones(2, dtype=np.float32)
    holder = Holder(embedding=table, output=table)
    assert convert_to_float64(holder) == ["embedding", "output"]
    assert holder.embedding is holder.output
    assert holder.output.dtype == np.float64


@pytest.mark.parametrize("path", ["layers[0].W", "grads['W']", 'grads["W"]', "params[-1]"])
def test_what_is_written_at_a_path_is_read_there(path):
    root = Holder(layers=[Holder(W=0)], grads={}, params=[0, 0])
    write(root, path, 3.0)
    assert read(root, path) == 3.0


@pytest.mark.parametrize("path", ["d W", "W[", "W.[0]x y", "W[key]"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ValueError, match="is not a path; expected one such as 'W'"):
        steps_of(path)
