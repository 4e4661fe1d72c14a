"""Batch: selecting samples, lengths, and cutting padding."""

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
    """Return two inputs: of 7 tokens, at most 4 without padding, and of 9 tokens, at most 6."""
    rng = np.random.default_rng(seed)
    first_mask = random_mask(rng, n, length=7, longest=4)
    second_mask = random_mask(rng, n, length=9, longest=6)
    x = rng.normal(size=(n, 7, A)), rng.normal(size=(n, 9, B))
    types = rng.integers(0, 2, (n, 7))
    return inputs_of_arrays(x, (first_mask, second_mask), (types, None))


def random_mask(rng, n, length, longest):
    """Return a mask of n random lengths, of which one is `longest` and none is larger."""
    lengths = rng.permutation(np.r_[longest, rng.integers(1, longest + 1, n - 1)])
    return np.arange(length) < lengths[:, None]


def test_lengths_reach_the_last_token_that_is_not_padding():
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
    (cut_inputs,) = batch.inputs
    np.testing.assert_array_equal(cut_inputs.x, x[:, :6])
    np.testing.assert_array_equal(cut_inputs.types, x[:, :6] % 2)
    np.testing.assert_array_equal(cut_inputs.padding.mask, mask[:, :6])
    np.testing.assert_array_equal(batch.y, y[:, :6])
    np.testing.assert_array_equal(batch.weights, y[:, :6] + 0.5)
    assert Batch((inputs,), y[:, 0]).cut().y.shape == (41,)
    assert Batch((inputs,), y, targets_of=0).cut(at_least=8).inputs[0].length == 8


@pytest.mark.parametrize(("at_least", "lengths"), [(1, (4, 6)), (5, (5, 6)), ((2, 8), (4, 8))])
def test_each_input_is_cut_to_its_own_length(at_least, lengths):
    inputs = pairs()
    batch = Batch(inputs, np.zeros((5, 9)), targets_of=1).cut(at_least)
    assert tuple(sequences.length for sequences in batch.inputs) == lengths
    assert batch.y.shape == (5, lengths[1])
    for cut_input, full_input in zip(batch.inputs, inputs, strict=True):
        np.testing.assert_array_equal(cut_input.x, full_input.x[:, : cut_input.length])
        np.testing.assert_array_equal(cut_input.lengths(), full_input.lengths())


def test_an_input_without_padding_is_not_cut():
    first, second = pairs()
    (second,) = inputs_of_arrays(second.x)
    batch = Batch((first, second)).cut()
    assert [sequences.length for sequences in batch.inputs] == [4, 9]
    np.testing.assert_array_equal(batch.lengths()[:, 1], [9] * 5)
    assert Batch((second,)).cut().inputs[0] is second


@pytest.fixture
def batch():
    return Batch(pairs(), y=np.arange(5), weights=np.arange(5.0), counts=np.arange(5) > 1)


def test_selected_rows_are_taken_from_all_inputs(batch):
    rows = np.array([3, 1])
    selected = batch.select(rows)
    assert len(selected) == 2
    for selected_input, full_input in zip(selected.inputs, batch.inputs, strict=True):
        np.testing.assert_array_equal(selected_input.x, full_input.x[rows])
        np.testing.assert_array_equal(selected_input.padding.mask, full_input.padding.mask[rows])
    np.testing.assert_array_equal(selected.inputs[0].types, batch.inputs[0].types[rows])


@pytest.mark.parametrize("name", ["y", "weights", "counts"])
def test_selected_rows_are_taken_from_targets(batch, name):
    rows = np.array([3, 1])
    np.testing.assert_array_equal(getattr(batch.select(rows), name), getattr(batch, name)[rows])
