"""schedulecheck compares a schedule with its formula, and names the fault."""

import math

import pytest

import npformer as nf
from npformer.optim import constant, cosine, linear, warmup_inverse_sqrt


def noam(step, d_model=512, warmup=4000):
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def noam_from_0(step, d_model=64, warmup=10):
    return noam(step + 1, d_model, warmup)


def noam_late(step, d_model=64, warmup=10):
    return 0.0 if step == 1 else noam(step - 1, d_model, warmup)


def noam_by_the_root(step, d_model=64, warmup=10):
    return d_model * noam(step, d_model, warmup)


def noam_by_d(step, d_model=64, warmup=10):
    return d_model**-0.5 * noam(step, d_model, warmup)


def noam_without_d(step, d_model=64, warmup=10):
    return noam(step, 1, warmup)


def noam_of_the_larger(step, d_model=64, warmup=10):
    return d_model**-0.5 * max(step**-0.5, step * warmup**-1.5)


def noam_by_a_root_of_warmup(step, d_model=64, warmup=10):
    return d_model**-0.5 * min(step**-0.5, step * warmup**-0.5)


def noam_times_3(step, d_model=64, warmup=10):
    return 3.0 * noam(step, d_model, warmup)


def cosine_lr(it, learning_rate=0.3, warmup_iters=10, lr_decay_iters=60, min_lr=0.03):
    if it < warmup_iters:
        return learning_rate * it / warmup_iters
    if it > lr_decay_iters:
        return min_lr
    progress = (it - warmup_iters) / (lr_decay_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * progress)) * (learning_rate - min_lr)


def cosine_of_a_whole_period(step, base_lr=0.3, total_steps=50):
    return base_lr * 0.5 * (1.0 + math.cos(2.0 * math.pi * step / total_steps))


def cosine_not_halved(step, base_lr=0.3, total_steps=50):
    return base_lr * (1.0 + math.cos(math.pi * min(step / total_steps, 1.0)))


def linear_that_jumps(step, total=50, warmup=5):
    return step / warmup if step < warmup else max(1.0 - step / total, 0.0)


def linear_without_an_end(step, total=50):
    return abs(1.0 - step / total)


def step_decay(epoch, initial_lr=0.1, drop=0.5, epochs_drop=10):
    return initial_lr * drop ** math.floor(epoch / epochs_drop)


def exponential(step, lr=0.1, gamma=0.9):
    return lr * gamma**step


class Noam:
    """It counts its steps, and sets the rate of an optimizer."""

    def __init__(self, optimizer, model_size, warmup, factor=1.0):
        self.optimizer, self.model_size = optimizer, model_size
        self.warmup, self.factor = warmup, factor
        self.n = 0

    def step(self):
        self.n += 1
        rate = self.factor * noam(self.n, self.model_size, self.warmup)
        self.optimizer.param_groups[0]["lr"] = rate


class NoamThatCountsLate(Noam):
    def step(self):
        rate = noam(self.n, self.model_size, self.warmup) if self.n else 0.0
        self.optimizer.param_groups[0]["lr"] = rate
        self.n += 1


class NoamThatCountsTwice(Noam):
    def __init__(self, optimizer, model_size, warmup, factor=1.0):
        super().__init__(optimizer, model_size, warmup, factor)
        self.n = 1


WARMUP = "a linear warm-up and an inverse square root"
PEAK = f"{WARMUP}: scaled so that lr is reached at the end of the warm-up"


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (warmup_inverse_sqrt(100), PEAK),
        (cosine(100), "half a cosine"),
        (cosine(100, warmup=10, final=0.1), "half a cosine"),
        (linear(50, warmup=5), "a straight line"),
        (constant(), "a constant"),
        (noam, WARMUP),
        (noam_from_0, f"{WARMUP}: steps are counted from 0"),
        (Noam, WARMUP),
        (cosine_lr, "half a cosine"),
        (step_decay, "steps"),
        (exponential, "an exponential"),
    ],
)
def test_a_right_schedule_passes(schedule, words):
    assert nf.schedulecheck(schedule).diagnosis == words


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (noam_late, f"{WARMUP}: off by one: step 1 has the learning rate of step 0"),
        (NoamThatCountsLate, f"{WARMUP}: off by one: step 1 has the learning rate of step 0"),
        (NoamThatCountsTwice, f"{WARMUP}: off by one: step 1 has the learning rate of step 2"),
        (noam_by_the_root, f"{WARMUP}: d_model has the power 0.5, not -0.5"),
        (noam_by_d, f"{WARMUP}: d_model has the power -1, not -0.5"),
        (noam_without_d, f"{WARMUP}: d_model is left out"),
        (noam_of_the_larger, f"{WARMUP}: the larger of both is taken, not the smaller"),
        (noam_by_a_root_of_warmup, f"{WARMUP}: the warm-up has the power -0.5, not -1.5"),
        (noam_times_3, "is 3 times its formula at each step"),
        (cosine_of_a_whole_period, "half a cosine: a whole cosine: it rises again"),
        (cosine_not_halved, "half a cosine: 1 + cos is not halved"),
        (linear_that_jumps, "a straight line: the decay does not begin after the warm-up"),
    ],
)
def test_the_fault_of_a_schedule_is_named(schedule, words):
    with pytest.raises(nf.OptimcheckError) as error:
        nf.schedulecheck(schedule)
    assert words in error.value.report.diagnosis


def test_another_kind_is_named():
    with pytest.raises(nf.OptimcheckError, match="this is half a cosine, not a straight line"):
        nf.schedulecheck(cosine(100), kind="linear")


def test_arguments_say_a_kind_where_the_name_says_none():
    def lr_of(step, d_model=64, warmup_steps=10):
        return noam(step, d_model, warmup_steps)

    assert nf.schedulecheck(lr_of).diagnosis == WARMUP


def test_a_division_by_0_at_step_0_is_a_note():
    assert nf.schedulecheck(noam).notes == ["step 0 divides by 0: count steps from 1"]


def test_a_rise_after_the_end_is_a_note():
    report = nf.schedulecheck(linear_without_an_end, kind="linear")
    assert report.notes == ["after step 50, the last, it rises again"]


def test_the_first_wrong_step_is_in_the_report():
    with pytest.raises(nf.OptimcheckError) as error:
        nf.schedulecheck(linear_that_jumps)
    (difference,) = error.value.report.differences
    assert difference.step == 5
    assert "schedulecheck of linear_that_jumps: FAILED" in str(error.value)


def test_numbers_that_are_stated_are_passed_on():
    assert nf.schedulecheck(noam, d_model=32, warmup=7).settings["d_model"] == 32.0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: nf.schedulecheck(lambda step: 1.0), TypeError, "say a kind of schedule"),
        (lambda: nf.schedulecheck(lambda s: 1.0, kind="noam"), TypeError, "has no warmup"),
        (lambda: nf.schedulecheck(3, kind="constant"), TypeError, "could not be called"),
        (lambda: nf.schedulecheck(cosine(9), warmup=9), ValueError, "ends before the training"),
        (lambda: nf.schedulecheck(cosine(9), total=1.5), ValueError, "expected a whole number"),
    ],
)
def test_what_cannot_be_checked_is_refused_in_words(call, error, words):
    with pytest.raises(error, match=words):
        call()
