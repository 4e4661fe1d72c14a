"""Marking a mixer of the reader's own: the rules that every mixer keeps, then its gradients."""

from typing import Any

import numpy as np

from npformer.core import Array, Context, Gradients, a_type
from npformer.learn.exercises.answer import Answer, Stuck
from npformer.learn.exercises.diagnosis import fault_of
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.invariants import failing_invariants
from npformer.learn.exercises.trials import check_returned, gradcheck_problems, slopes
from npformer.mixers import Mixer, MixerSettings
from npformer.proof.cases.case import draw, keep

SETTINGS = MixerSettings(d_model=8, n_heads=2, max_len=6)
MASK = keep([4, 2, 1], 4)
OTHERS = draw(2, 6, 8, seed=6), keep([3, 6], 6)
TOLERANCE = 1e-9
AGAIN = "after another forward pass (the cache is for what a call needs later, self for parameters)"


def mark(exercise: Exercise, answer: Answer) -> list[str]:
    """Return the first rules that the mixer breaks."""
    mixer = _build(answer)
    x = draw(3, 4, 8)
    problems = _shapes(answer, mixer, x) or _mixing(answer, mixer, x)
    problems = problems or _gradients(answer, mixer, x, None, "without a mask")
    answer.listening = False
    problems = problems or _explanation_problems(answer, mixer, x, None, "without a mask")
    problems = problems or _padding(answer, mixer, x)
    problems = problems or _gradients(answer, mixer, x, MASK, "with a mask")
    problems = problems or _explanation_problems(answer, mixer, x, MASK, "with a mask")
    try:
        problems = problems or _gradients(answer, mixer, x, MASK, AGAIN)
    except Stuck as stuck:
        raise Stuck(f"{AGAIN}, {stuck}") from None
    return (
        problems
        or gradcheck_problems(answer, " without a mask", "", mixer, x)
        or gradcheck_problems(answer, " with a mask", "", mixer, x, mask=MASK)
    )


def _build(answer: Answer) -> Mixer:
    kind = answer.function("OwnMixer")
    if not (isinstance(kind, type) and issubclass(kind, Mixer)):
        raise Stuck("OwnMixer is not a Mixer any more; keep `class OwnMixer(Mixer)`")
    mixer = answer.call(lambda: kind.build(SETTINGS, seed=0, dtype="float64"))
    if not isinstance(mixer, kind):
        raise Stuck("OwnMixer.build does not return an OwnMixer")
    for i, (name, array) in enumerate(mixer.parameters().items()):
        if array.dtype != np.float64:
            raise Stuck(
                f"{name} is {array.dtype} where dtype is 'float64'; make it with dtype=dtype"
            )
        array += 0.3 * draw(*array.shape, seed=i + 1)  # away from their first values
    return mixer


def _run(answer: Answer, mixer: Mixer, x: Array, mask: Array | None = None) -> tuple[Array, Any]:
    result = answer.call(mixer.forward, x, Context(mask=mask))
    check_returned("forward", result, ["y", "a cache"])
    return result  # type: ignore[no-any-return]


def _shapes(answer: Answer, mixer: Mixer, x: Array) -> list[str]:
    for given in (x, draw(2, 1, 8), draw(1, 6, 8)):
        y, _ = _run(answer, mixer, given.copy())
        if np.shape(y) != given.shape:
            return [f"y has shape {np.shape(y)} for x of shape {given.shape}; a mixer keeps it"]
        if not np.isfinite(y).all():
            return ["y holds NaN or infinity, without any padding"]
    return []


def _dependences(answer: Answer, mixer: Mixer, x: Array, mask: Array | None = None) -> Array:
    """Return whether token i depends on token j, (batch, length, length), by trying."""
    y, _ = _run(answer, mixer, x, mask)
    moved = np.zeros((len(x), x.shape[1], x.shape[1]), dtype=bool)
    for j in range(x.shape[1]):
        for change in (draw(8, seed=j + 20), draw(8, seed=j + 40)):
            other = x.copy()
            other[:, j] += change
            far = np.abs(_run(answer, mixer, other, mask)[0] - y).max(axis=-1)
            moved[:, :, j] |= far > TOLERANCE
    return moved


def _mixing(answer: Answer, mixer: Mixer, x: Array) -> list[str]:
    y, _ = _run(answer, mixer, x)
    other = x.copy()
    other[1] += draw(4, 8, seed=9)
    if np.abs(_run(answer, mixer, other)[0][[0, 2]] - y[[0, 2]]).max() > TOLERANCE:
        return ["one sequence of the batch sees another: a change of the second changed the others"]
    if not (_dependences(answer, mixer, x) & ~np.eye(4, dtype=bool)).any():
        return ["no token takes anything from another one, so nothing is mixed"]
    return []


