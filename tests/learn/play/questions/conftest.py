"""A run between two steps, without a page."""

import pytest

from npformer.learn.play.state import Now
from npformer.learn.play.tasks import defaults, work_of
from npformer.training.callbacks import Callback

SMALL = {"d_model": 16, "n_heads": 2, "d_ff": 16, "mixers": ["attention"], "epochs": 1}


class _Until(Callback):
    def __init__(self, step):
        self.step, self.state = step, None

    def after_step(self, state):
        self.state = state
        if state.step >= self.step:
            state.stop("enough")


def begun(task, steps=3, **changes):
    """Return a run of a task after some steps."""
    work = work_of(defaults(task, **SMALL | changes))
    until = _Until(steps)
    work.train(callbacks=[until], progress=False, workers=1)
    return Now(work, until.state)


@pytest.fixture(scope="package")
def digits():
    return begun("digits", 30, mixers=["attention", "fourier"])
