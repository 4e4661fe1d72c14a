import math

import numpy as np
import pytest

from npformer import Context
from npformer import functional as F
from npformer.layers import Embedding, Positions, TokenTypes
from tests.passes import both_passes


def test_scaling_multiplies_by_the_root_of_d_model_to_a_variance_of_about_1(either, rng):
    layer = either(Embedding(7, 16, scale=True, seed=0, dtype="float64"))
    ids = np.array([[3, 5]])
    y, _, of_table = both_passes(layer, ids, dy=np.ones((1, 2, 16)))
    np.testing.assert_array_equal(y, 4.0 * layer.weight.value[ids])
    np.testing.assert_array_equal(of_table[[3, 5]], 4.0)
    assert 0.95 < either(Embedding(500, 64, scale=True, seed=0))(np.arange(500)).var() < 1.05


@pytest.mark.parametrize("d_model", [6, 5])
def test_sinusoids_are_the_papers_formula(either, d_model):
    layer = either(Positions(50, d_model, seed=0, dtype="float64"))
    for (_, position, i), entry in np.ndenumerate(layer(np.zeros((1, 50, d_model)))):
        wave = math.cos if i % 2 else math.sin
        assert entry == pytest.approx(wave(position / 10000 ** (i // 2 * 2 / d_model)), abs=1e-13)


def test_sinusoids_are_a_constant():
    positions = Positions(9, 4, "sinusoidal", seed=0)
    assert list(positions.parameters()) == []
    assert list(positions.named_parameters()) == ["table"]


def test_a_learned_table_is_trained():
    positions = Positions(9, 4, "learned", seed=0)
    assert list(positions.parameters()) == ["table"]


@pytest.fixture
def learned_positions(either):
    return either(Positions(9, 4, "learned", seed=0, dtype="float64"))


def test_a_learned_table_is_added_to_every_sequence(learned_positions, rng):
    x = rng.normal(size=(3, 5, 4))
    table = learned_positions.table.value
    expected = np.tile(table[:5], (3, 1, 1))
    np.testing.assert_allclose(learned_positions(x) - x, expected, atol=1e-15)


def test_a_learned_table_sums_the_gradients_of_the_sequences(learned_positions, rng):
    dy = rng.normal(size=(3, 5, 4))
    _, dx, dtable = both_passes(learned_positions, np.zeros((3, 5, 4)), dy=dy)
    np.testing.assert_array_equal(dx, dy)
    np.testing.assert_allclose(dtable[:5], dy.sum(axis=0), rtol=1e-14)
    np.testing.assert_array_equal(dtable[5:], 0.0)


def test_the_vector_of_each_tokens_type_is_added(either, rng):
    layer = either(TokenTypes(3, 4, seed=0, dtype="float64"))
    x = rng.normal(size=(2, 5, 4))
    types = rng.integers(0, 3, (2, 5))
    x_before = x.copy()
    dy = rng.normal(size=(2, 5, 4))
    y, dx, dtable = both_passes(layer, x, Context(types=types), dy)
    np.testing.assert_allclose(y, x + layer.weight.value[types], rtol=1e-14)
    np.testing.assert_array_equal(x, x_before)
    np.testing.assert_array_equal(dx, dy)
    expected = F.embedding_backward(dy, F.embedding(types, layer.weight.value)[1])
    np.testing.assert_allclose(dtable, expected, rtol=0, atol=1e-14)


def test_without_types_all_tokens_are_of_the_first(either, rng):
    layer = either(TokenTypes(3, 4, seed=0, dtype="float32"))
    x = rng.normal(size=(2, 5, 4))
    np.testing.assert_array_equal(layer(x), x + layer.weight.value[0])


def test_types_keep_the_wider_precision(either, rng):
    layer = either(TokenTypes(3, 4, seed=0, dtype="float32"))
    assert layer(rng.normal(size=(2, 5, 4))).dtype == "float64"
