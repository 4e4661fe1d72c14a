"""Rows of a table: one for each id."""

import numpy as np
import pytest

from npformer import functional as F


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_looks_up_a_row_for_each_id_of_any_whole_number(rng, dtype):
    table, ids = rng.normal(size=(5, 4)), np.array([[1, 4], [1, 0]])
    y, cache = F.embedding(ids.astype(dtype), table)
    np.testing.assert_array_equal(y, table[ids])
    np.testing.assert_array_equal(F.embedding_backward(y, cache)[1], 2 * table[1])


def test_the_result_is_no_view_of_the_table(rng):
    table = rng.normal(size=(5, 4))
    assert not np.shares_memory(F.embedding(np.array([0, 1]), table)[0], table)
