"""fit and evaluate with token types."""

import numpy as np
import pytest

import npformer as nf
from tests.training.common import fit


@pytest.fixture
def pairs(rng):
    """Ids, labels, a mask and types: the label is whether type 1 begins after the second token."""
    ids = rng.integers(0, 7, (20, 6))
    begin = rng.integers(1, 5, 20)
    types = (np.arange(6) >= begin[:, None]).astype("int64")
    mask = np.arange(6) < rng.integers(5, 7, 20)[:, None]
    return ids, (begin > 2).astype("int64"), mask, types


def test_a_mask_may_be_none(small_model, pairs):
    ids, y, _, types = pairs
    one, other = small_model(n_token_types=2), small_model(n_token_types=2)
    fit(one, (ids, y, None, types))
    assert nf.evaluate(one, (ids, y, None, types)).labels == 20
    fit(other, (ids, y, np.ones((20, 6), bool), types), batches="shuffled")
    for name, value in other.parameters().items():
        np.testing.assert_allclose(one.parameters()[name], value, atol=1e-8, err_msg=name)
    fit(small_model(), (ids, y, None, None))


@pytest.mark.parametrize(
    ("types", "error", "message"),
    [
        (np.zeros((20, 5), "int64"), ValueError, r"in data, types has shape \(20, 5\); expected"),
        (np.zeros((19, 6), "int64"), ValueError, "types in data has 19 samples and x has 20"),
        (np.full((20, 6), 2), ValueError, "in data, types holds 2; expected whole numbers from 0"),
        (np.zeros((20, 6)), TypeError, "in data, types has dtype float64; expected whole numbers"),
        ([[0] * 6] * 20, TypeError, "types in data is a list; expected a NumPy array"),
    ],
)
def test_wrong_types_are_refused_in_words(small_model, pairs, types, error, message):
    model = small_model(n_token_types=2)
    for use in (fit, nf.evaluate):
        with pytest.raises(error, match=message):
            use(model, (*pairs[:3], types))


def test_types_that_do_not_fit_are_refused(small_model, pairs):
    with pytest.raises(ValueError, match="types is given and the model has no token types"):
        fit(small_model(), pairs)
    with pytest.raises(TypeError, match=r"data is a tuple of 5; expected .*\(x, y, mask, types\)"):
        fit(small_model(), (*pairs, None))


def test_a_loss_that_is_not_finite_is_traced_with_the_types(small_model, pairs):
    model = small_model(n_token_types=2)
    model.parameters()["embed.types.weight"][1] = np.inf
    with pytest.raises(nf.NonFiniteLossError, match=r"parameter embed\.types\.weight"):
        fit(model, pairs)
