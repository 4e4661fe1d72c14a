"""Questions disturb nothing: a training with questions after each step is the one without."""

import numpy as np
import pytest

from npformer.learn.play import questions
from npformer.learn.play.state import Now
from npformer.learn.play.tasks import defaults, work_of
from npformer.training.callbacks import Callback
from tests.learn.play.questions.conftest import SMALL
from tests.sampling import mark_others

IMAGE = np.eye(8).tolist()

OF_TASK = {
    "digits": {"digit": {"image": IMAGE}, "edit": {"image": IMAGE, "position": 2, "to": [1.0] * 8}},
    "sentences": {
        "sentence": {"text": "good food"},
        "edit": {"text": "good food", "position": 1, "to": "service"},
    },
    "text": {
        "sentence": {"text": "To be"},
        "edit": {"text": "To be", "position": 1, "to": "a"},
        "write": {"prompt": "To be", "temperature": 0.9, "top_p": 0.8, "seed": 4},
    },
    "reverse": {"translate": {"source": "hello"}},
}


class _Asking(Callback):
    """Asks all that a run can be asked, between its steps."""

    def __init__(self, work, steps, asked):
        self.work, self.steps, self.asked = work, steps, asked

    def after_step(self, state):
        now = Now(self.work, state)
        for question, arguments in self.asked.items():
            questions.ask(now, question, **arguments)
        if state.step >= self.steps:
            state.stop("enough")


def trained(task, asked, steps=4):
    """Return weights, Adam's moments and NumPy's global generator after a training."""
    np.random.seed(0)  # noqa: NPY002 -- the generator that a question must not touch
    work = work_of(defaults(task, **SMALL | {"dropout": 0.2}))
    asking = _Asking(work, steps, asked)
    final = {}

    class _Last(Callback):
        def after_step(self, state):
            final["weights"] = {k: v.copy() for k, v in state.model.parameters().items()}
            final["adam"] = state.optimizer.state()

    work.train(callbacks=[asking, _Last()], progress=False, workers=1)
    return final["weights"], final["adam"], np.random.random()  # noqa: NPY002


@pytest.mark.parametrize("task", mark_others([*OF_TASK][:1], OF_TASK))
def test_training_goes_on_bit_for_bit(task):
    name = {"reverse": "source.tokens.weight", "digits": "embed.tokens.weight"}
    weight = {"name": name.get(task, "embed.tokens.weight"), "index": [3, 0]}
    questions_by_step = {
        "samples": {"n": 2},
        "predictions": {"samples": [0, 1]},
        "step": {"sample": 1},
        "weight": weight,
        **OF_TASK[task],
    }
    left_alone, disturbed = trained(task, {}), trained(task, questions_by_step)
    for key, value in left_alone[0].items():
        np.testing.assert_array_equal(disturbed[0][key], value, err_msg=key)
    values, moments = left_alone[1]
    assert disturbed[1][0] == values
    for key, value in moments.items():
        np.testing.assert_array_equal(disturbed[1][1][key], value, err_msg=key)
    assert disturbed[2] == left_alone[2]


def test_all_questions_are_asked_here():
    tested = {question for by_task in OF_TASK.values() for question in by_task}
    rest = {"samples", "predictions", "step", "weight", "export"}
    assert tested | rest == set(questions.QUESTIONS)


def test_questions_work_on_a_copy(digits):
    """A question that fails halfway leaves nothing behind in the model that is trained."""
    ours = digits.plain.parameters()
    theirs = digits.training.model.parameters()
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value)
        assert not np.shares_memory(ours[name], value), name
