"""Marking a mixer of the reader's own: the rules that every mixer keeps, then its gradients."""

from typing import Any

import numpy as np

from npformer.core import Array, Context, Gradients, a_type
from npformer.learn.exercises.answer import Answer, Stuck
from npformer.learn.exercises.diagnosis import fault_of
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.invariants import broken_invariants
from npformer.learn.exercises.trials import check_returned, pass_gradcheck, slopes
from npformer.mixers import Mixer, MixerSettings
from npformer.proof.cases.case import draw, keep

SETTINGS = MixerSettings(d_model=8, n_heads=2, max_len=6)
MASK = keep([4, 2, 1], 4)
X = draw(3, 4, 8)
OTHERS = draw(2, 6, 8, seed=6), keep([3, 6], 6)
TOLERANCE = 1e-9
COUNTS = {"the length": 4.0, "the batch size": 3.0}
AGAIN = "after another forward pass (the cache is for what a call needs later, self for parameters)"


def mark(exercise: Exercise, answer: Answer) -> list[str]:
    """Return the first rules that the mixer breaks."""
    marking = Marking(answer)
    marking.check_shapes()
    marking.check_mixing()
    marking.check_gradients(None, "without a mask")
    answer.listening = False
    marking.check_explanation(None, "without a mask")
    marking.check_padding()
    marking.check_gradients(MASK, "with a mask")
    marking.check_explanation(MASK, "with a mask")
    marking.check_gradients(MASK, AGAIN)
    pass_gradcheck(answer, " without a mask", "", marking.mixer, X)
    pass_gradcheck(answer, " with a mask", "", marking.mixer, X, mask=MASK)
    return broken_invariants(answer, marking.mixer, "padding_changes_no_kept_token")


