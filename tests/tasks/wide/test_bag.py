"""Sums of rows of a table, for sets of ids."""

import numpy as np
import pytest

from npformer.tasks.wide import bag, bag_backward


def test_is_a_linear_map_of_how_much_each_row_counts(rng):
    table = rng.normal(size=(5, 3))
    ids = np.array([[1, 4, 1], [0, 2, 2]])
    weights = np.ones((2, 3))
    counts = np.array([[0, 2, 0, 0, 1], [1, 0, 2, 0, 0]])
    y, cache = bag(ids, weights, table)
    np.testing.assert_allclose(y, counts @ table)
    dweights, dtable = bag_backward(y, cache)
    np.testing.assert_allclose(dtable, counts.T @ y)
    np.testing.assert_allclose(dweights[0], table[ids[0]] @ y[0])


def test_the_weight_0_stands_for_nothing(rng):
    table = rng.normal(size=(5, 3))
    ids = np.array([[1, 4], [2, 0]])
    y, cache = bag(ids, np.array([[0.5, 2.0], [1.0, 0.0]]), table)
    np.testing.assert_allclose(y, [0.5 * table[1] + 2.0 * table[4], table[2]])
    np.testing.assert_array_equal(bag_backward(y, cache)[1][0], 0.0)


def test_says_what_does_not_fit(rng):
    table = rng.normal(size=(5, 3))
    with pytest.raises(ValueError, match=r"ids holds 5; .* the table has 5 rows"):
        bag(np.array([[5]]), np.ones((1, 1)), table)
    with pytest.raises(ValueError, match=r"weights has shape \(1, 2\).*One for each id"):
        bag(np.array([[1]]), np.ones((1, 2)), table)
    with pytest.raises(ValueError, match="ids has shape"):
        bag(np.array([1]), np.ones(1), table)
