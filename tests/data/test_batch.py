"""Batch: its samples, its lengths, and what is cut of it."""

import numpy as np
import pytest

from npformer.core import Layer, TwoInputLayer
from npformer.core.inputs import inputs_of_arrays as inputs_of_layer
from npformer.models.batch import Batch
from tests.data.test_lengths import samples

A, B = 3, 4  # features of two inputs


def inputs_of_arrays(x, mask=None, types=None):
    """Return the inputs of a layer with as many inputs as x."""
    return inputs_of_layer(TwoInputLayer() if isinstance(x, tuple) else Layer(), x, mask, types)


def pairs(n=5, seed=0):
    """Return a batch with two inputs: of 7 tokens, at most 4 of them kept, and of 9 and 6."""
    rng = np.random.default_rng(seed)
    masks = tuple(
        np.arange(whole) < rng.permutation(np.r_[most, rng.integers(1, most + 1, n - 1)])[:, None]
        for whole, most in ((7, 4), (9, 6))
    )
    x = rng.normal(size=(n, 7, A)), rng.normal(size=(n, 9, B))
    return inputs_of_arrays(x, masks, (rng.integers(0, 2, (n, 7)), None))


def test_lengths_reach_the_last_token_that_is_kept():
    mask = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 0]], dtype=bool)
    (inputs,) = inputs_of_arrays(np.zeros((4, 4, 2)), mask)
    np.testing.assert_array_equal(inputs.lengths(), [3, 1, 4, 2])
    (unpadded,) = inputs_of_arrays(np.zeros((4, 4, 2)))
    np.testing.assert_array_equal(unpadded.lengths(), [4] * 4)


def test_only_columns_of_padding_are_cut():
    x, y, mask = samples(per_token=True)
    mask[:, 6:] = False
    (inputs,) = inputs_of_arrays(x, mask, x % 2)
    batch = Batch((inputs,), y, y + 0.5, targets_of=0).cut()
    (found,) = batch.inputs
    for array, whole in ((found.x, x), (found.types, x % 2), (found.padding.mask, mask)):
        np.testing.assert_array_equal(array, whole[:, :6])
    np.testing.assert_array_equal(batch.y, y[:, :6])
    np.testing.assert_array_equal(batch.weights, y[:, :6] + 0.5)
    assert Batch((inputs,), y[:, 0]).cut().y.shape == (41,)
    assert Batch((inputs,), y, targets_of=0).cut(at_least=8).inputs[0].length == 8


@pytest.mark.parametrize(("at_least", "lengths"), [(1, (4, 6)), (5, (5, 6)), ((2, 8), (4, 8))])
def test_each_input_is_cut_to_its_own_length(at_least, lengths):
    inputs = pairs()
    batch = Batch(inputs, np.zeros((5, 9)), targets_of=1).cut(at_least)
    assert tuple(each.length for each in batch.inputs) == lengths
    assert batch.y.shape == (5, lengths[1])
    for found, whole in zip(batch.inputs, inputs, strict=True):
        np.testing.assert_array_equal(found.x, whole.x[:, : found.length])
        np.testing.assert_array_equal(found.lengths(), whole.lengths())


def test_an_input_without_padding_is_not_cut():
    first, second = pairs()
    (second,) = inputs_of_arrays(second.x)
    batch = Batch((first, second)).cut()
    assert [each.length for each in batch.inputs] == [4, 9]
    np.testing.assert_array_equal(batch.lengths()[:, 1], [9] * 5)
    assert Batch((second,)).cut().inputs[0] is second


def test_rows_are_those_of_all_inputs_and_targets():
    batch, rows = Batch(pairs(), np.arange(5), np.arange(5.0), np.arange(5) > 1), np.array([3, 1])
    some = batch.select(rows)
    assert len(some) == 2
    for found, whole in zip(some.inputs, batch.inputs, strict=True):
        np.testing.assert_array_equal(found.x, whole.x[rows])
        np.testing.assert_array_equal(found.padding.mask, whole.padding.mask[rows])
    np.testing.assert_array_equal(some.inputs[0].types, batch.inputs[0].types[rows])
    for name in ("y", "weights", "counts"):
        np.testing.assert_array_equal(getattr(some, name), getattr(batch, name)[rows])
