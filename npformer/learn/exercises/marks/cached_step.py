"""cached_step: one token of attention, with the keys and values of those before."""

import numpy as np

from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.function import Function
from npformer.learn.exercises.pair import Trial
from npformer.proof.cases.case import draw

WEIGHTS = tuple(0.7 * draw(4, 4, seed=seed) for seed in range(1, 4))
NONE = np.zeros((0, 4))

EXERCISE = Exercise(
    name="cached_step",
    title="one token of attention with a cache",
    page="chapters/caches.md",
    hints=(
        "Three products of the new token, two of which are kept. In which order: first attend, or "
        "first keep?",
        "Append the new key and the new value, then attend with the new query over all keys. No "
        "mask is needed: nothing comes after the newest token.",
        "scores are keys times q, divided by sqrt(d), one for each token; their softmax averages "
        "the values.",
    ),
    why="""\
In the whole pass, row t of the weights is softmax over the keys 0 to t, and y_t their average of
the values 0 to t. Keys and values of earlier tokens depend on those tokens alone, so they need not
be computed again; queries of earlier tokens are not needed any more. A step costs one row.""",
    mark=Function(
        "cached_step",
        ("y", "keys", "values"),
        (
            Trial("the fourth token", (draw(4), draw(3, 4, seed=5), draw(3, 4, seed=6), *WEIGHTS)),
            Trial("the first token", (draw(4, seed=7), NONE, NONE, *WEIGHTS)),
            Trial("the 41st token", (draw(4), draw(40, 4), draw(40, 4, seed=1), *WEIGHTS)),
        ),
        "attention's",
    ),
    wrong=(
        Wrong(
            "the new token does not see itself: its key and value are kept after it has attended",
            "scores = keys @ (x @ Wq) / math.sqrt(len(x))\n"
            "    weights = np.exp(scores - scores.max())\n"
            "    weights = weights / weights.sum()\n"
            "    return weights @ values",
            "scores = keys[:-1] @ (x @ Wq) / math.sqrt(len(x))\n"
            "    weights = np.exp(scores - scores.max())\n"
            "    weights = weights / weights.sum()\n"
            "    return weights @ values[:-1]",
        ),
        Wrong("the scores are not divided by sqrt(d)", " / math.sqrt(len(x))", ""),
        Wrong("the weights of keys and values are swapped", "(x @ Wk)[None]", "(x @ Wv)[None]"),
        Wrong("the newest token has no query of its own", "(x @ Wq)", "x"),
        Wrong(
            "the softmax is left out",
            "weights = weights / weights.sum()",
            "weights = scores",
        ),
    ),
)
