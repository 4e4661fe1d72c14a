"""own_encoder: an encoder of the reader's own pairs, trained on digits."""

import copy
import re
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import Array
from npformer.data import digits
from npformer.exercises.answer import Answer
from npformer.exercises.diagnosis import fault_of, same
from npformer.exercises.exercise import Exercise, Wrong
from npformer.exercises.folder import find, source_of
from npformer.exercises.referee import PASSED, judge
from npformer.exercises.table import exercise as exercise_of
from npformer.exercises.table import stem
from npformer.proof.cases.case import draw

PAIRS = ("linear", "relu", "layer_norm", "multi_head", "pooling", "cross_entropy")
FILES = (*(f"{name}_backward" for name in PAIRS), "adam_update")
X, DLOGITS = draw(3, 8, 8), draw(3, 10, seed=1)
EPS = 1e-5
ENOUGH = 0.95


def mark(exercise: Exercise, answer: Answer) -> list[str]:
    """Check the logits, then the gradients, then what training comes to."""
    functions = map(answer.function, ("parameters", "encoder", "encoder_backward", "train"))
    parameters, encoder, backward, train = (_called(answer, function) for function in functions)
    p = {
        name: array.astype("float64") + 0.3 * draw(*array.shape, seed=i)
        for i, (name, array) in enumerate(parameters(8, 12).items())
    }
    mistakes = _mistakes(exercise, answer)
    problems = _forward(encoder, p, mistakes) or _gradients(answer, encoder, backward, p, mistakes)
    problems = problems or _steps(parameters, train, mistakes)
    answer.quiet()
    return _of_pairs(answer) + problems if problems else _training(encoder, train)


