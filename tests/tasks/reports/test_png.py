"""Pictures of matrices: colours, and matrices that are too large for a picture."""

import numpy as np
import pytest

from npformer.tasks.reports.png import LEVELS, SCALES, data_address, palette, shrink
from tests.tasks.reports.conftest import pixels


@pytest.mark.parametrize("scale", SCALES)
def test_a_scale_goes_from_its_first_colour_to_its_last(scale):
    colours = np.frombuffer(palette(scale), "uint8").reshape(-1, 3)
    assert len(colours) == LEVELS + 2
    assert tuple(colours[1]) == SCALES[scale][0]
    assert tuple(colours[LEVELS]) == SCALES[scale][-1]
    assert len({tuple(colour) for colour in colours}) == LEVELS + 2


def test_entries_get_the_colours_of_their_values():
    values = np.array([[0.0, 1.0, 0.5], [np.nan, np.inf, 2.0]])
    mask = np.array([[True, True, True], [True, True, False]])
    index, _ = pixels(data_address(values, mask, "weights", 0.0, 1.0))
    np.testing.assert_array_equal(index, [[1, LEVELS, 33], [LEVELS + 1, LEVELS + 1, 0]])
    flat, _ = pixels(data_address(np.zeros((2, 2)), np.ones((2, 2), bool), "weights", 0.0, 0.0))
    assert (flat == 1).all()


@pytest.mark.parametrize(("length", "side", "expected"), [(8, 8, 8), (9, 8, 5), (512, 128, 128)])
def test_a_block_is_its_entry_of_the_largest_magnitude(rng, length, side, expected):
    matrix = rng.normal(size=(length, length))
    mask = np.ones((length, length), bool)
    mask[:, -3:] = False
    small, known = shrink(matrix, mask, side)
    assert small.shape == known.shape == (expected, expected)
    size = -(-length // side)
    for i in range(0, expected, 7):
        for j in range(0, expected, 7):
            rows, columns = slice(i * size, (i + 1) * size), slice(j * size, (j + 1) * size)
            block, of_block = matrix[rows, columns], mask[rows, columns]
            assert known[i, j] == of_block.any()
            if of_block.any():
                values = block[of_block]
                assert small[i, j] == values[np.abs(values).argmax()]


def test_nan_is_not_lost_when_a_matrix_shrinks():
    matrix = np.zeros((16, 16))
    matrix[3, 7] = np.nan
    small, _ = shrink(matrix, np.ones((16, 16), bool), 4)
    assert np.isnan(small).sum() == 1
