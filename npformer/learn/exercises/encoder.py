"""Marking an encoder made of a reader's pairs: logits, gradients, training, and the pairs."""

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import Array, a_type
from npformer.data import digits
from npformer.learn.exercises.answer import Answer, Stuck
from npformer.learn.exercises.diagnosis import fault_of, same
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.reader_file import file_of, is_open, source_of
from npformer.learn.exercises.referee import NOT_BY_HAND, NOT_ITS_FILES, PASSED, RIGHT, judge
from npformer.learn.exercises.trials import check_returned, mistaken_results, slopes
from npformer.proof.cases.case import draw

PAIRS = ("linear", "relu", "layer_norm", "multi_head", "pooling", "cross_entropy")
FILES = (*(f"{name}_backward" for name in PAIRS), "adam_update")
TAKEN = re.compile(r"""^[^#\n]*\byours\([^)]*["'](\w+)["'],?\s*\)""", re.MULTILINE)
X, DLOGITS = draw(3, 8, 8), draw(3, 10, seed=1)
COUNTS = {"the batch size": 3.0, "the length": 8.0}
ENOUGH = 0.95


def exercises_to_solve(exercise: Exercise, answer: Answer) -> list[str]:
    """Return which of the files that the encoder uses are still to do, as sentences."""
    files = _files(exercise, answer)
    to_do = [used_exercise.stem for used_exercise, path in files if is_open(path)]
    numbers = " ".join(used_exercise.stem[:2] for used_exercise, _ in files)
    return [f"it needs {numbers}; still to do: {', '.join(to_do)}"] if to_do else []


def _files(exercise: Exercise, answer: Answer) -> list[tuple[Exercise, Path | None]]:
    """Return the exercises whose functions the encoder takes, and the reader's files of them."""
    names_taken = TAKEN.findall(answer.text)
    folder = Path(answer.path).parent
    return [
        (used_exercise, file_of(used_exercise, folder))
        for name, used_exercise in exercise.uses.items()
        if name in names_taken
    ]


def mark(exercise: Exercise, answer: Answer) -> list[str]:
    """Check the encoder, and then the files that it uses: the fault may be in one of them."""
    problems: list[str] = []
    try:
        Marking(exercise, answer).check()
    except Stuck as stuck:
        problems = [*stuck.args]
    wrong, borrowed = _judge_files(exercise, answer)
    if problems:
        return wrong + problems
    if wrong:
        answer.state = NOT_ITS_FILES
    elif borrowed:
        answer.state = NOT_BY_HAND
    else:
        answer.state = RIGHT
    answer.notes = [*wrong, *borrowed, *answer.notes]
    return []


def _judge_files(exercise: Exercise, answer: Answer) -> tuple[list[str], list[str]]:
    """Return which of the files are wrong, and which are right, but not by hand, as sentences."""
    wrong: list[str] = []
    borrowed: list[str] = []
    for used_exercise, path in _files(exercise, answer):
        assert path is not None, "`exercises_to_solve` comes first"
        text, places = source_of(path)
        state = judge(used_exercise, Answer(text, str(path), places)).state
        check = f"`npformer exercises check {used_exercise.name}`"
        if state not in PASSED:
            wrong.append(f"{used_exercise.stem} is not right itself; {check}")
        elif state != RIGHT:
            borrowed.append(f"{used_exercise.stem} is {state}; {check}")
    return wrong, borrowed


