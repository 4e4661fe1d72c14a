"""How each exercise is marked: the trials of its function, and what must hold beside."""

import math
from typing import Any

import numpy as np

from npformer.learn.exercises import broken_model, encoder, function, mixer, pair
from npformer.learn.exercises.invariants import adam_by, layer_norm_by, two_dropouts_by
from npformer.learn.exercises.trials import Trial
from npformer.proof.cases.case import draw, keep


def weights(d: int, n: int, scale: float = 0.5, seed: int = 1) -> tuple[np.ndarray, ...]:
    """Return n square matrices."""
    return tuple(scale * draw(d, d, seed=seed + i) for i in range(n))


def draws(*shapes: Any, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Return an array of normal numbers for each shape."""
    tuples = [shape if isinstance(shape, tuple) else (shape,) for shape in shapes]
    return tuple(draw(*shape, seed=seed + i) for i, shape in enumerate(tuples))


def row(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return gamma and beta of a layer norm."""
    return 1.5 + draw(n, seed=1), draw(n, seed=2)


def follow(tokens: list[int]) -> np.ndarray:
    """Return log probabilities of three tokens: token 0 looks best at first, and leads nowhere."""
    logits = np.array([1.0, 0.8, -1.0])
    if tokens:
        # From seed 1700, one beam, two and all find different sequences, and so does each mistake.
        seed = 1700 + sum((int(token) + 1) * 4**i for i, token in enumerate(tokens))
        logits = (0.1 if tokens[0] == 0 else 1.0) * np.random.default_rng(seed).normal(size=3)
    return np.asarray(logits - np.log(np.exp(logits).sum()))


def adam_trial(t: int) -> Trial:
    """Return the trial of step t; gradients grow from step to step."""
    theta = draw(3, 2)
    gradient = draw(3, 2, seed=t) * 10.0 ** (t - 3)
    m = 0.1 * draw(3, 2, seed=8)
    v = 0.1 * draw(3, 2, seed=9) ** 2
    lr, beta1, beta2, eps = 0.01, 0.8, 0.95, 1e-3
    return Trial(f"step {t}", theta, gradient, m, v, t, lr, beta1, beta2, eps)


MASK = np.array([[[True, True, False, True, True]] * 4, [[True, False, False, True, False]] * 4])
MASK[1, 2] = False  # a query that may see no key
NONE = np.zeros((0, 4))
MAPS = (3, 4), 4, (4, 5), 5  # of a dense synthesizer, for five tokens
LABELS, SOME = np.array([0, 3, 1, 1, 2]), np.array([2, -1, 0, -1, 1, 1])
LOGITS = np.array([0.3, 2.0, -1.0, 1.1, 0.9, -0.4])

TRIALS: dict[str, list[Trial]] = {
    "linear_backward": [
        Trial("x of shape (6, 3)", *draws((6, 3), (3, 4), 4), rows=6),
        Trial("x of shape (2, 5, 3)", *draws((2, 5, 3), (3, 4), 4), rows=10, batch=2),
        Trial("larger arrays", *draws((5, 12, 9), (9, 14), 14)),
    ],
    "conv1d_backward": [
        Trial("a kernel of size 3", *draws((2, 5, 3), (3, 3, 4), 4), rows=10, batch=2, kernel=3),
        Trial("a kernel of size 1", *draws((2, 5, 3), (1, 3, 4), 4)),
        Trial("a kernel of size 5", *draws((2, 5, 3), (5, 3, 2), 2)),
        Trial("larger arrays", *draws((5, 20, 4), (11, 4, 5), 5)),
    ],
    "relu_backward": [
        Trial("a matrix", draw(4, 5)),
        Trial("numbers above 100", 100.0 + np.abs(draw(2, 2, 3))),
        Trial("larger arrays", draw(3, 12, 20)),
    ],
    "gelu_backward": [
        Trial("a matrix", 2.0 * draw(4, 5)),
        Trial("three axes", draw(2, 3, 4)),
        Trial("larger arrays", draw(3, 12, 20)),
    ],
    "softmax_backward": [
        Trial("a matrix", draw(4, 5), rows=4, columns=5),
        Trial("three axes", draw(2, 3, 4)),
        Trial("a single row", draw(6)),
        Trial("larger arrays", draw(3, 12, 20)),
    ],
    "layer_norm_backward": [
        Trial("x of shape (4, 5)", draw(4, 5), *row(5), rows=4, features=5),
        Trial("x of shape (2, 3, 4)", draw(2, 3, 4), *row(4), rows=6, batch=2),
        Trial("larger arrays", draw(3, 12, 20), *row(20)),
    ],
    "cross_entropy_backward": [
        Trial("rows that all have a label", draw(5, 4), LABELS, rows=5, classes=4),
        Trial("some rows without a label", draw(6, 3, seed=1), SOME, rows=6, labels=4),
        Trial("no label at all", draw(2, 3, seed=2), np.array([-1, -1])),
        Trial("larger arrays", draw(40, 20), np.arange(-20, 20)),
    ],
    "embedding_backward": [
        Trial("ids that all differ", np.array([4, 1, 2]), draw(6, 3)),
        Trial("ids that occur twice", np.array([[1, 1, 4], [0, 4, 4]]), draw(5, 3)),
        Trial("larger arrays", np.arange(60).reshape(3, 20) % 50, draw(70, 8)),
    ],
    "dropout_backward": [
        Trial("training", draw(4, 5), 0.25, np.random.default_rng(3)),
        Trial("evaluation", draw(4, 5), 0.25, None),
        Trial("another rate", draw(2, 3, 4), 0.6, np.random.default_rng(4)),
        Trial("larger arrays", draw(3, 12, 20), 0.1, np.random.default_rng(5)),
    ],
    "residual_backward": [
        Trial("x of shape (5, 4)", draw(5, 4), *weights(4, 2)),
        Trial("x of shape (2, 3, 4)", draw(2, 3, 4), *weights(4, 2)),
        Trial("larger arrays", draw(3, 12, 16), *weights(16, 2, 0.25, seed=0)),
    ],
    "scores_backward": [
        Trial("a single head", *draws((4, 3), (5, 3)), root=math.sqrt(3), d_head=3, queries=4),
        Trial("batch and heads", *draws((2, 2, 3, 4), (2, 2, 5, 4))),
        Trial("as many keys as queries", *draws((4, 3), (4, 3))),
        Trial("larger arrays", *draws((2, 3, 12, 8), (2, 3, 20, 8))),
    ],
    "attention_backward": [
        Trial("a single head", *draws((4, 3), (5, 3), (5, 2)), root=math.sqrt(3), d_head=3),
        Trial("a batch with a mask", *draws((2, 4, 3), (2, 5, 3), (2, 5, 2)), MASK),
        Trial("batch and heads", *draws(*[(2, 2, 3, 4)] * 3)),
        Trial("larger arrays", *draws(*[(2, 3, 12, 8)] * 3)),
    ],
    "multi_head_backward": [
        Trial("two heads", draw(2, 4, 6), *weights(6, 4), 2, batch=2, heads=2, rows=8),
        Trial("three heads", draw(3, 2, 6, seed=5), *weights(6, 4), 3),
        Trial("one head", draw(1, 3, 6, seed=6), *weights(6, 4), 1),
        Trial("larger arrays", draw(2, 12, 16), *weights(16, 4, 0.25, seed=0), 8),
    ],
    "dense_synthesizer_backward": [
        Trial(
            "a sequence of max_len tokens", *draws((2, 5, 3), (2, 5, 2), *MAPS), batch=2, rows=10
        ),
        Trial("a shorter sequence", *draws((3, 4, 3), (3, 4, 2), *MAPS)),
        Trial("larger arrays", *draws((2, 20, 6), (2, 20, 5), (6, 9), 9, (9, 24), 24)),
    ],
    "fourier_backward": [
        Trial("x of shape (5, 3)", draw(5, 3)),
        Trial("a batch", draw(2, 4, 6)),
        Trial("larger arrays", draw(3, 20, 12)),
    ],
    "pooling_backward": [
        Trial("sequences without padding", draw(2, 4, 3), keep([4, 4], 4), length=4),
        Trial("sequences with padding", draw(3, 4, 2, seed=1), keep([4, 2, 1], 4), length=4),
        Trial("a sequence of padding alone", draw(2, 3, 2, seed=2), keep([2, 0], 3)),
        Trial("larger arrays", draw(6, 20, 9), keep([20, 15, 9, 20, 3, 1], 20)),
    ],
    "adam_update": [adam_trial(t) for t in (1, 2, 3, 4, 5, 10)],
    "cross_attention_backward": [
        Trial("a longer memory", draw(2, 3, 4), draw(2, 5, 4, seed=7), *weights(4, 4)),
        Trial("a shorter memory", draw(1, 4, 4, seed=8), draw(1, 2, 4, seed=9), *weights(4, 4)),
        Trial("larger arrays", *draws((2, 12, 16), (2, 20, 16)), *weights(16, 4, 0.25, seed=0)),
    ],
    "causal_mask": [
        Trial("four tokens without a cache", 4, 4),
        Trial("one query after three tokens", 1, 4, 3),
        Trial("three queries after two tokens", 3, 5, 2),
        Trial("a longer sequence", 40, 100, 60),
    ],
    "cached_step": [
        Trial("the fourth token", draw(4), *draws((3, 4), (3, 4), seed=5), *weights(4, 3, 0.7)),
        Trial("the first token", draw(4, seed=7), NONE, NONE, *weights(4, 3, 0.7)),
        Trial("the 41st token", draw(4), draw(40, 4), draw(40, 4, seed=1), *weights(4, 3, 0.7)),
    ],
    "sampling": [
        Trial("temperature 1", LOGITS),
        Trial("temperature 0.5", LOGITS, 0.5),
        Trial("top_k of 3", LOGITS, 1.0, 3),
        Trial("top_p of 0.75", LOGITS, 1.0, None, 0.75),
        Trial("top_p of 0.15", LOGITS, 1.0, None, 0.15),
        Trial("all three", LOGITS, 0.5, 4, 0.6),
        Trial("a larger vocabulary", np.sin(np.arange(300.0)), 1.0, 100, 0.9),
    ],
    "beam_search": [
        Trial("one beam, which is greedy", follow, 4, 1),
        Trial("two beams", follow, 4, 2),
        Trial("81 beams, which are all sequences", follow, 4, 81),
    ],
    "rotary_backward": [
        Trial("the first positions", draw(4, 6), np.arange(4)),
        Trial("batch and heads", draw(2, 2, 3, 4), np.arange(3)),
        Trial("later positions", draw(2, 3, 4), np.arange(7, 10)),
        Trial("larger arrays", draw(2, 3, 12, 8), np.arange(12)),
    ],
    "grouped_attention_backward": [
        Trial("two heads that share one", *draws((1, 2, 3, 4), *[(1, 1, 5, 4)] * 2)),
        Trial("four heads that share two", *draws((1, 4, 3, 2), *[(1, 2, 5, 2)] * 2)),
        Trial("as many of both", *draws(*[(2, 2, 3, 4)] * 3)),
        Trial("larger arrays", *draws((2, 6, 12, 8), *[(2, 2, 12, 8)] * 2)),
    ],
}
"""Of the exercises that are functions: those called NAME_backward are pairs."""

OTHERS: dict[str, dict[str, Any]] = {
    "layer_norm_backward": {"made": layer_norm_by},
    "dropout_backward": {"made": two_dropouts_by},
    "adam_update": {"made": adam_by},
    "own_mixer": {"mark": mixer.mark},
    "broken_model": {"mark": broken_model.mark},
    "own_encoder": {"mark": encoder.mark, "exercises_to_solve": encoder.exercises_to_solve},
}
"""Arguments of `Exercise` that are not the usual ones."""

USES = {"own_encoder": encoder.FILES}
"""Names of the exercises whose files an exercise calls."""


def arguments_of(name: str) -> dict[str, Any]:
    """Return how an exercise is marked, as arguments of `Exercise`."""
    mark = pair.mark if name.endswith("_backward") else function.mark
    return {"mark": mark, "trials": TRIALS.get(name, ()), **OTHERS.get(name, {})}
