import numpy as np

from npformer.core import Padding


def rows_of_length(mask):
    return {length: rows.tolist() for length, rows in Padding(mask).rows_of_length()}


def test_rows_are_grouped_by_length_and_empty_ones_left_out():
    mask = np.arange(4) < np.array([4, 2, 0, 2, 1])[:, None]
    assert rows_of_length(mask) == {1: [4], 2: [1, 3], 4: [0]}
    assert list(rows_of_length(mask)) == [1, 2, 4]


def test_padding_alone_has_no_groups():
    assert rows_of_length(np.zeros((3, 4), dtype=bool)) == {}
    assert Padding(np.zeros((3, 4), dtype=bool)).rows_of_length() == []


def test_rows_are_looked_for_once():
    padding = Padding(np.ones((3, 4), dtype=bool))
    assert padding.rows_of_length() is padding.rows_of_length()
