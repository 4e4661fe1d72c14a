import numpy as np

from npformer.core import Padding


def test_rows_are_grouped_by_length_and_empty_ones_left_out():
    mask = np.arange(4) < np.array([4, 2, 0, 2, 1])[:, None]
    groups = [(length, rows.tolist()) for length, rows in Padding(mask).rows_of_length()]
    assert groups == [(1, [4]), (2, [1, 3]), (4, [0])]


def test_padding_alone_has_no_groups():
    assert Padding(np.zeros((3, 4), dtype=bool)).rows_of_length() == []


def test_rows_are_looked_for_once():
    padding = Padding(np.ones((3, 4), dtype=bool))
    assert padding.rows_of_length() is padding.rows_of_length()
