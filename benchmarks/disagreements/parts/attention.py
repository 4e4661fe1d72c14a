"""Attention: masks and alignment."""

import numpy as np

from benchmarks.disagreements.question import Part, Question, ask, draw_questions, pair
from npformer import functional as F

ATTENTION = pair(
    F.scaled_dot_product_attention,
    F.scaled_dot_product_attention_backward,
    ("query", "key", "value"),
)


def causal_attention(arrays, settings, dy):
    return ATTENTION(arrays, {**settings, "causal": True}, dy)


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
]
