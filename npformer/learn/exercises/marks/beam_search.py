"""beam_search: the likeliest sequence, following several at a time."""

import numpy as np

from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.function import Function
from npformer.learn.exercises.pair import Trial


def follow(tokens: list[int]) -> np.ndarray:
    """Return log probabilities of three tokens: token 0 looks best at first, and leads nowhere."""
    logits = np.array([1.0, 0.8, -1.0])
    if tokens:
        # From seed 1700, one beam, two and all find different sequences, and so does each mistake.
        seed = 1700 + sum((int(token) + 1) * 4**i for i, token in enumerate(tokens))
        logits = (0.1 if tokens[0] == 0 else 1.0) * np.random.default_rng(seed).normal(size=3)
    return np.asarray(logits - np.log(np.exp(logits).sum()))


EXERCISE = Exercise(
    name="beam_search",
    title="the likeliest sequence, with several beams",
    page="chapters/language_models.md",
    hints=(
        "Keep pairs of a log probability and a list of tokens. One step makes beams times V pairs "
        "of beams pairs, and keeps the best.",
        "The new log probability is the old one plus that of the token. Sort all continuations of "
        "all beams together: two of the best may come from the same beam.",
    ),
    why="""\
log P of a sequence is the sum of log p of each token, given those before. Greedy search takes the
likeliest token each time, and cannot know that it leads nowhere. Several beams keep a token that is
second now and first later. With as many beams as there are sequences nothing is ever left out, so
the search is exhaustive; with one it is greedy.""",
    mark=Function(
        "beam_search",
        ("the sequence",),
        (
            Trial("one beam, which is greedy", (follow, 4, 1)),
            Trial("two beams", (follow, 4, 2)),
            Trial("81 beams, which are all sequences", (follow, 4, 81)),
        ),
        "the likeliest that is left",
    ),
    wrong=(
        Wrong(
            "it forgets the log probability so far: that of a sequence is a sum",
            "log_p + more",
            "more",
        ),
        Wrong("the least likely ones go on", "-each[0]", "each[0]"),
        Wrong(
            "each beam keeps its own best token; all continuations compete with each other",
            "for token, more in enumerate(follow(tokens))\n        ]",
            "for token, more in enumerate(follow(tokens))\n"
            "            if more == max(follow(tokens)) or not tokens\n        ]",
        ),
    ),
)