def _gradients(answer: Answer, mixer: Mixer, x: Array, mask: Array | None, when: str) -> list[str]:
    """Compare the gradients with central differences."""
    _, cache = _run(answer, mixer, x, mask)
    dy, gradients = draw(*x.shape, seed=5), Gradients(mixer)
    if when == AGAIN:
        _run(answer, mixer, *OTHERS)
    dx = answer.call(mixer.backward, dy.copy(), cache, gradients)
    arrays = {"x": x.copy(), **mixer.parameters()}
    found = {"x": dx, **gradients}
    problems = []
    for name, array in arrays.items():
        right = slopes(lambda: _run(answer, mixer, arrays["x"], mask)[0], array, dy)
        counts = {"the length": 4.0, "the batch size": 3.0}
        if name != "x" and right.any() and not np.any(found[name]):
            problems.append(f"d{name} is 0: backward adds no gradient of this parameter")
        else:
            problems.append(fault_of(f"d{name}", found[name], right, counts=counts))
    return [f"{when}, {problem}" for problem in problems if problem]


def _padding(answer: Answer, mixer: Mixer, x: Array) -> list[str]:
    y, _ = _run(answer, mixer, x, MASK)
    problems = []
    loud = x.copy()
    loud[~MASK] = 100.0
    if np.abs(_run(answer, mixer, loud, MASK)[0] - y)[MASK].max() > TOLERANCE:
        return ["the mask is forgotten: a token changes when the numbers at padding do"]
    alone, _ = _run(answer, mixer, x[1:2, :2])
    if np.abs(y[1, :2] - alone[0]).max() > TOLERANCE:
        problems.append("a padded sequence gives other values than alone, without its padding")
    loud[~MASK] = np.nan
    y, cache = _run(answer, mixer, loud, MASK)
    if not np.isfinite(y[MASK]).all():
        return [*problems, "NaN at padding reaches tokens: 0 * NaN is NaN. tokens_of hides it"]
    dy = np.where(MASK[..., None], draw(3, 4, 8, seed=6), np.nan)
    gradients = Gradients(mixer)
    dx = answer.call(mixer.backward, dy, cache, gradients)
    if not np.isfinite(dx[MASK]).all() or not all(np.isfinite(g).all() for g in gradients.values()):
        return [*problems, "NaN at padding, in x or in dy, reaches gradients; tokens_of hides it"]
    empty, _ = _run(answer, mixer, x, keep([4, 0, 1], 4))
    if not np.isfinite(empty).all():
        return [*problems, "a sequence of padding alone gives NaN: is something divided by 0?"]
    return problems or failing_invariants(answer, mixer, "padding_changes_no_kept_token")


def _explanation_problems(
    answer: Answer, mixer: Mixer, x: Array, mask: Array | None, when: str
) -> list[str]:
    kept = x.copy()
    _run(answer, mixer, *OTHERS)  # what it leaves must not matter
    matrices = answer.call(mixer.explain, x, Context(mask=mask))
    if not isinstance(matrices, np.ndarray) or matrices.ndim != 4:
        found = "nothing" if matrices is None else a_type(matrices)
        if isinstance(matrices, np.ndarray):
            found = f"an array with {matrices.ndim} axes"
        return [f"explain gives {found}; expected an array (batch, heads, length, length)"]
    batch, heads, *pairs = matrices.shape
    if batch != len(x) or not heads or pairs != [x.shape[1]] * 2:
        expected = f"({len(x)}, heads, {x.shape[1]}, {x.shape[1]})"
        return [f"explain gives the shape {matrices.shape}; expected {expected}"]
    if not np.array_equal(x, kept):
        return ["explain changed the x that came in"]
    if not np.isfinite(matrices).all():
        return [f"explain gives NaN or infinity {when}"]
    takes: Array = np.asarray(np.abs(matrices) > TOLERANCE).any(axis=1)
    tokens = np.ones(x.shape[:2], dtype=bool) if mask is None else mask
    both = tokens[:, :, None] & tokens[:, None, :]
    if (takes & ~both).any():
        return [f"explain is not 0 in all rows and columns of padding {when}"]
    differ = (takes != _dependences(answer, mixer, x, mask)) & both
    if not differ.any():
        return []
    b, i, j = map(int, np.argwhere(differ)[0])
    of = f"token {i} of sequence {b}"
    if takes[b, i, j]:
        return [f"explain {when} says that {of} takes something from token {j}, and it does not"]
    return [f"explain {when} says that {of} takes nothing from token {j}, but it changes with it"]
