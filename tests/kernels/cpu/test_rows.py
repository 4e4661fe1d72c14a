"""Pieces: every row once, none too large."""

import numpy as np
import pytest

from npformer.engine.cpu import rows


@pytest.mark.parametrize("width", [1, 3, 64, 257, 4000])
def test_pieces_cover_every_row_once(chunk_size, width):
    for n in (0, 1, 2, 13, 1009):
        row_counts = np.zeros(n, dtype=int)
        for chunk in rows.chunks(n, width):
            row_counts[chunk] += 1
            assert chunk.start < chunk.stop <= n
            assert (chunk.stop - chunk.start) * width <= max(rows.CHUNK, width)
        np.testing.assert_array_equal(row_counts, 1)


def test_a_small_piece_makes_many(monkeypatch):
    monkeypatch.setattr(rows, "CHUNK", 40)
    assert len(list(rows.chunks(101, 3))) == 8
    assert len(list(rows.chunks(101, 64))) == 101


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_constant_vectors_are_read_only(dtype):
    for make, value in ((rows.ones, 1.0), (rows.zeros, 0.0)):
        vector = make(7, np.dtype(dtype))
        assert vector.dtype == dtype
        np.testing.assert_array_equal(vector, np.full(7, value))
        with pytest.raises(ValueError, match="read-only"):
            vector += 1.0


@pytest.mark.parametrize("shape", [(1, 1), (1, 257), (1009, 3), (0, 5)])
def test_column_sums(shape, rng):
    x = rng.normal(size=shape)
    np.testing.assert_allclose(rows.column_sums(x), x.sum(axis=0), rtol=0, atol=1e-13 * len(x))


def test_the_exponential_is_that_of_numpy_in_float64():
    x = np.linspace(-80.0, 80.0, 1001)
    np.testing.assert_allclose(rows.EXP(rows.UNIT * x), np.exp(x), rtol=1e-13)


def test_the_exponential_is_that_of_numpy_in_float32():
    x = np.linspace(-80.0, 80.0, 1001)
    single = rows.EXP(np.float32(rows.UNIT) * x.astype("float32"))
    np.testing.assert_allclose(single, np.exp(x), rtol=2e-5)
    assert single.dtype == "float32"
