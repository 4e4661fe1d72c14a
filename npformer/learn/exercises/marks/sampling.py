"""sampling: temperature, top-k and top-p."""

import numpy as np

from npformer.learn.exercises.exercise import Exercise, Wrong
from npformer.learn.exercises.function import Function
from npformer.learn.exercises.pair import Trial

LOGITS = np.array([0.3, 2.0, -1.0, 1.1, 0.9, -0.4])

EXERCISE = Exercise(
    name="sampling",
    title="temperature, top-k and top-p",
    page="chapters/language_models.md",
    hints=(
        "Three steps, each on what the one before has left. A token that is left out has the logit "
        "minus infinity, or the probability 0.",
        "For top-p sort the probabilities, the largest first, and sum them up. A token stays if "
        "the sum of those before it is still below top_p: so the one that crosses it stays.",
        "Divide by the temperature; put minus infinity below the k-th largest; softmax; leave out "
        "what top-p leaves out; divide by the sum.",
    ),
    why="""\
Dividing by a temperature below 1 makes differences of logits larger, so likely tokens likelier.
softmax of minus infinity is 0, so top-k needs no more than that. The fewest tokens that sum to p
are the first of the sorted ones up to the one with which the sum reaches p. Dividing by what is
left makes it a distribution again, in which the tokens that stay keep their ratios.""",
    mark=Function(
        "distribution",
        ("the distribution",),
        (
            Trial("temperature 1", (LOGITS,)),
            Trial("temperature 0.5", (LOGITS, 0.5)),
            Trial("top_k of 3", (LOGITS, 1.0, 3)),
            Trial("top_p of 0.75", (LOGITS, 1.0, None, 0.75)),
            Trial("top_p of 0.15", (LOGITS, 1.0, None, 0.15)),
            Trial("all three", (LOGITS, 0.5, 4, 0.6)),
            Trial("a larger vocabulary", (np.sin(np.arange(300.0)), 1.0, 100, 0.9)),
        ),
        "the one to draw from",
    ),
    wrong=(
        Wrong(
            "the temperature multiplies; it divides", "logits / temperature", "logits * temperature"
        ),
        Wrong("the temperature is left out", "logits / temperature", "logits"),
        Wrong("what is left does not sum to 1", "return p / p.sum()", "return p"),
        Wrong(
            "the token with which the sum reaches top_p is left out",
            "before < top_p",
            "before + p[order] <= top_p",
        ),
        Wrong(
            "top_p is used relative to the likeliest token (min-p); it bounds a sum",
            "kept = order[before < top_p]",
            "kept = np.flatnonzero(p >= top_p * p.max())",
        ),
        Wrong("one token too many stays", "np.sort(z)[-top_k]", "np.sort(z)[-top_k - 1]"),
        Wrong(
            "top_p is of the model's probabilities; it comes after the temperature and top_k",
            "order = np.argsort(-p)\n        before = np.cumsum(p[order]) - p[order]",
            "q = softmax(logits)\n        order = np.argsort(-q)\n"
            "        before = np.cumsum(q[order]) - q[order]",
        ),
    ),
)
