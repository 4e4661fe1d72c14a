import numpy as np
import pytest

import npformer as nf
from npformer.engine import EngineContext, layers
from npformer.engine.cpu.embedding import embedding, embedding_backward
from tests.kernels.cpu import helpers
from tests.kernels.cpu.helpers import assert_parity


@pytest.mark.parametrize("vocab_size", [1, 2, 1009])
@pytest.mark.parametrize("shape", [(), (1,), (5, 7), (2, 3, 4)])
def test_of_any_shape(shape, vocab_size):
    for d in (1, 3, 64):
        assert_parity(helpers.embedding(shape, vocab_size, d))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "uint64"])
def test_ids_of_any_dtype(dtype):
    assert_parity(helpers.embedding((5, 7), 11, 3, dtype))


def test_ids_of_any_layout(rng):
    ids = rng.integers(0, 5, (6, 8))[::2, ::-1]
    table, dy = rng.normal(size=(5, 3)), rng.normal(size=(3, 8, 3))
    ids.flags.writeable = table.flags.writeable = False
    y, cache = embedding(ids, table, context=EngineContext())
    np.testing.assert_array_equal(y, table[ids])
    by_hand = np.zeros((5, 3))
    np.add.at(by_hand, ids, dy)
    np.testing.assert_allclose(embedding_backward(dy, cache), by_hand, rtol=0, atol=1e-14)


def test_no_ids_at_all():
    y, cache = embedding(np.zeros((0, 4), int), np.ones((5, 3)), context=EngineContext())
    assert y.shape == (0, 4, 3)
    np.testing.assert_array_equal(embedding_backward(y, cache), np.zeros((5, 3)))


def test_the_gradient_is_an_array_of_its_own(rng):
    ids = np.arange(5)
    dy = rng.normal(size=(5, 3))
    _, cache = embedding(ids, np.ones((5, 3)), context=EngineContext())
    dtable = embedding_backward(dy, cache)
    assert type(dtable) is np.ndarray
    assert not np.shares_memory(dtable, dy)
    np.testing.assert_array_equal(dtable, dy)


def test_an_id_beyond_the_table_is_refused():
    with pytest.raises(ValueError, match="ids holds 5; expected whole numbers from 0 to 4"):
        embedding(np.array([0, 5]), np.ones((5, 3)), context=EngineContext())


@pytest.mark.parametrize("few", [0, 1 << 30], ids=["by a product", "row by row"])
@pytest.mark.parametrize("scale", [True, False])
def test_a_layer_adds_few_rows_one_by_one(rng, monkeypatch, few, scale):
    assert 0 < layers.FEW < 1 << 30
    monkeypatch.setattr(layers, "FEW", few)
    layer = nf.layers.Embedding(11, 3, scale=scale, seed=0, dtype="float64")
    ids, dy = rng.integers(0, 11, (5, 7)), rng.normal(size=(5, 7, 3))
    found, plain = nf.Gradients(layer), nf.Gradients(layer)
    for _ in range(2):  # what is there stays
        for of, gradients in ((nf.fast(layer), found), (layer, plain)):
            of.backward(dy, of.forward(ids, nf.Context())[1], gradients)
    np.testing.assert_allclose(found.flat, plain.flat, rtol=0, atol=1e-13)
    layer.weight.trainable = False
    twin = nf.fast(layer)
    twin.backward(dy, twin.forward(ids, nf.Context())[1], nf.Gradients(layer))
