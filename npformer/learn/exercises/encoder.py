"""Marking an encoder made of a reader's pairs: logits, gradients, training, and the pairs."""

import copy
import re
import types
from collections.abc import Callable
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
    try:
        problems = _problems(exercise, answer)
    except Stuck as stuck:
        problems = [str(stuck)]
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


def _problems(exercise: Exercise, answer: Answer) -> list[str]:
    """Check the logits, then the gradients, then the result of training."""
    functions = map(answer.function, ("parameters", "encoder", "encoder_backward", "train"))
    parameters, encoder, backward, train = (_guard(answer, function) for function in functions)
    p = {
        name: array.astype("float64") + 0.3 * draw(*array.shape, seed=i)
        for i, (name, array) in enumerate(parameters(8, 12).items())
    }
    formula, *mistakes = _encoders(exercise, answer)
    problems = _forward(encoder, p, mistakes) or _formula(answer, encoder, p, formula)
    problems = problems or _gradients(answer, encoder, backward, p, mistakes)
    problems = problems or _steps(parameters, train, mistakes)
    answer.listening = False
    return problems or _training(answer, encoder, train)


def _guard(answer: Answer, function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **settings: answer.call(lambda: function(*args, **settings))


def _encoders(exercise: Exercise, answer: Answer) -> list[tuple[str, types.SimpleNamespace]]:
    """Return the encoder with the solved pairs; then, with the reader's, it and each mistake."""
    text = re.sub(r"^.* = yours\(.*\n", "", exercise.solved, flags=re.MULTILINE)
    found = [("", exercise.run(text)) for _ in range(2)]
    found += [
        (one.says, exercise.run(text.replace(one.right, one.wrong))) for one in exercise.wrong
    ]
    solved: dict[str, Any] = {}
    for name in FILES:
        solved |= vars(exercise_of(name).run(exercise_of(name).solved))
    own = [pair for name in FILES for pair in (name, name.removesuffix("_backward"))]
    for i, (_, names) in enumerate(found):
        given = answer.names if i and all(name in answer.names for name in own) else solved
        names.encoder.__globals__.update({name: given[name] for name in own})
    return found


def _alike(got: Any, of: Callable[[types.SimpleNamespace], Any], mistakes: Any) -> list[str]:
    """Return the mistake that gives the same result as the reader's encoder, if one does."""
    found = mistaken_results(mistakes, of)
    if same(got, found[0][1]):
        return []
    return [says for says, other in found[1:] if same(got, other)][:1]


def _flat(arrays: dict[str, Array]) -> Array:
    return np.concatenate([np.ravel(arrays[name]) for name in sorted(arrays)])


def _forward(encoder: Callable[..., Any], p: dict[str, Array], mistakes: Any) -> list[str]:
    given = copy.deepcopy(p)
    result = encoder(X, p)
    check_returned("encoder", result, ["logits", "a cache"])
    logits = result[0]
    if np.shape(logits) != (3, 10):
        return [f"the logits of 3 images have the shape {np.shape(logits)}; expected (3, 10)"]
    if not np.isfinite(logits).all():
        return ["the logits hold NaN or infinity"]
    if any(not np.array_equal(p[name], given[name]) for name in p):
        return ["encoder changed a parameter in place"]
    if says := _alike(logits, lambda names: names.encoder(X, p)[0], mistakes):
        return [f"encoder: {says[0]}"]
    moved = {name: p | {name: p[name] + 0.1 * draw(*p[name].shape)} for name in p}
    if unused := [name for name in p if same(encoder(X, moved[name])[0], logits)]:
        return [f"encoder does not use {', '.join(unused)}: when they change, no logit does"]
    return []


def _formula(answer: Answer, encoder: Any, p: dict[str, Array], formula: Any) -> list[str]:
    """Compare with the encoder that the file describes, with the solved pairs."""
    _, names = formula
    shapes = {name: array.shape for name, array in names.parameters(8, 12).items()}
    if shapes != {name: array.shape for name, array in p.items()}:
        return ["parameters gives other names or shapes than the one you were given; put it back"]
    if same(encoder(X, p)[0], names.encoder(X, p)[0]):
        answer.notes = ["right so far: the logits"]
        return []
    return [
        "the logits are not those of the formulas at the top of the file, with "
        f"{names.N_BLOCKS} blocks and {names.N_HEADS} heads"
    ]


def _gradients(
    answer: Answer,
    encoder: Callable[..., Any],
    backward: Callable[..., Any],
    p: dict[str, Array],
    mistakes: Any,
) -> list[str]:
    """Compare with central differences, from the loss backwards: one mistake spoils all below."""
    g = backward(DLOGITS.copy(), encoder(X, p)[1])
    if not isinstance(g, dict):
        kind = "nothing" if g is None else a_type(g)
        return [f"encoder_backward returned {kind}; expected a dict of gradients"]
    if missing := [name for name in p if g.get(name) is None]:
        return [f"encoder_backward gives no gradient of {', '.join(missing)}"]
    answer.listening = False  # thousands of calls follow
    shapes = all(np.shape(g[name]) == array.shape for name, array in p.items())
    got = _flat({name: g[name] for name in p}) if shapes else None
    right: list[str] = []
    for name in reversed(p):
        counts = {"the batch size": 3.0, "the length": 8.0}
        slope = slopes(lambda: encoder(X, p)[0], p[name], DLOGITS)
        if fault := fault_of(f"d{name}", g[name], slope, counts=counts):
            says = _alike(
                got,
                lambda names: _flat(names.encoder_backward(DLOGITS, names.encoder(X, p)[1])),
                mistakes,
            )
            fine = [f"from the loss backwards, these are right: {', '.join(right)}"]
            return [*(says or [fault]), *(fine if right else [])]
        right.append(f"d{name}")
    answer.listening = True
    answer.notes = ["right so far: the logits and the gradients"]
    return []


def _steps(parameters: Any, train: Callable[..., Any], mistakes: Any) -> list[str]:
    """Look at the first few steps of training."""
    x, labels = (array[:96] for array in digits().train)
    p = train(x, labels, epochs=1)
    before = parameters()
    if not isinstance(p, dict) or p.keys() != before.keys():
        return ["train returns no parameters; expected p, a dict with their names"]
    if says := _alike(_flat(p), lambda names: _flat(names.train(x, labels, epochs=1)), mistakes):
        return [f"train: {says[0]}"]
    if still := [name for name in p if np.array_equal(p[name], before[name])]:
        which = ", ".join(still) if len(still) < len(p) else "the parameters"
        return [f"an epoch does not change {which}: does p get what adam_update returns?"]
    return []


def _training(answer: Answer, encoder: Callable[..., Any], train: Callable[..., Any]) -> list[str]:
    data = digits()
    p = train(*data.train)
    seen, unseen = (
        float((np.argmax(encoder(x, p)[0], axis=-1) == labels).mean())
        for x, labels in (data.train, data.test)
    )
    if unseen >= ENOUGH:
        answer.notes = [f"{unseen:.1%} of {len(data.test[0])} digits that it has not seen"]
        return []
    if seen < 0.5:
        why = (
            "it hardly learns: look at the learning rate, at what a step does with g, at whether "
            "images and labels belong together, and at the order of adam_update's results: theta, "
            "m, v"
        )
    elif seen > 0.98:
        why = "it knows by heart what it has seen: fewer steps, or smaller weights, may help"
    else:
        why = "more epochs, or another learning rate, may help"
    return [
        f"trained, it knows {unseen:.1%} of {len(data.test[0])} digits that it has not seen, and "
        f"{seen:.1%} of those that it has; expected {ENOUGH:.0%} of the former. {why}"
    ]
