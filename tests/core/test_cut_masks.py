"""Where the entries of a part's masks are in those of the batch, for one input and for two."""

import math

import numpy as np
import pytest

from npformer.core.cut_masks import Cut, corner, split_by_sample
from npformer.core.generators import part_generator
from npformer.functional.dropout import draw_kept

KEY, TOTAL = 1234, 7
A, B = (6, 11), (4, 9)
"""Tokens of two inputs, in the part and in the batch."""

BOTH = Cut((A[0], B[0]), (A[1], B[1]))


@pytest.mark.parametrize(
    ("cut", "shape", "whole"),
    [
        (Cut((6,), (11,)), (3, 6, 5), (3, 11, 5)),
        (Cut((6,), (11,)), (3, 2, 6, 6), (3, 2, 11, 11)),
        (BOTH, (3, 6, 5), (3, 11, 5)),
        (BOTH, (3, 4, 5), (3, 9, 5)),
        (BOTH, (3, 2, 6, 4), (3, 2, 11, 9)),
        (BOTH, (3, 2, 4, 6), (3, 2, 9, 11)),
        (BOTH, (6, 6, 4), (6, 11, 9)),  # six samples: their axis is no axis of tokens
        (Cut((6, 9), (11, 9)), (3, 6, 9), (3, 11, 9)),  # padding of the first alone is cut
        (Cut((6, 6), (11, 11)), (3, 6, 6), (3, 11, 11)),  # of both alike
        (BOTH, (3, 5, 8), (3, 5, 8)),
    ],
)
def test_a_shape_is_undone_axis_by_axis(cut, shape, whole):
    assert cut.undone(shape) == whole


@pytest.mark.parametrize(
    ("shape", "n_samples", "found"),
    [((6, 5), 3, (3, 2, 5)), ((3, 4, 5), 3, (3, 1, 4, 5)), ((7, 5), 3, (1, 7, 5)), ((), 3, (1, 1))],
)
def test_rows_belong_to_samples_if_there_are_as_many_for_each(shape, n_samples, found):
    assert split_by_sample(shape, n_samples) == found


def test_a_corner_has_the_first_entries_along_each_axis():
    x = np.arange(60).reshape(3, 4, 5)
    np.testing.assert_array_equal(corner(x, (3, 2, 4)), x[:, :2, :4])
    assert corner(x, x.shape) is x


@pytest.mark.parametrize("skipped", [1 << 13, 8], ids=["few bytes", "skipped"])
@pytest.mark.parametrize("lengths", [(6, 4), (6, 9), (11, 4), (6, 6)], ids=str)
def test_a_part_of_two_inputs_has_the_masks_of_the_tokens_left(lengths, skipped, monkeypatch):
    monkeypatch.setattr("npformer.core.generator_of_part.SKIPPED", skipped)
    wholes = (11, 11) if lengths == (6, 6) else (A[1], B[1])
    cut = Cut(lengths, wholes)
    (a, b), (whole_a, whole_b) = lengths, wholes
    shapes = {
        (a, 5): (whole_a, 5),
        (b, 5): (whole_b, 5),
        (2, a, b): (2, whole_a, whole_b),  # weights of cross-attention
        (2, b, a): (2, whole_b, whole_a),
        (2, a, a): (2, whole_a, whole_a),
        (5,): (5,),
    }
    batch_generator = part_generator(KEY, 0, TOTAL)
    masks = [draw_kept((TOTAL, *shape), 0.4, batch_generator) for shape in shapes.values()]
    for first, n in ((0, 3), (3, 1), (4, 3)):
        generator = part_generator(KEY, first, n, cut)
        for shape, mask in zip(shapes, masks, strict=True):
            cut_mask = draw_kept((n, *shape), 0.4, generator)
            np.testing.assert_array_equal(
                cut_mask, mask[(slice(first, first + n), *map(slice, shape))], err_msg=str(shape)
            )
            assert cut_mask.size == n * math.prod(shape)
