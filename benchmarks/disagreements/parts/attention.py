"""Attention: masks, alignment, and heads."""

import numpy as np

from benchmarks.disagreements.question import Part, Question, ask, constant, draw_questions, pair
from npformer import functional as F

ATTENTION = pair(
    F.scaled_dot_product_attention,
    F.scaled_dot_product_attention_backward,
    ("query", "key", "value"),
)


def causal_attention(arrays, settings, dy):
    return ATTENTION(arrays, {**settings, "causal": True}, dy)


def additive_attention(arrays, settings, dy):
    """Attention with a mask of 0 and minus infinity, which is added to the scores."""
    arrays = {**arrays, "mask": arrays["mask"] == 0.0}
    return ATTENTION(arrays, settings, dy)


def grouped_attention(arrays, settings, dy):
    """Attention whose heads of keys and values serve several heads of queries each."""
    query, key, value = arrays["query"], arrays["key"], arrays["value"]
    times = query.shape[1] // key.shape[1]
    key, _ = F.repeat_heads(key, times)
    value, _ = F.repeat_heads(value, times)
    return {"y": F.scaled_dot_product_attention(query, key, value)[0]}


def multihead(arrays, settings, dy):
    """Multi-head self-attention with the weights of a library carried over."""
    n_heads, x = settings["n_heads"], arrays["x"]
    query, key, value = (
        F.split_heads(F.linear(x, arrays[f"W_{name}"], arrays[f"b_{name}"])[0], n_heads)
        for name in ("query", "key", "value")
    )
    heads, _ = F.scaled_dot_product_attention(query, key, value)
    return {"y": F.linear(F.merge_heads(heads), arrays["W_output"], arrays["b_output"])[0]}


def draw_grouped_attention(rng: np.random.Generator) -> Question:
    batch, groups, times, length, d_head = rng.integers(1, 4, size=5)
    arrays = {
        "query": rng.normal(size=(batch, groups * times, length, d_head)),
        "key": rng.normal(size=(batch, groups, length, d_head)),
        "value": rng.normal(size=(batch, groups, length, d_head)),
    }
    return ask(grouped_attention, "grouped_attention", arrays=arrays, dtype="float64")


def draw_multihead(rng: np.random.Generator) -> Question:
    batch, length, n_heads, d_head = rng.integers(1, 5, size=4)
    d_model = int(n_heads * d_head)
    arrays = {"x": rng.normal(size=(batch, length, d_model))}
    for name in ("query", "key", "value", "output"):
        arrays[f"W_{name}"] = rng.normal(size=(d_model, d_model)) / d_model**0.5
        arrays[f"b_{name}"] = rng.normal(size=d_model)
    settings = {"n_heads": int(n_heads)}
    return ask(multihead, "multihead", arrays=arrays, settings=settings, dtype="float64")


def draw_attention(rng: np.random.Generator) -> Question:
    batch, heads, queries, keys, d_head = rng.integers(1, 6, size=5)
    arrays = {
        "query": rng.normal(size=(batch, heads, queries, d_head)),
        "key": rng.normal(size=(batch, heads, keys, d_head)),
        "value": rng.normal(size=(batch, heads, keys, d_head)),
        "mask": rng.random((batch, 1, queries, keys)) < 0.5,
    }
    dy = rng.normal(size=arrays["query"].shape)
    return ask(ATTENTION, "attention", arrays=arrays, dy=dy, dtype="float64")


def draw_causal_attention(rng: np.random.Generator) -> Question:
    batch, heads, queries, begin, d_head = rng.integers(1, 6, size=5)
    keys = queries + begin
    arrays = {
        "query": rng.normal(size=(batch, heads, queries, d_head)),
        "key": rng.normal(size=(batch, heads, keys, d_head)),
        "value": rng.normal(size=(batch, heads, keys, d_head)),
    }
    dy = rng.normal(size=arrays["query"].shape)
    settings = {"begin": int(begin)}
    return ask(
        causal_attention,
        "causal_attention",
        arrays=arrays,
        settings=settings,
        dy=dy,
        dtype="float64",
    )


ONE_QUERY = {"query": [[[[1.0]]]], "key": [[[[0.0], [0.0]]]], "value": [[[[1.0], [3.0]]]]}
"""A query that weighs two values alike, (1, 1, 1 or 2, 1)."""

PARTS = [
    Part(
        "masked_attention",
        "Attention with a mask",
        "softmax(Q K^T / sqrt(d_head)) V, where a mask forbids pairs. What differs is a query "
        "whose keys are all forbidden.",
        (
            ask(
                ATTENTION,
                "attention_default",
                "values 1 and 3, both forbidden by a boolean mask",
                name="nothing_seen",
                arrays=ONE_QUERY | {"mask": [[[[False, False]]]]},
                dy=[[[[1.0]]]],
                gradients=("dvalue",),
            ),
            ask(
                additive_attention,
                "attention_default",
                "the same by a mask of minus infinity, added to the scores",
                name="minus_infinity",
                arrays=ONE_QUERY | {"mask": [[[[-np.inf, -np.inf]]]]},
                dy=[[[[1.0]]]],
                gradients=("dvalue",),
            ),
            ask(
                ATTENTION,
                "attention_default",
                "values 1 and NaN, of which the second is forbidden",
                name="forbidden_nan",
                arrays={
                    "query": [[[[1.0]]]],
                    "key": [[[[0.0], [0.0]]]],
                    "value": [[[[1.0], [np.nan]]]],
                    "mask": [[[[True, False]]]],
                },
            ),
        ),
        draw_questions(draw_attention, seed=11),
    ),
    Part(
        "causal",
        "Causal alignment",
        "Which keys a query sees, if there are more keys than queries.",
        (
            ask(
                causal_attention,
                "causal_attention_default",
                "one query and values 1 and 3, with the causal flag",
                name="one_query",
                arrays=ONE_QUERY,
            ),
        ),
        draw_questions(draw_causal_attention, seed=12),
    ),
    Part(
        "grouped",
        "Grouped queries",
        "More heads of queries than of keys and values. What differs is which heads share.",
        (
            ask(
                grouped_attention,
                "grouped_attention_default",
                "four heads of queries, two of values, 1 and 2",
                name="sharing",
                arrays={
                    "query": np.ones((1, 4, 1, 1)),
                    "key": np.ones((1, 2, 1, 1)),
                    "value": np.array([1.0, 2.0]).reshape(1, 2, 1, 1),
                },
            ),
        ),
        draw_questions(draw_grouped_attention, seed=13),
    ),
    Part(
        "multihead",
        "Multi-head attention with weights carried over",
        "Four linear maps around attention. npformer's weights are (in, out), with the columns of "
        "the heads side by side.",
        (
            ask(
                constant([4, 4]),
                "multihead_shape",
                "the shape of the queries' weights, 4 features and 2 heads",
                name="shape",
                arrays={},
                settings={"d_model": 4, "n_heads": 2},
            ),
        ),
        draw_questions(draw_multihead, seed=14),
    ),
]