def _called(answer: Answer, function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **settings: answer.call(lambda: function(*args, **settings))


def _mistakes(exercise: Exercise, answer: Answer) -> list[tuple[str, types.SimpleNamespace]]:
    """Return each typical mistake, and the encoder with it, made of the reader's pairs.

    The first one is no mistake.
    """
    text = re.sub(r"^.* = yours\(.*\n", "", exercise.solved, flags=re.MULTILINE)
    found = [("", exercise.run(text))]
    found += [
        (one.says, exercise.run(text.replace(one.right, one.wrong))) for one in exercise.wrong
    ]
    own = [pair for name in FILES for pair in (name, name.removesuffix("_backward"))]
    for _, names in found:
        names.encoder.__globals__.update({k: answer.names[k] for k in own if k in answer.names})
    return found


def _alike(got: Any, of: Callable[[types.SimpleNamespace], Any], mistakes: Any) -> list[str]:
    """Return the mistake that gives the same as the reader's encoder, if one does."""
    found = []
    for says, names in mistakes:
        try:
            with np.errstate(all="ignore"):
                found.append((says, of(names)))
        except Exception:  # a mistake that does not run here explains nothing
            continue
        if same(got, found[0][1]):
            return []
    return [says for says, other in found[1:] if same(got, other)][:1]


def _flat(arrays: dict[str, Array]) -> Array:
    return np.concatenate([np.ravel(arrays[name]) for name in sorted(arrays)])


def _forward(encoder: Callable[..., Any], p: dict[str, Array], mistakes: Any) -> list[str]:
    given = copy.deepcopy(p)
    result = encoder(X, p)
    if not isinstance(result, tuple) or len(result) != 2:
        kind = "nothing" if result is None else f"a {type(result).__name__}"
        return [f"encoder returned {kind}; expected a tuple: logits and a cache"]
    logits = result[0]
    if np.shape(logits) != (3, 10):
        return [f"the logits of 3 images have the shape {np.shape(logits)}; expected (3, 10)"]
    if not np.isfinite(logits).all():
        return ["the logits hold NaN or infinity"]
    if any(not np.array_equal(p[name], given[name]) for name in p):
        return ["encoder changed a parameter in place"]
    if says := _alike(logits, lambda names: names.encoder(X, p)[0], mistakes):
        return [f"encoder: {says[0]}"]
    unused = [
        name
        for name in p
        if same(encoder(X, p | {name: p[name] + 0.1 * draw(*p[name].shape)})[0], logits)
    ]
    if unused:
        return [f"encoder does not use {', '.join(unused)}: when they change, no logit does"]
    return []


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
        kind = "nothing" if g is None else f"a {type(g).__name__}"
        return [f"encoder_backward returned {kind}; expected a dict of gradients"]
    if missing := [name for name in p if g.get(name) is None]:
        return [f"encoder_backward gives no gradient of {', '.join(missing)}"]
    answer.listening = False  # thousands of calls follow
    shapes = all(np.shape(g[name]) == array.shape for name, array in p.items())
    got = _flat({name: g[name] for name in p}) if shapes else None
    right: list[str] = []
    for name in reversed(p):
        counts = {"the batch size": 3.0, "the length": 8.0}
        if fault := fault_of(f"d{name}", g[name], _slopes(encoder, p, name), counts=counts):
            says = _alike(
                got,
                lambda names: _flat(names.encoder_backward(DLOGITS, names.encoder(X, p)[1])),
                mistakes,
            )
            fine = [f"from the loss backwards, these are right: {', '.join(right)}"]
            return [*(says or [fault]), *(fine if right else [])]
        right.append(f"d{name}")
    answer.listening = True
    return []


def _slopes(encoder: Callable[..., Any], p: dict[str, Array], name: str) -> Array:
    """Return central differences, entry by entry."""
    slopes = np.zeros_like(p[name])
    for at in np.ndindex(slopes.shape):
        ends = []
        for h in (EPS, -EPS):
            moved = p[name].copy()
            moved[at] += h
            ends.append(encoder(X, p | {name: moved})[0])
        slopes[at] = ((ends[0] - ends[1]) * DLOGITS).sum() / (2.0 * EPS)
    return slopes


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


def _training(encoder: Callable[..., Any], train: Callable[..., Any]) -> list[str]:
    data = digits()
    p = train(*data.train)
    seen, unseen = (
        float((np.argmax(encoder(x, p)[0], axis=-1) == labels).mean())
        for x, labels in (data.train, data.test)
    )
    if unseen >= ENOUGH:
        return []
    if seen < 0.5:
        why = "it hardly learns: look at the learning rate, and at what a step does with g"
    elif seen > 0.98:
        why = "what it has seen it knows by heart: fewer steps, or smaller weights, may help"
    else:
        why = "more epochs, or another learning rate, may help"
    return [
        f"trained, it knows {unseen:.1%} of {len(data.test[0])} digits that it has not seen, and "
        f"{seen:.1%} of those that it has; expected {ENOUGH:.0%} of the former. {why}"
    ]


def _of_pairs(answer: Answer) -> list[str]:
    """Return which of the reader's other files are wrong: they may be the reason."""
    found = []
    for name in FILES if "yours(" in answer.text else ():
        path = find(Path(), name)
        if path is not None:
            text, places = source_of(path)
            if judge(exercise_of(name), Answer(text, str(path), places)).state not in PASSED:
                found.append(f"{stem(name)} is not right itself; `npformer exercises check {name}`")
    return found


EXERCISE = Exercise(
    name="own_encoder",
    title="an encoder of your own pairs, trained on digits",
    page="chapters/block.md",
    hints=(
        "Write the forward passes first, one function a line, each with a cache of its own. Then "
        "read them from bottom to top: each line has a backward line that takes the same cache.",
        "A residual connection hands its gradient on twice: around the function, and through it. "
        "The blocks are left in the reverse order. All images have the same positions, so their "
        "gradient is a sum over the batch; the gradient of x is for nobody.",
        "A step: encoder and cross_entropy of the images in `rows` and of their labels; "
        "cross_entropy_backward of 1.0, encoder_backward of what it gives; then adam_update for "
        "each name, whose three results are the new p, m and v of that name.",
    ),
    why="""\
Each backward line answers a forward line, from the last one to the first. At h = h + f(h) the
gradient goes around f and through it, and both add up: dh = dh + f_backward(dh). Adding positions
gives them the same gradient as h, summed over the batch that shares them. In a step, the loss is
the end of the chain, so its own gradient is 1.""",
    mark=mark,
    seconds=60.0,
    wrong=(
        Wrong(
            "h goes around the feed-forward network too, and that way back is missing",
            "    dh = dh + d\n",
            "    dh = d\n",
        ),
        Wrong(
            "h goes around the attention too, and that way back is missing",
            "return dh + d, g",
            "return d, g",
        ),
        Wrong(
            "the attention is left out of the way back: its dh comes around it alone",
            "return dh + d, g",
            "return dh, g",
        ),
        Wrong(
            "the blocks are gone through in the order of the forward pass; it is the reverse",
            "in reversed(range(N_BLOCKS))",
            "in range(N_BLOCKS)",
        ),
        Wrong(
            "what comes back through a block does not reach the next one",
            "d, of_block = block_backward",
            "_, of_block = block_backward",
        ),
        Wrong("the residual connection around the attention is missing", "h = h + a", "h = a"),
        Wrong(
            "the residual connection around the feed-forward network is missing",
            "return h + f, (",
            "return f, (",
        ),
        Wrong(
            "the second norm takes the h from before the attention",
            "    h = h + a\n    n, norm2 = layer_norm(h,",
            "    before, h = h, h + a\n    n, norm2 = layer_norm(before,",
        ),
        Wrong(
            "the labels are those of other images: `rows` says which",
            "labels[rows]",
            "labels[begin : begin + batch]",
        ),
        Wrong(
            "it climbs: the gradient of the loss by itself is 1",
            "cross_entropy_backward(1.0,",
            "cross_entropy_backward(-1.0,",
        ),
        Wrong(
            "m and v are not kept: each step begins with 0",
            "p[name], m[name], v[name] =",
            "p[name], _, _ =",
        ),
        Wrong(
            "every step takes itself for the first one: look at t",
            "v[name], t, rate",
            "v[name], 1, rate",
        ),
    ),
)
