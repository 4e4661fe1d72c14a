"""Marking an encoder made of a reader's pairs: logits, gradients, training, and the pairs."""

import copy
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import Array, a_type
from npformer.data import digits
from npformer.learn.exercises.answer import Answer, Stuck
from npformer.learn.exercises.diagnosis import fault_of, same
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.folder import find, source_of
from npformer.learn.exercises.referee import NOT_BY_HAND, NOT_ITS_FILES, PASSED, RIGHT, judge
from npformer.learn.exercises.table import exercise as exercise_of
from npformer.learn.exercises.table import stem
from npformer.learn.exercises.trials import check_returned, mistaken_results, slopes
from npformer.learn.exercises.yours import is_open
from npformer.proof.cases.case import draw

PAIRS = ("linear", "relu", "layer_norm", "multi_head", "pooling", "cross_entropy")
FILES = (*(f"{name}_backward" for name in PAIRS), "adam_update")
TAKEN = re.compile(r"""^[^#\n]*\byours\([^)]*["'](\w+)["'],?\s*\)""", re.MULTILINE)
X, DLOGITS = draw(3, 8, 8), draw(3, 10, seed=1)
COUNTS = {"the batch size": 3.0, "the length": 8.0}
ENOUGH = 0.95


def unsolved(answer: Answer) -> list[str]:
    """Return which of the files that the encoder uses are still to do, in words."""
    files = _files(answer)
    left = [stem(name) for name, path in files.items() if is_open(path)]
    needs = " ".join(stem(name)[:2] for name in files)
    return [f"it needs {needs}; still to do: {', '.join(left)}"] if left else []


def _files(answer: Answer) -> dict[str, Path | None]:
    """Return the files that the encoder uses, by the names of their exercises."""
    names = sorted(set(FILES) & set(TAKEN.findall(answer.text)), key=stem)
    return {name: find(Path(answer.path).parent, name) for name in names}


def mark(exercise: Exercise, answer: Answer) -> list[str]:
    """Check the encoder, and then the files that it uses: the fault may be in one of them."""
    problems: list[str] = []
    try:
        Marking(exercise, answer).check()
    except Stuck as stuck:
        problems = [*stuck.args]
    wrong, borrowed = _judge_files(answer)
    if problems:
        return wrong + problems
    answer.state = NOT_ITS_FILES if wrong else NOT_BY_HAND if borrowed else RIGHT
    answer.notes = [*wrong, *borrowed, *answer.notes]
    return []


def _judge_files(answer: Answer) -> tuple[list[str], list[str]]:
    """Return which of the files are wrong, and which are right, but not by hand, in words."""
    wrong: list[str] = []
    borrowed: list[str] = []
    for name, path in _files(answer).items():
        assert path is not None, "`unsolved` comes first"
        text, places = source_of(path)
        state = judge(exercise_of(name), Answer(text, str(path), places)).state
        if state != RIGHT:
            group, says = (borrowed, state) if state in PASSED else (wrong, "not right itself")
            group.append(f"{stem(name)} is {says}; `npformer exercises check {name}`")
    return wrong, borrowed


class Marking:
    """A reader's encoder beside the one that the file describes, and beside typical mistakes."""

    def __init__(self, exercise: Exercise, answer: Answer) -> None:
        self.answer = answer
        names = "parameters", "encoder", "encoder_backward", "train"
        functions = [partial(answer.call, answer.function(name)) for name in names]
        self.parameters, self.encoder, self.backward, self.train = functions
        self.p: dict[str, Array] = {
            name: array.astype("float64") + 0.3 * draw(*array.shape, seed=i)
            for i, (name, array) in enumerate(self.parameters(8, 12).items())
        }
        text = re.sub(r"^.* = yours\(.*\n", "", exercise.solved, flags=re.MULTILINE)
        solved: dict[str, Any] = {}
        for name in FILES:
            solved |= vars(exercise_of(name).run(exercise_of(name).solved))
        pairs = {pair for name in FILES for pair in (name, name.removesuffix("_backward"))}
        own = answer.names if pairs <= answer.names.keys() else solved
        self.described = exercise.run(text, solved)
        self.variants = [("", exercise.run(text, own)), *exercise.variants(text, own)]

    def check(self) -> None:
        """Check the logits, then the gradients, then the result of training."""
        self._check_logits()
        self._check_gradients()
        self._check_steps()
        self.answer.listening = False
        self._check_training()

    def _mistake(self, got: Any, of: Callable[[Any], Any]) -> str:
        """Return the mistake that gives the same result as the reader's encoder, if one does."""
        (_, right), *others = mistaken_results(self.variants, of)
        return next((s for s, other in others if same(got, other) and not same(got, right)), "")

    def _check_logits(self) -> None:
        p, encoder, described = self.p, self.encoder, self.described
        given = copy.deepcopy(p)
        result = encoder(X, p)
        check_returned("encoder", result, ["logits", "a cache"])
        logits = result[0]
        if np.shape(logits) != (3, 10):
            shape = f"the logits of 3 images have the shape {np.shape(logits)}"
            raise Stuck(f"{shape}; expected (3, 10)")
        if not np.isfinite(logits).all():
            raise Stuck("the logits hold NaN or infinity")
        if any(not np.array_equal(p[name], given[name]) for name in p):
            raise Stuck("encoder changed a parameter in place")
        if says := self._mistake(logits, lambda names: names.encoder(X, p)[0]):
            raise Stuck(f"encoder: {says}")
        moved = {name: p | {name: p[name] + 0.1 * draw(*p[name].shape)} for name in p}
        if unused := [name for name in p if same(encoder(X, moved[name])[0], logits)]:
            which = ", ".join(unused)
            raise Stuck(f"encoder does not use {which}: when they change, no logit does")
        shapes = {name: array.shape for name, array in described.parameters(8, 12).items()}
        if shapes != {name: array.shape for name, array in p.items()}:
            says = "parameters gives other names or shapes than the one you were given"
            raise Stuck(f"{says}; put it back")
        if not same(encoder(X, p)[0], described.encoder(X, p)[0]):
            raise Stuck(
                "the logits are not those of the formulas at the top of the file, with "
                f"{described.N_BLOCKS} blocks and {described.N_HEADS} heads"
            )
        self.answer.notes = ["right so far: the logits"]

    def _check_gradients(self) -> None:
        """Compare with slopes, from the loss backwards: one mistake spoils all below."""
        p, encoder = self.p, self.encoder
        g = self.backward(DLOGITS.copy(), encoder(X, p)[1])
        if not isinstance(g, dict):
            kind = "nothing" if g is None else a_type(g)
            raise Stuck(f"encoder_backward returned {kind}; expected a dict of gradients")
        if missing := [name for name in p if g.get(name) is None]:
            raise Stuck(f"encoder_backward gives no gradient of {', '.join(missing)}")
        self.answer.listening = False  # thousands of calls follow
        right: list[str] = []
        for name in reversed(p):
            slope = slopes(lambda: encoder(X, p)[0], p[name], DLOGITS)
            if fault := fault_of(f"d{name}", g[name], slope, counts=COUNTS):
                says = self._mistake(
                    _flat({name: g[name] for name in p}),
                    lambda names: _flat(names.encoder_backward(DLOGITS, names.encoder(X, p)[1])),
                )
                fine = [f"from the loss backwards, these are right: {', '.join(right)}"]
                raise Stuck(says or fault, *(fine if right else []))
            right.append(f"d{name}")
        self.answer.listening = True
        self.answer.notes = ["right so far: the logits and the gradients"]

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
