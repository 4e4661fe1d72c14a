import numpy as np

from npformer.mixers.padding import rows_of_length


def test_rows_are_grouped_by_length_and_empty_ones_left_out():
    mask = np.arange(4) < np.array([4, 2, 0, 2, 1])[:, None]
    groups = {length: rows.tolist() for length, rows in rows_of_length(mask)}
    assert groups == {1: [4], 2: [1, 3], 4: [0]}


def test_padding_alone_has_no_groups():
    assert rows_of_length(np.zeros((3, 4), dtype=bool)) == []
