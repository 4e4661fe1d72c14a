"""What is wrong with a gradient, in words."""

import numpy as np
import pytest

from npformer.learn.exercises.diagnosis import fault_of

RIGHT = np.arange(1.0, 7.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("got", "words"),
    [
        (RIGHT.T, "is transposed: its shape is (3, 2); expected (2, 3), the shape of W"),
        (np.stack((RIGHT, RIGHT)), "every row of the batch uses the same W"),
        (RIGHT.reshape(1, 3, 2), "has the right number of entries in the wrong shape"),
        (RIGHT[0], "is summed over too many axes"),
    ],
)
def test_a_wrong_shape_is_explained_by_that_of_the_parameter(got, words):
    assert words in fault_of("dW", got, RIGHT)


def test_wrong_rows_are_named():
    wrong = RIGHT.copy()
    wrong[1] += 10.0
    assert "right except for the entries [1] of its first axis" in fault_of("dW", wrong, RIGHT)
