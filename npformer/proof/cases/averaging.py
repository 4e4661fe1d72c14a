"""Cases of averaging over the tokens: attention, its synthesized scores, mixtures of scores."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.proof.cases.case import Case, keep, pair

PADDED, ONE_EMPTY = keep([3, 1], 3), keep([2, 0], 3)  # [batch, key]


def _some_pairs(n_keys: int) -> np.ndarray:
    pairs = np.random.default_rng(1).random((3, n_keys)) < 0.7
    pairs[1] = False
    return pairs


VISIBLE: dict[str, dict[str, Any]] = {
    "all pairs": {},
    "padding mask": {"mask": PADDED[:, None, None]},
    "mask of pairs, one query sees nothing": {"mask": _some_pairs(3)},
    "one sequence is all padding": {"mask": ONE_EMPTY[:, None, None]},
    "causal": {"causal": True},
    "causal and padding mask": {"causal": True, "mask": PADDED[:, None, None]},
    "a window": {"window": 2},
    "a window of the last two, and padding mask": {
        "causal": True,
        "window": 2,
        "mask": PADDED[:, None, None],
    },
}
"""Which of three keys each of three queries may see, in two sequences."""


def _attention() -> Iterator[Case]:
    three, five, single = (2, 2, 3, 4), (2, 2, 5, 4), (3, 4)
    yield pair("all pairs", F.attention_scores, three, three)
    yield pair("other length of keys", F.attention_scores, three, five)
    yield pair("without leading axes", F.attention_scores, single, single)

    near, far, few = (three,) * 3, (three, five, (2, 2, 5, 3)), (five, three, three)
    table: list[tuple[str, Any, dict[str, Any]]] = [
        *((label, near, options) for label, options in VISIBLE.items()),
        ("other length of keys", far, {}),
        ("other length of keys, causal", far, {"causal": True}),
        ("other length of keys, one query sees nothing", far, {"mask": _some_pairs(5)}),
        ("a mask without a query axis", far, {"mask": np.arange(5) % 2 == 0}),
        ("more queries than keys", few, {}),
        ("more queries than keys, causal", few, {"causal": True}),
        ("without leading axes", (single,) * 3, {}),
    ]
    blockwise = F.blockwise_attention
    for label, shapes, options in table:
        yield pair(label, F.scaled_dot_product_attention, *shapes, **options)
        yield pair(f"{label}, two queries at a time", blockwise, *shapes, block=2, **options)
        longer = f"{label}, a block longer than the length"
        yield pair(longer, blockwise, *shapes, block=8, **options)


def _average() -> Iterator[Case]:
    by_head, value = (2, 2, 3, 3), (2, 2, 3, 4)
    yield pair("keys of another length", F.average, (2, 3, 5), (2, 5, 4))
    yield pair("keys of another length, causal", F.average, (3, 5), (5, 4), causal=True)
    yield pair("one value for all heads", F.average, by_head, (2, 1, 3, 4))
    yield pair("one value for all scores", F.average, by_head, (3, 4))
    drops: dict[str, Any] = {"rate": 0.3, "generator": np.random.default_rng(0)}
    yield pair("dropout of weights", F.average, by_head, (2, 2, 3, 4), **drops)
    yield pair("dropout of weights for all samples", F.average, (2, 3, 3), (2, 2, 3, 4), **drops)
    for label, options in VISIBLE.items():
        yield pair(f"scores of each head, {label}", F.average, by_head, value, **options)
        for shared, shape in (
            ("scores shared by the batch", (2, 3, 3)),
            ("scores shared by the batch, an axis of 1", (1, 2, 3, 3)),
            ("scores shared by the heads, an axis of 1", (2, 1, 3, 3)),
            ("one table of scores for all", (3, 3)),
        ):
            yield pair(f"{shared}, {label}", F.average, shape, value, **options)
        yield pair(label, (F.averaging_weights, F.softmax_backward), by_head, **options)


def _views(one: str, short: str) -> list[tuple[str, bool, tuple[int, ...], dict[str, Any]]]:
    """Return (label, whether by head, shape of the value, options) for a synthesizer."""
    value, by_head, causal = (2, 3, 4), (2, 2, 3, 2), {"causal": True}
    padded, one_empty = VISIBLE["padding mask"], VISIBLE["one sequence is all padding"]
    return [
        (f"{one}, {short}", False, value, {}),
        (f"{one}, padding mask", False, value, {"mask": PADDED[:, None]}),
        (f"{one}, causal", False, value, causal),
        (f"{one}, without a batch", False, value[1:], {}),
        (f"heads, {short}", True, by_head, {}),
        ("heads, padding mask", True, by_head, padded),
        ("heads, causal", True, by_head, causal),
        ("heads, one sequence is all padding", True, by_head, causal | one_empty),
    ]


def _dense_synthesizers() -> Iterator[Case]:
    x: tuple[int, ...] = (2, 3, 4)

    def weights(columns: tuple[int, ...], by_head: bool = False) -> list[tuple[int, ...]]:
        """Return the shapes of W1, b1, W2, b2 for each number of columns."""
        second = (lambda n: [(2, 3, n), (2, n)]) if by_head else (lambda n: [(6, n), (n,)])
        return [shape for n in columns for shape in [(4, 6), (6,), *second(n)]]

    for scores, synthesizer, exact, longer in (
        (F.dense_scores, F.dense_synthesizer, (3,), (5,)),
        (F.factorized_dense_scores, F.factorized_dense_synthesizer, (3, 1), (2, 3)),
    ):
        yield pair("one map, at full length", scores, x, *weights(exact), 3)
        yield pair("one map, shorter than max_len", scores, x, *weights(longer), 3)
        yield pair("one map, without a batch", scores, x[1:], *weights(longer), 3)
        yield pair("heads, shorter than max_len", scores, x, *weights(longer, True), 3)
        yield pair("one map, at full length", synthesizer, x, x, *weights(exact))
        for label, by_head, value, options in _views("one map", "shorter than max_len"):
            tokens = x if "batch" not in label else x[1:]
            yield pair(label, synthesizer, tokens, value, *weights(longer, by_head), **options)


def _random_synthesizers() -> Iterator[Case]:
    def tables(n: int, by_head: bool) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        """Return the shapes of the whole table and of its two factors."""
        heads = (2,) if by_head else ()
        return [(*heads, n, n)], [(*heads, n, 2)] * 2

    for one, by_head in (("one table", False), ("heads", True)):
        for label, n in (("at full length", 3), ("cropped", 5)):
            table, factors = tables(n, by_head)
            yield pair(f"{one}, {label}", F.random_scores, *table, 3)
            yield pair(f"{one}, {label}", F.factorized_random_scores, *factors, 3)
    views = [(5, *view) for view in _views("one table", "cropped")]
    for n, label, by_head, value, options in [
        (3, "one table, at full length", False, (2, 3, 4), {}),
        *views,
    ]:
        table, factors = tables(n, by_head)
        yield pair(label, F.random_synthesizer, value, *table, **options)
        yield pair(label, F.factorized_random_synthesizer, value, *factors, **options)


def _mixture() -> Iterator[Case]:
    # gradcheck checks the gradients of named arguments, so *scores get names here
    mixtures: dict[int, Callable[..., Any]] = {
        1: lambda logits, a: F.mixture_scores(logits, a),
        2: lambda logits, a, b: F.mixture_scores(logits, a, b),
        3: lambda logits, a, b, c: F.mixture_scores(logits, a, b, c),
    }
    for label, *shapes in (
        ("scores of one shape", (2, 2, 3, 3), (2, 2, 3, 3)),
        ("a table beside a batch", (2, 2, 3, 3), (2, 3, 3), (3, 3)),
        ("tables alone", (2, 3, 3), (2, 3, 3)),
        ("a single part", (3, 3)),
    ):
        target = mixtures[len(shapes)], F.mixture_scores_backward
        yield pair(label, target, (len(shapes),), *shapes, title="mixture_scores")


SUBJECTS = _attention, _average, _dense_synthesizers, _random_synthesizers, _mixture
