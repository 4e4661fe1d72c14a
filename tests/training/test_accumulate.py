"""fit(accumulate=K): one update of K batches."""

import numpy as np
import pytest

import npformer as nf
from tests.in_turn import in_turn
from tests.training.common import EPOCHS, fit


class Updates(nf.Callback):
    """Notes how many samples each update had, and its learning rate."""

    def __init__(self):
        self.sizes, self.steps, self.rates = [], [], []

    def before_update(self, state):
        self.sizes.append(len(state.rows))
        self.steps.append(state.step)
        self.rates.append(state.optimizer.current_lr())


@pytest.mark.parametrize(("dropout", "workers"), [(0.0, 1), (0.3, 2)])
def test_k_batches_are_one_of_k_times_the_size(make, data, dropout, workers):
    one, other = make(dropout=dropout), make(dropout=dropout)
    schedule = nf.optim.cosine(6, warmup=1)
    history = fit(one, data, batch_size=3, accumulate=3, schedule=schedule, workers=workers)
    again = fit(other, data, batch_size=9, schedule=schedule, workers=workers)
    assert history.train_loss == pytest.approx(again.train_loss, rel=1e-9)
    assert history.lr == again.lr
    for name, value in other.parameters().items():
        np.testing.assert_allclose(one.parameters()[name], value, rtol=0, atol=1e-8, err_msg=name)


def test_steps_and_the_schedule_count_updates_and_the_rest_is_one(make, data):
    updates = Updates()
    fit(make(), data, updates, batch_size=3, accumulate=3, schedule=lambda step: 1.0 / step)
    assert updates.sizes == [9, 9, 2] * EPOCHS
    assert updates.steps == list(range(1, 3 * EPOCHS + 1))
    assert updates.rates == pytest.approx([1e-2 / step for step in updates.steps])


def test_no_more_than_a_batch_is_computed_at_a_time(make, data, monkeypatch):
    sizes, forward = [], nf.Encoder.forward

    def noted(self, x, context):
        if context.training:
            sizes.append(len(x))
        return forward(self, x, context)

    monkeypatch.setattr(nf.Encoder, "forward", noted)
    with nf.use_kernels(False):
        fit(make(), data, batch_size=4, accumulate=2, epochs=1, workers=1)
        assert sizes == [4] * 5
        sizes.clear()
        fit(make(), data, batch_size=4, accumulate=2, micro_batch=2, epochs=1, workers=1)
    assert sizes == [2] * 10


@in_turn("wrong", [0, -1, 1.5, "2", None])
def test_wrong_numbers_are_refused(make, data, wrong):
    with pytest.raises(ValueError, match=r"accumulate is .*; expected a whole number of at least"):
        fit(make(), data, accumulate=wrong)
