import numpy as np
import pytest

from npformer import functional as F


def test_looks_up_a_row_for_each_id(rng):
    table, ids = rng.normal(size=(5, 3)), np.array([[4, 0], [2, 2]])
    y, _ = F.embedding(ids, table)
    for place in np.ndindex(2, 2):
        np.testing.assert_array_equal(y[place], table[ids[place]])


def test_a_row_looked_up_n_times_gets_the_sum_of_n_gradients(rng):
    ids, dy = np.array([[1, 3, 1], [1, 0, 3]]), rng.normal(size=(2, 3, 4))
    _, cache = F.embedding(ids, rng.normal(size=(5, 4)))

    dtable = F.embedding_backward(dy, cache)

    np.testing.assert_allclose(dtable[1], dy[0, 0] + dy[0, 2] + dy[1, 0], rtol=1e-14)
    np.testing.assert_allclose(dtable[3], dy[0, 1] + dy[1, 2], rtol=1e-14)
    np.testing.assert_array_equal(dtable[0], dy[1, 1])
    np.testing.assert_array_equal(dtable[[2, 4]], 0.0)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_any_whole_number_is_an_id(rng, dtype):
    table, ids = rng.normal(size=(5, 4)), np.array([1, 4, 1])
    y, cache = F.embedding(ids.astype(dtype), table)
    np.testing.assert_array_equal(y, table[ids])
    np.testing.assert_array_equal(F.embedding_backward(y, cache)[1], 2 * table[1])


def test_the_result_is_no_view_of_the_table(rng):
    table = rng.normal(size=(5, 4))
    y, _ = F.embedding(np.array([0, 1]), table)
    assert not np.shares_memory(y, table)
