"""Predictions: some tokens at a time, and batches shared by threads."""

from unittest.mock import Mock

import numpy as np
import pytest

from npformer import BatchTooLargeError
from npformer.engine import team as engine_team
from npformer.engine import worker_counts
from npformer.models import SequenceModel
from npformer.models.trainable import predictions

pytestmark = pytest.mark.usefixtures("many_cores")


@pytest.fixture
def ids(rng):
    return rng.integers(0, 7, (8, 6))


@pytest.fixture
def shares(monkeypatch):
    """Let every prediction be worth threads, and note how many share one."""
    monkeypatch.setattr(worker_counts, "THREAD_SECONDS", 1e-9)
    monkeypatch.setattr(worker_counts, "THREAD_TOKENS", 1)
    side_by_side = Mock(wraps=predictions.side_by_side)
    monkeypatch.setattr(predictions, "side_by_side", side_by_side)
    return lambda: len(side_by_side.call_args.args[1])


@pytest.mark.parametrize(
    ("tokens", "expected_sizes"), [(1, [1] * 8), (18, [3, 3, 2]), (48, [8]), (999, [8])]
)
def test_tokens_predicted_at_a_time(
    small_model, token_batch, monkeypatch, sizes, tokens, expected_sizes
):
    model, (ids, _, mask) = small_model(), token_batch
    expected = model(ids, mask)
    sizes.clear()
    monkeypatch.setattr(engine_team, "PREDICTED_AT_ONCE", tokens)
    np.testing.assert_allclose(model(ids, mask), expected, rtol=0, atol=1e-13)
    assert sizes == expected_sizes


@pytest.mark.parametrize(("batch_size", "n"), [(1, 3), (4, 2), (256, 1)])
@pytest.mark.parametrize(
    "changes",
    [{}, {"pooling": "none"}, {"output": "sigmoid", "n_classes": 2}, {"n_token_types": 2}],
)
def test_threads_that_share_batches_agree(small_model, ids, rng, shares, batch_size, n, changes):
    model, mask = small_model(**changes), np.arange(6) < rng.integers(1, 7, 8)[:, None]
    types = rng.integers(0, 2, (8, 6)) if "n_token_types" in changes else None
    probabilities = model.predict_probabilities(ids, mask, batch_size, types)
    assert shares() == n
    alone = [slice(i, i + 1) for i in range(8)]
    expected = []
    for one in alone:
        types_of_one = None if types is None else types[one]
        expected.append(model.predict_probabilities(ids[one], mask[one], 1, types_of_one))
    compared = mask if "pooling" in changes else slice(None)
    np.testing.assert_allclose(
        probabilities[compared], np.concatenate(expected)[compared], rtol=0, atol=1e-13
    )


def test_no_more_samples_at_a_time_than_asked_for(small_model, ids, sizes, shares):
    model = small_model()
    for batch_size in (1, 2, 3):
        sizes.clear()
        model.predict(ids, batch_size=batch_size)
        assert max(sizes) <= batch_size
        assert sum(sizes) == 8


def test_an_error_in_a_thread_is_the_callers(small_model, ids, shares):
    model = small_model()
    forward = SequenceModel.forward

    def fail_for_last_rows(self, x, context):
        if (x == ids[-len(x) :]).all():
            raise MemoryError("no memory for the last rows")
        return forward(self, x, context)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SequenceModel, "forward", fail_for_last_rows)
        with pytest.raises(BatchTooLargeError, match="last rows"):
            model.predict(ids, batch_size=2)
    assert model.predict(ids, batch_size=2).shape == (8,)
