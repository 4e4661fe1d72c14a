"""Cases of the layers."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer import layers as L
from npformer.proof.cases.case import SEEDED, Case, draw, keep, layer, twice


def layers() -> Iterator[Case]:
    """Yield the cases."""
    x, ids, mask = draw(2, 3, 4), np.array([[1, 3, 1], [1, 0, 3]]), keep([3, 1], 3)
    linear = L.Linear(4, 3, **SEEDED)
    pooled = L.Sequential(L.Linear(4, 2, **SEEDED), L.MeanPooling())
    wide, narrow = L.Linear(4, 6, **SEEDED), L.Linear(6, 4, **SEEDED)
    dropped = L.Sequential(wide, L.GELU(), L.Dropout(0.3), narrow)

    yield layer("with bias", linear, x)
    yield layer("without bias", L.Linear(4, 3, bias=False, **SEEDED), x)
    yield layer("kernel 1", L.Conv1d(4, 3, **SEEDED), x)
    yield layer("kernel 3, same", L.Conv1d(4, 3, 3, **SEEDED), x)
    yield layer("kernel 2, valid", L.Conv1d(4, 3, 2, padding="valid", bias=False, **SEEDED), x)
    yield layer("with parameters", L.LayerNorm(4, dtype="float64"), x)
    yield layer("with parameters", L.RMSNorm(4, dtype="float64"), x)
    yield layer("training", L.Dropout(0.4), x, training=True)
    yield layer("evaluation", L.Dropout(0.4), x)
    yield layer("training", L.TokenDropout(0.4), x, training=True)
    yield layer("evaluation", L.TokenDropout(0.4), x)
    yield layer("repeated ids", L.Embedding(5, 4, **SEEDED), ids)
    yield layer("scaled by sqrt(d_model)", L.Embedding(5, 4, scale=True, **SEEDED), ids)
    yield layer("sinusoidal", L.Positions(5, 4, **SEEDED), x)
    yield layer("sinusoidal, in halves", L.Positions(5, 4, "sinusoidal_halves", **SEEDED), x)
    yield layer("learned, shorter than max_len", L.Positions(5, 4, "learned", **SEEDED), x)
    yield layer("types of the tokens", L.TokenTypes(3, 4, **SEEDED), x, types=ids % 3)
    yield layer("every token of type 0, scaled", L.TokenTypes(3, 4, scale=True, **SEEDED), x)
    yield layer("without a mask", L.MeanPooling(), x)
    yield layer("padding mask", L.MeanPooling(), x, mask=mask)
    yield layer("without a mask", L.MaxPooling(), x)
    yield layer("padding mask", L.MaxPooling(), x, mask=mask)
    yield layer("three tokens", L.FirstToken(), x)
    yield layer("three tokens", L.Pooler(4, **SEEDED), x)
    yield layer("relu", L.Pooler(4, activation="relu", **SEEDED), x)
    modern: Any = {"activation": "gelu", "bias": False, "norm": True}
    yield layer("of the mean, a norm", L.Pooler(4, of="mean", **modern, **SEEDED), x, mask=mask)
    yield layer("of each token, a norm", L.Pooler(4, of="none", **modern, **SEEDED), x)
    yield layer("without a mask", L.Flatten(), x)
    yield layer("padding mask", L.Flatten(), x, mask=mask)
    yield layer("three tokens", L.EveryToken(), x)
    yield layer("of a linear layer", L.TimeDistributed(L.Linear(4, 3, **SEEDED)), x)
    yield layer("of a pooling", L.TimeDistributed(pooled), draw(2, 3, 2, 4))
    yield layer("a chain with dropout", dropped, x, training=True)
    yield layer("no layer at all", L.Sequential(), x)
    yield layer("without biases", L.GatedFeedForward(4, 6, bias=False, **SEEDED), x)
    gated = L.GatedFeedForward(4, 6, "gelu", dropout=0.3, **SEEDED)
    yield layer("gelu, training", gated, x, training=True)
    for name, activation in L.ACTIVATIONS.items():
        yield layer(f"named {name}", activation(), x)
        for ffn in ("linear", "conv1d"):
            feed_forward = L.PositionwiseFeedForward(4, 6, name, ffn=ffn, **SEEDED)
            yield layer(f"{ffn}, {name}", feed_forward, x)

    for shared in (
        L.Linear(4, 4, **SEEDED),
        L.Conv1d(4, 4, 3, **SEEDED),
        L.ReLU(),
        L.GELU(),
        L.Tanh(),
        L.SiLU(),
        L.LayerNorm(4, dtype="float64"),
        L.RMSNorm(4, dtype="float64"),
        L.GatedFeedForward(4, 6, **SEEDED),
        L.Positions(5, 4, "learned", **SEEDED),
        L.EveryToken(),
        L.PositionwiseFeedForward(4, 6, "gelu", **SEEDED),
        L.TimeDistributed(L.Linear(4, 4, **SEEDED)),
        L.Sequential(L.Linear(4, 4, **SEEDED), L.Tanh()),
    ):
        yield twice(shared, x)
    yield twice(L.Dropout(0.4), x, training=True)