class Marking:
    """A reader's mixer. Each check raises `Stuck`, which says what is wrong."""

    def __init__(self, answer: Answer) -> None:
        self.answer, kind = answer, answer.function("OwnMixer")
        if not (isinstance(kind, type) and issubclass(kind, Mixer)):
            raise Stuck("OwnMixer is not a Mixer any more; keep `class OwnMixer(Mixer)`")
        self.mixer: Mixer = answer.call(kind.build, SETTINGS, seed=0, dtype="float64")
        if not isinstance(self.mixer, kind):
            raise Stuck("OwnMixer.build does not return an OwnMixer")
        for i, (name, array) in enumerate(self.mixer.parameters().items()):
            if array.dtype != np.float64:
                problem = f"{name} is {array.dtype} where dtype is 'float64'"
                raise Stuck(f"{problem}; make it with dtype=dtype")
            array += 0.3 * draw(*array.shape, seed=i + 1)  # away from their first values

    def run(self, x: Array, mask: Array | None = None) -> tuple[Array, Any]:
        """Return y and a cache."""
        result = self.answer.call(self.mixer.forward, x.copy(), Context(mask=mask))
        check_returned("forward", result, ["y", "a cache"])
        return result  # type: ignore[no-any-return]

    def backward(self, dy: Array, cache: Any) -> dict[str, Any]:
        """Return the gradients of x and of the parameters."""
        gradients = Gradients(self.mixer)
        dx = self.answer.call(self.mixer.backward, dy, cache, gradients)
        return {"x": dx, **gradients}

    def check_shapes(self) -> None:
        """Check y, for several lengths."""
        for x in (X, draw(2, 1, 8), draw(1, 6, 8)):
            y, _ = self.run(x)
            if np.shape(y) != x.shape:
                shapes = f"y has shape {np.shape(y)} for x of shape {x.shape}"
                raise Stuck(f"{shapes}; a mixer keeps it")
            if not np.isfinite(y).all():
                raise Stuck("y holds NaN or infinity, without any padding")

    def change_at(self, x: Array, y: Array, mask: Array | None = None) -> Array:
        """Return which tokens are not those of y, for another x."""
        far = np.abs(self.run(x, mask)[0] - y).max(axis=-1)
        return np.asarray(far > TOLERANCE)

    def dependences(self, mask: Array | None = None) -> Array:
        """Return whether token i depends on token j, (batch, length, length), by trying."""
        y, _ = self.run(X, mask)
        depends = np.zeros((len(X), X.shape[1], X.shape[1]), dtype=bool)
        for j in range(X.shape[1]):
            for seed in (j + 20, j + 40):
                other = X.copy()
                other[:, j] += draw(8, seed=seed)
                depends[:, :, j] |= self.change_at(other, y, mask)
        return depends

    def check_mixing(self) -> None:
        """Check that tokens of a sequence see each other, and sequences do not."""
        other = X.copy()
        other[1] += draw(4, 8, seed=9)
        if self.change_at(other, self.run(X)[0])[[0, 2]].any():
            says = "a change of the second changed the others"
            raise Stuck(f"one sequence of the batch sees another: {says}")
        if not (self.dependences() & ~np.eye(4, dtype=bool)).any():
            raise Stuck("no token takes anything from another one, so nothing is mixed")

    def check_gradients(self, mask: Array | None, when: str) -> None:
        """Compare the gradients with central differences."""
        _, cache = self.run(X, mask)
        dy = draw(*X.shape, seed=5)
        if when == AGAIN:
            self.run(*OTHERS)
        try:
            gradients = self.backward(dy.copy(), cache)
        except Stuck as stuck:
            raise Stuck(f"{when}, {stuck}") from stuck
        arrays = {"x": X.copy(), **self.mixer.parameters()}
        problems = []
        for name, array in arrays.items():
            right = slopes(lambda: self.run(arrays["x"], mask)[0], array, dy)
            if name != "x" and right.any() and not np.any(gradients[name]):
                problems.append(f"d{name} is 0: backward adds no gradient of this parameter")
            else:
                problems.append(fault_of(f"d{name}", gradients[name], right, counts=COUNTS))
        if any(problems):
            raise Stuck(*(f"{when}, {problem}" for problem in problems if problem))

    def check_padding(self) -> None:
        """Check that nothing at padding reaches tokens, in both directions."""
        y, _ = self.run(X, MASK)
        loud = np.where(MASK[..., None], X, 100.0)
        if self.change_at(loud, y, MASK)[MASK].any():
            raise Stuck("the mask is forgotten: a token changes when the numbers at padding do")
        if self.change_at(X[1:2, :2], y[1:2, :2]).any():
            raise Stuck("a padded sequence gives other values than alone, without its padding")
        y, cache = self.run(np.where(MASK[..., None], X, np.nan), MASK)
        if not np.isfinite(y[MASK]).all():
            raise Stuck("NaN at padding reaches tokens: 0 * NaN is NaN. tokens_of hides it")
        dy = np.where(MASK[..., None], draw(3, 4, 8, seed=6), np.nan)
        gradients = self.backward(dy, cache)
        gradients["x"] = gradients["x"][MASK]
        if not all(np.isfinite(g).all() for g in gradients.values()):
            raise Stuck("NaN at padding, in x or in dy, reaches gradients; tokens_of hides it")
        if not np.isfinite(self.run(X, keep([4, 0, 1], 4))[0]).all():
            raise Stuck("a sequence of padding alone gives NaN: is something divided by 0?")

    def check_explanation(self, mask: Array | None, when: str) -> None:
        """Compare what `explain` says with what each token depends on."""
        x = X.copy()
        self.run(*OTHERS)  # what it leaves must not matter
        matrices = self.answer.call(self.mixer.explain, x, Context(mask=mask))
        batch, n = X.shape[:2]
        shape: tuple[int, ...] = matrices.shape if isinstance(matrices, np.ndarray) else ()
        if len(shape) != 4 or shape != (batch, shape[1] or 1, n, n):
            description = f"an array of shape {shape}" if shape else a_type(matrices)
            raise Stuck(f"explain gives {description}; expected shape ({batch}, heads, {n}, {n})")
        if not np.array_equal(x, X):
            raise Stuck("explain changed the x that came in")
        if not np.isfinite(matrices).all():
            raise Stuck(f"explain gives NaN or infinity {when}")
        takes: Array = np.asarray(np.abs(matrices) > TOLERANCE).any(axis=1)
        tokens = np.ones(X.shape[:2], dtype=bool) if mask is None else mask
        token_pairs = tokens[:, :, None] & tokens[:, None, :]
        if (takes & ~token_pairs).any():
            raise Stuck(f"explain is not 0 in all rows and columns of padding {when}")
        for b, i, j in np.argwhere((takes != self.dependences(mask)) & token_pairs).tolist():
            what, truth = "something", "it does not"
            if not takes[b, i, j]:
                what, truth = "nothing", "it changes with it"
            says = f"token {i} of sequence {b} takes {what} from token {j}"
            raise Stuck(f"explain {when} says that {says}, but {truth}")
