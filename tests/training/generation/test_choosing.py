"""A token is drawn from exactly the distribution that temperature, top_k and top_p leave."""

import numpy as np
import pytest

from npformer.training.generation.choosing import Choice, generators_of
from tests.in_turn import in_turn

P = np.array([0.1, 0.4, 0.2, 0.3])
LOGITS = np.log(P)[None]


@in_turn(
    ("options", "expected"),
    [
        ({}, P),
        ({"temperature": 0.5}, P**2 / (P**2).sum()),
        ({"temperature": 0.0}, [0, 1, 0, 0]),
        ({"top_k": 2}, np.array([0, 4, 0, 3]) / 7),
        ({"top_k": 9}, P),
        ({"top_p": 0.4}, [0, 1, 0, 0]),
        ({"top_p": 0.41}, np.array([0, 4, 0, 3]) / 7),
        ({"top_p": 1e-9}, [0, 1, 0, 0]),
        ({"top_p": 1.0}, P),
        ({"top_k": 2, "top_p": 0.5}, [0, 1, 0, 0]),  # of the two that are left, 4 / 7
        ({"temperature": 0.5, "top_p": 0.6}, np.array([0, 16, 0, 9]) / 25),
    ],
)
def test_the_distribution_is_exact(options, expected):
    choice = Choice(**{"temperature": 1.0} | options)
    np.testing.assert_allclose(choice.probabilities(LOGITS + 3.0), [expected], atol=1e-15)


def test_of_tokens_that_are_alike_the_first_ones_stay():
    p = Choice(top_k=2).probabilities(np.zeros((1, 4)))
    np.testing.assert_array_equal(p, [[0.5, 0.5, 0.0, 0.0]])
    assert Choice(0.0).draw(np.zeros((2, 4)), []).tolist() == [0, 0]


class Given:
    def __init__(self, number):
        self.number = number

    def random(self):
        return self.number


@in_turn(
    ("number", "token"),
    [(0.0, 0), (0.0999, 0), (0.1001, 1), (0.4999, 1), (0.7001, 3), (1 - 2**-53, 3)],
)
def test_a_number_is_turned_into_the_token_whose_part_it_lies_in(number, token):
    assert Choice().draw(LOGITS, [Given(number)]).tolist() == [token]


def test_a_token_that_may_not_be_drawn_is_not_drawn_by_rounding():
    assert Choice().draw(np.array([[0.0, 0.0, -np.inf]]), [Given(1.0)]).tolist() == [1]
    assert Choice(top_k=1).draw(LOGITS, [Given(1 - 2**-53)]).tolist() == [1]


def test_frequencies_are_those_of_the_distribution():
    n = 4_000
    drawn = Choice(0.7, top_k=3).draw(np.repeat(LOGITS, n, axis=0), generators_of(0, n))
    expected = Choice(0.7, top_k=3).probabilities(LOGITS)[0]
    error = np.sqrt(expected * (1 - expected) / n)
    assert (np.abs(np.bincount(drawn, minlength=4) / n - expected) <= 4 * error).all()


def test_rows_draw_from_the_seed_and_their_number():
    logits = np.random.default_rng(0).normal(size=(9, 50))
    few, many = (Choice().draw(logits[:n], generators_of(3, n)) for n in (4, 9))
    np.testing.assert_array_equal(many[:4], few)
    assert (Choice().draw(logits, generators_of(4, 9)) != many).any()


@in_turn(
    ("options", "message"),
    [
        ({"temperature": -1.0}, "temperature is -1.0; expected 0 or more"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_k": 0}, "top_k is 0; expected a whole number of at least 1"),
        ({"top_p": 0.0}, "top_p is 0.0; expected"),
        ({"top_p": 1.5}, "top_p is 1.5; expected a number above 0 and at most 1"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Choice(**options)
