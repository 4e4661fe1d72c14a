"""Losses as objects, as a model hands them a user's labels."""

import numpy as np
import pytest

import npformer as nf


@pytest.fixture
def tokens(small_model, token_batch):
    """A model that labels each token, with ids (8, 6), labels and a mask."""
    ids, _, mask = token_batch
    return small_model(pooling="none"), ids, np.arange(48).reshape(8, 6) % 3, mask


@pytest.mark.parametrize("dtype", ["float32", "float64", "bool"])
@pytest.mark.parametrize("masked", [True, False])
def test_labels_of_tokens_that_are_no_whole_numbers_are_refused(tokens, dtype, masked):
    model, ids, labels, mask = tokens
    given = (ids, labels.astype(dtype), mask if masked else None)
    for use in (model.loss_and_gradients, lambda *some: nf.fit(model, some, progress=False)):
        with pytest.raises(TypeError, match=f"y has dtype {dtype}; expected whole numbers"):
            use(*given)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_labels_of_padding_count_nowhere_whatever_they_are(tokens, dtype):
    model, ids, labels, mask = tokens
    loss, gradients = model.loss_and_gradients(ids, np.where(mask, labels, -1), mask)
    other = np.where(mask, labels, 99).astype(dtype)
    kept = other.copy()
    again, gradients_again = model.loss_and_gradients(ids, other, mask)
    assert again == loss
    np.testing.assert_array_equal(gradients_again.flat, gradients.flat)
    np.testing.assert_array_equal(other, kept)
    found = nf.evaluate(model, (ids, other, mask))
    assert (found.labels, found.loss) == (mask.sum(), pytest.approx(loss, rel=1e-12))
