"""What every pair that averages values by weights keeps to, wherever its scores come from."""

import numpy as np
import pytest

from npformer import functional as F
from tests.pairs import Example, pairs

VALUE = {
    "average": 1,
    "scaled_dot_product_attention": 2,
    "blockwise_attention": 2,
    "dense_synthesizer": 1,
    "factorized_dense_synthesizer": 1,
    "random_synthesizer": 0,
    "factorized_random_synthesizer": 0,
}
"""Which argument is averaged."""

BATCH, HEADS, LENGTH = 3, 2, 4
WHOLE_SHORT_AND_EMPTY = np.arange(LENGTH) < np.array([LENGTH, 2, 0])[:, None, None, None]
INPUTS = pairs(Example(batch=BATCH, n_heads=HEADS, length=LENGTH, keys=LENGTH), "float64")


@pytest.fixture(params=VALUE)
def name(request):
    return request.param


def average(name, inputs=None, value=None, **options):
    """Call a function, with another value if one is given; blocks have two queries."""
    inputs = list(INPUTS[name][0] if inputs is None else inputs)
    if value is not None:
        inputs[VALUE[name]] = value
    if name == "blockwise_attention":
        options["block"] = 2
    return getattr(F, name)(*inputs, **options)


def weights_of(name, **options):
    """Return the weights: what they make of the identity."""
    return average(name, value=np.tile(np.eye(LENGTH), (BATCH, HEADS, 1, 1)), **options)[0]


def test_rows_of_weights_sum_to_1(name):
    weights = weights_of(name)
    assert (weights > 0.0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0)


def test_columns_of_weights_do_not_sum_to_1(name):
    assert np.abs(weights_of(name).sum(axis=-2) - 1.0).max() > 0.1


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "mask",
    [None, np.array([False, True, True, True]), WHOLE_SHORT_AND_EMPTY],
    ids=["all", "a key", "padding"],
)
def test_only_what_the_mask_and_the_triangle_allow_has_weight(name, mask, causal):
    weights = weights_of(name, mask=mask, causal=causal)
    allowed = np.tri(LENGTH, dtype=bool) if causal else np.ones((LENGTH, LENGTH), dtype=bool)
    if mask is not None:
        allowed = allowed & mask
    np.testing.assert_array_equal(weights > 0.0, np.broadcast_to(allowed, weights.shape))


@pytest.mark.parametrize("mask", [None, WHOLE_SHORT_AND_EMPTY], ids=["full", "padded"])
def test_a_batch_is_its_sequences_one_by_one(name, mask):
    y, _ = average(name, mask=mask)
    for n in range(BATCH):
        one = slice(n, n + 1)
        alone = [x[one] if len(x) == BATCH else x for x in INPUTS[name][0]]
        y_alone, _ = average(name, alone, mask=None if mask is None else mask[one])
        np.testing.assert_allclose(y[one], y_alone, rtol=1e-12)
