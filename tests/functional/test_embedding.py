"""Rows of a table: one for each id, and sums of several."""

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


def test_is_a_linear_map_of_how_much_each_row_counts(rng):
    table, ids, weights = rng.normal(size=(5, 3)), np.array([[1, 4, 1], [0, 2, 2]]), np.ones((2, 3))
    counts = np.array([[0, 2, 0, 0, 1], [1, 0, 2, 0, 0]])
    y, cache = F.bag(ids, weights, table)
    np.testing.assert_allclose(y, counts @ table)
    dweights, dtable = F.bag_backward(y, cache)
    np.testing.assert_allclose(dtable, counts.T @ y)
    np.testing.assert_allclose(dweights[0], table[ids[0]] @ y[0])


def test_the_weight_0_stands_for_nothing(rng):
    table, ids = rng.normal(size=(5, 3)), np.array([[1, 4], [2, 0]])
    y, cache = F.bag(ids, np.array([[0.5, 2.0], [1.0, 0.0]]), table)
    np.testing.assert_allclose(y, [0.5 * table[1] + 2.0 * table[4], table[2]])
    np.testing.assert_array_equal(F.bag_backward(y, cache)[1][0], 0.0)


def test_says_what_does_not_fit(rng):
    table = rng.normal(size=(5, 3))
    with pytest.raises(ValueError, match=r"ids holds 5; .* the table has 5 rows"):
        F.bag(np.array([[5]]), np.ones((1, 1)), table)
    with pytest.raises(ValueError, match=r"weights has shape \(1, 2\).*One for each id"):
        F.bag(np.array([[1]]), np.ones((1, 2)), table)
    with pytest.raises(ValueError, match="ids has shape"):
        F.bag(np.array([1]), np.ones(1), table)
