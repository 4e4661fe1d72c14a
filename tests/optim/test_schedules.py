"""Schedules: formulas, names, and what they may return."""

import copy
import math
import pickle

import numpy as np
import pytest

import npformer as nf
from npformer.optim import SCHEDULES, constant, cosine, linear, warmup_inverse_sqrt


def test_inverse_square_root_is_the_papers_formula():
    factor, peak = warmup_inverse_sqrt(4000), (512 * 4000) ** -0.5
    for step in (1, 100, 3999, 4000, 4001, 16000, 100_000):
        paper = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert peak * factor(step) == pytest.approx(paper, rel=1e-12)
    factor = warmup_inverse_sqrt(100)
    assert (factor(50), factor(100), factor(400), factor(1600)) == (0.5, 1.0, 0.5, 0.25)


def test_linear_and_cosine_go_up_a_line_and_down_a_line_or_half_a_wave():
    expected = {5: 0.5, 10: 1.0, 60: 0.6, 110: 0.2, 500: 0.2}
    for kind in (linear, cosine):
        factor = kind(total=110, warmup=10, final=0.2)
        assert {step: pytest.approx(factor(step)) for step in expected} == expected
    assert factor(35) == pytest.approx(0.2 + 0.8 * 0.5 * (1 + math.cos(math.pi / 4)))
    assert cosine(total=1000)(1) == pytest.approx(1.0, abs=1e-5)


def test_cosine_of_a_single_step_that_would_change_nothing_is_refused():
    with pytest.raises(ValueError, match=r"total is 1 and final 0\.0; expected at least 2 steps"):
        cosine(total=1)
    assert cosine(total=1, final=0.5)(1) == 0.5


# What they are ------------------------------------------------------------------------------------
BUILT = [
    (constant(), "constant()"),
    (warmup_inverse_sqrt(np.int64(40)), "warmup_inverse_sqrt(warmup=40)"),
    (SCHEDULES.make("linear(total=10)"), "linear(total=10, warmup=0, final=0.0)"),
    (cosine(100), "cosine(total=100, warmup=0, final=0.0)"),
    (cosine(100, np.int32(5), np.float32(0.5)), "cosine(total=100, warmup=5, final=0.5)"),
]


@pytest.mark.parametrize(("schedule", "text"), BUILT, ids=[text for _, text in BUILT])
def test_a_schedule_is_a_value_that_can_be_copied_pickled_and_written_down(schedule, text):
    assert repr(schedule) == text
    pickled = pickle.loads(pickle.dumps(schedule))
    for other in (copy.deepcopy(schedule), pickled, SCHEDULES.make(text)):
        assert other == schedule
        assert [other(step) for step in (1, 7, 500)] == [schedule(step) for step in (1, 7, 500)]
    assert cosine(100) != cosine(101)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: warmup_inverse_sqrt(2.5), r"warmup is 2\.5; expected .* of at least 1"),
        (lambda: warmup_inverse_sqrt(None), "warmup is None; expected a whole number"),
        (lambda: cosine("100"), "total is '100'; expected a whole number"),
        (lambda: cosine(True), "total is True; expected a whole number"),
        (lambda: cosine(100, warmup=-1), "warmup is -1; expected a whole number of at least 0"),
        (lambda: cosine(100, warmup=None), "warmup is None; expected a whole number"),
        (
            lambda: cosine(100, warmup=100),
            "warmup is 100; expected .* of at least 0 and at most 99",
        ),
        (lambda: cosine(100, final=-0.1), r"final is -0\.1; expected 0 or more"),
        (lambda: cosine(100, final=math.nan), "final is nan; expected 0 or more"),
        (lambda: cosine(100, final="0"), "final is '0'; expected 0 or more"),
        (lambda: cosine(100)(0), "step is 0; expected a whole number of at least 1"),
        (lambda: cosine(100)(np.arange(3)), "step is an ndarray"),
        (lambda: warmup_inverse_sqrt(4)(0), "step is 0; expected a whole number of at least 1"),
    ],
)
def test_wrong_numbers_are_refused_in_words(build, message):
    with pytest.raises(ValueError, match=message):
        build()


# What they may return -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("factor", "error"),
    [
        (-1, ValueError),
        (-1e-300, ValueError),
        (math.nan, ValueError),
        (np.float32("inf"), ValueError),
        (-math.inf, ValueError),
        (None, TypeError),
        ("0.5", TypeError),
        (1j, TypeError),
        (np.ones(1), TypeError),
        (constant(), TypeError),
    ],
)
def test_a_factor_that_is_none_is_named_with_its_step_before_anything_changes(factor, error):
    def strange(step):
        return factor if step == 3 else 1.0

    theta = {"w": np.ones(2)}
    optimizer = nf.Adam(theta, schedule=strange)
    for _ in range(2):
        optimizer.step({"w": np.ones(2)})
    before, state = theta["w"].copy(), optimizer.state()
    with pytest.raises(error, match=r"the schedule <function .*strange.* for step 3; expected a"):
        optimizer.step({"w": np.ones(2)})
    with pytest.raises(error, match="for step 3"):
        optimizer.current_lr()
    np.testing.assert_array_equal(theta["w"], before)
    assert optimizer.state()[0] == state[0]
    np.testing.assert_array_equal(optimizer.state()[1]["m.w"], state[1]["m.w"])


def test_a_factor_of_0_changes_nothing_but_the_moments():
    theta = {"w": np.ones(2)}
    optimizer = nf.Adam(theta, schedule=lambda step: np.float32(0.0), weight_decay=0.5)
    optimizer.step({"w": np.ones(2)})
    np.testing.assert_array_equal(theta["w"], 1.0)
    assert optimizer.steps == 1


# Schedules by name --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("schedule", "error", "message"),
    [
        ("cosin(total=5)", ValueError, "schedule is 'cosin'; expected one of 'constant', 'warmup_"),
        ("cosin(total=5)", ValueError, "Did you mean 'cosine'"),
        ("cosine", TypeError, r"schedule 'cosine' needs total; expected 'cosine\(total=\.\.\.\)"),
        ("cosine(total=5, end=1)", TypeError, "schedule 'cosine' has no option 'end'; expected"),
        ("cosine(total=0)", ValueError, "total is 0; expected a whole number of at least 1"),
        ("cosine(5)", ValueError, r"schedule is 'cosine\(5\)'; expected a name, or a name and opt"),
        (0.5, TypeError, r"schedule is 0.5; expected a function of the step .*'cosine\(total=1000"),
        (cosine, TypeError, "schedule is the builder cosine itself; expected a function"),
    ],
)
def test_a_schedule_that_is_none_is_explained(schedule, error, message):
    with pytest.raises(error, match=message):
        nf.Adam({"w": np.ones(2)}, schedule=schedule)