class Marking:
    """A reader's encoder beside the one that the file describes, and beside typical mistakes."""

    def __init__(self, exercise: Exercise, answer: Answer) -> None:
        self.answer = answer
        self._parameters = answer.function("parameters")
        self._encoder = answer.function("encoder")
        self._encoder_backward = answer.function("encoder_backward")
        self._train = answer.function("train")
        self.p: dict[str, Array] = {
            name: array.astype("float64") + 0.3 * draw(*array.shape, seed=i)
            for i, (name, array) in enumerate(self.parameters(8, 12).items())
        }
        text = re.sub(r"^.* = yours\(.*\n", "", exercise.solved, flags=re.MULTILINE)
        solved: dict[str, Any] = {}
        for name in FILES:
            used_exercise = exercise.uses[name]
            solved |= vars(used_exercise.run(used_exercise.solved))
        pairs = {*FILES, *(name.removesuffix("_backward") for name in FILES)}
        functions_of_reader = answer.names if pairs <= answer.names.keys() else solved
        self.described = exercise.run(text, solved)
        self.variants = [
            ("", exercise.run(text, functions_of_reader)),
            *exercise.variants(text, functions_of_reader),
        ]

    def parameters(self, *sizes: int) -> Any:
        """Call the reader's `parameters`."""
        return self.answer.call(self._parameters, *sizes)

    def encoder(self, x: Array, p: dict[str, Array]) -> Any:
        """Call the reader's `encoder`."""
        return self.answer.call(self._encoder, x, p)

    def encoder_backward(self, dlogits: Array, cache: Any) -> Any:
        """Call the reader's `encoder_backward`."""
        return self.answer.call(self._encoder_backward, dlogits, cache)

    def train(self, x: Array, labels: Array, **settings: Any) -> Any:
        """Call the reader's `train`."""
        return self.answer.call(self._train, x, labels, **settings)

    def check(self) -> None:
        """Check the logits, then the gradients, then the result of training."""
        self._check_logits()
        self._check_gradients()
        self._check_steps()
        self.answer.listening = False
        self._check_training()

    def _mistake(self, got: Any, of: Callable[[Any], Any]) -> str:
        """Return the mistake that gives the same result as the reader's encoder, if one does."""
        (_, right), *mistakes = mistaken_results(self.variants, of)
        if same(got, right):
            return ""
        return next((says for says, result in mistakes if same(got, result)), "")

    def _check_logits(self) -> None:
        logits = self._logits_of_answer()
        p = self.p
        if says := self._mistake(logits, lambda names: names.encoder(X, p)[0]):
            raise Stuck(f"encoder: {says}")
        self._check_use_of_parameters(logits)
        self._check_names_of_parameters()
        if not same(self.encoder(X, p)[0], self.described.encoder(X, p)[0]):
            raise Stuck(
                "the logits are not those of the formulas at the top of the file, with "
                f"{self.described.N_BLOCKS} blocks and {self.described.N_HEADS} heads"
            )
        self.answer.notes = ["right so far: the logits"]

    def _logits_of_answer(self) -> Any:
        """Return the logits after checking their shape, and that no parameter was changed."""
        before = copy.deepcopy(self.p)
        result = self.encoder(X, self.p)
        check_returned("encoder", result, ["logits", "a cache"])
        logits = result[0]
        if np.shape(logits) != (3, 10):
            shape = f"the logits of 3 images have the shape {np.shape(logits)}"
            raise Stuck(f"{shape}; expected (3, 10)")
        if not np.isfinite(logits).all():
            raise Stuck("the logits hold NaN or infinity")
        if any(not np.array_equal(array, before[name]) for name, array in self.p.items()):
            raise Stuck("encoder changed a parameter in place")
        return logits

    def _check_use_of_parameters(self, logits: Any) -> None:
        unused = []
        for name, array in self.p.items():
            moved = self.p | {name: array + 0.1 * draw(*array.shape)}
            if same(self.encoder(X, moved)[0], logits):
                unused.append(name)
        if unused:
            which = ", ".join(unused)
            raise Stuck(f"encoder does not use {which}: when they change, no logit does")

    def _check_names_of_parameters(self) -> None:
        parameters = self.described.parameters(8, 12)
        shapes = {name: array.shape for name, array in parameters.items()}
        if shapes != {name: array.shape for name, array in self.p.items()}:
            says = "parameters gives other names or shapes than the one you were given"
            raise Stuck(f"{says}; put it back")

    def _check_gradients(self) -> None:
        """Compare with slopes, from the loss backwards: one mistake spoils all below."""
        p = self.p
        gradients = self._gradients_of_answer()
        self.answer.listening = False  # thousands of calls follow
        right: list[str] = []
        for name in reversed(p):
            slope = slopes(lambda: self.encoder(X, p)[0], p[name], DLOGITS)
            if fault := fault_of(f"d{name}", gradients[name], slope, counts=COUNTS):
                says = self._mistake(
                    _flat({name: gradients[name] for name in p}),
                    lambda names: _flat(names.encoder_backward(DLOGITS, names.encoder(X, p)[1])),
                )
                if not right:
                    raise Stuck(says or fault)
                beside = f"from the loss backwards, these are right: {', '.join(right)}"
                raise Stuck(says or fault, beside)
            right.append(f"d{name}")
        self.answer.listening = True
        self.answer.notes = ["right so far: the logits and the gradients"]

    def _gradients_of_answer(self) -> dict[str, Any]:
        """Return the gradients after checking that there is one of each parameter."""
        _, cache = self.encoder(X, self.p)
        gradients = self.encoder_backward(DLOGITS.copy(), cache)
        if not isinstance(gradients, dict):
            kind = "nothing" if gradients is None else a_type(gradients)
            raise Stuck(f"encoder_backward returned {kind}; expected a dict of gradients")
        if missing := [name for name in self.p if gradients.get(name) is None]:
            raise Stuck(f"encoder_backward gives no gradient of {', '.join(missing)}")
        return gradients

    def _check_steps(self) -> None:
        """Look at the first few steps of training."""
        x, labels = (array[:96] for array in digits().train)
        before, p = self.parameters(), self.train(x, labels, epochs=1)
        if not isinstance(p, dict) or p.keys() != before.keys():
            raise Stuck("train returns no parameters; expected p, a dict with their names")
        if says := self._mistake(_flat(p), lambda names: _flat(names.train(x, labels, epochs=1))):
            raise Stuck(f"train: {says}")
        if still := [name for name in p if np.array_equal(p[name], before[name])]:
            which = ", ".join(still) if len(still) < len(p) else "the parameters"
            says = f"an epoch does not change {which}"
            raise Stuck(f"{says}: does p get what adam_update returns?")

    def _check_training(self) -> None:
        data = digits()
        p = self.train(*data.train)
        seen, unseen = (
            float((np.argmax(self.encoder(x, p)[0], axis=-1) == labels).mean())
            for x, labels in (data.train, data.test)
        )
        n = len(data.test[0])
        self.answer.notes = [f"{unseen:.1%} of {n} digits that it has not seen"]
        if unseen >= ENOUGH:
            return
        why = "more epochs, or another learning rate, may help"
        if seen < 0.5:
            why = (
                "it hardly learns: look at the learning rate, at what a step does with g, at "
                "whether images and labels belong together, and at the order of adam_update's "
                "results: theta, m, v"
            )
        elif seen > 0.98:
            why = "it knows by heart what it has seen: fewer steps, or smaller weights, may help"
        raise Stuck(
            f"trained, it knows {unseen:.1%} of {n} digits that it has not seen, and "
            f"{seen:.1%} of those that it has; expected {ENOUGH:.0%} of the former. {why}"
        )


def _flat(arrays: dict[str, Array]) -> Array:
    return np.concatenate([np.ravel(arrays[name]) for name in sorted(arrays)])
