"""fit(validation=0.1): a share of the data is held out, drawn by the seed."""

import numpy as np
import pytest

import npformer as nf
from tests.in_turn import in_turn
from tests.training.common import assert_same_weights, fit


def test_fit_trains_on_the_rest_and_validates_on_the_share(make, data, rng):
    x, y = data
    seen = set()

    class Seeing(nf.Callback):
        def after_step(self, state):
            seen.update(state.rows.tolist())

    model = make(dropout=0.2)
    history = fit(model, (x, y), Seeing(), validation=0.25, seed=4)
    held = history.validation_rows
    assert len(held) == 5
    assert seen == set(range(20)) - set(held)
    assert np.bincount(y[held]).tolist() in ([2, 3], [3, 2])
    found = nf.evaluate(model, (x[held], y[held]))
    assert history.validation_loss[history.best_epoch - 1] == pytest.approx(found.loss)
    # The same as training on the rest, but for the generator.
    rest = sorted(seen)
    other = make(dropout=0.2)
    fit(other, (x[rest], y[rest]), validation=(x[held], y[held]), seed=4)
    assert_same_weights(model, other)


def test_without_a_share_the_history_says_none(make, data):
    assert fit(make(), data, validation=data).validation_rows is None


@in_turn(
    ("share", "error", "message"),
    [
        (0.0, ValueError, "validation is 0.0; expected a share of the data between 0 and 1"),
        (1, ValueError, "validation is 1; expected a share"),
        (1.5, ValueError, "validation is 1.5; expected a share"),
        (float("nan"), ValueError, "validation is nan; expected a share"),
        (True, TypeError, r"validation is a bool; expected \(x, y\)"),
        ("0.1", TypeError, r"validation is a str; expected \(x, y\)"),
        (0.01, ValueError, "20 samples are too few to set 0.01 of them aside; expected at least 1"),
    ],
)
def test_wrong_shares_are_refused_in_words(make, data, share, error, message):
    with pytest.raises(error, match=message):
        fit(make(), data, validation=share)
