"""Cases of what writes token by token: cross-attention, decoders, and their models."""

# ruff: noqa: D102 -- forward and backward are documented in Layer

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from npformer import functional as F
from npformer import layers as L
from npformer.core import Context, Gradients
from npformer.core.inputs import TwoInputLayer
from npformer.models import Decoder, DecoderBlock, NextToken, Transformer
from npformer.proof.cases.case import MODEL, SEEDED, Case, draw, keep, layer, pair, small

X, MEMORY = draw(3, 3, 4), draw(3, 5, 4, seed=1)
MASKS = keep([3, 2, 0], 3), keep([5, 0, 3], 5)
SOURCE = np.random.default_rng(0).integers(0, 6, (3, 4))
TARGET = np.random.default_rng(1).integers(0, 6, (3, 3))
NORMS = "post", "pre"


class Twice(TwoInputLayer):
    """One layer applied twice to the same memory, whose gradient is then a sum."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer

    def forward(  # type: ignore[override]
        self, a: Any, b: Any, context: Context
    ) -> tuple[Any, Any]:
        between, first = self.layer.forward(a, b, context)
        y, second = self.layer.forward(between, b, context)
        return y, (first, second)

    def backward(self, dy: Any, cache: Any, gradients: Gradients) -> tuple[Any, Any]:
        first, second = cache
        dbetween, db = self.layer.backward(dy, second, gradients)
        da, more = self.layer.backward(dbetween, first, gradients)
        return da, db + more


def _functions() -> Iterator[Case]:
    query, rest = draw(2, 3, 4), draw(2, 5, 4, seed=1)
    for attend in (F.scaled_dot_product_attention, F.blockwise_attention):
        yield pair(
            "queries that begin later", attend, query, rest, rest * 2.0, causal=True, begin=2
        )

    x, kernel = draw(2, 5, 3), draw(7, 3, seed=1)
    for convolution, k in ((F.causal_convolution, kernel), (F.short_convolution, kernel[:3])):
        yield pair("longer kernels than needed", convolution, x, k)
        yield pair("one sequence of one token", convolution, x[0, :1], k)
    yield pair("a kernel of the whole length", F.causal_convolution, x, kernel[:5])
    yield pair("a longer kernel than the sequence", F.short_convolution, x[:, :2], kernel[:4])
    space = draw(3) - 1.0, draw(3, 4), draw(3, 4, seed=1), draw(2, 3, 4)
    yield pair("six tokens", F.state_space_kernel, *space, length=6)
    yield pair("one token", F.state_space_kernel, *space, length=1)


def _layers() -> Iterator[Case]:
    for kind in (L.CrossAttention, L.BlockwiseCrossAttention):
        make_attention = partial(kind, 4, 2, **SEEDED)
        yield layer("two heads", make_attention(), X, MEMORY)
        yield layer("padding on both sides", make_attention(), X, MEMORY, mask=MASKS)
        wide = make_attention(d_memory=6)
        yield layer("a wider memory", wide, X, draw(3, 5, 6), mask=(None, MASKS[1]))
        yield layer(
            "applied twice",
            Twice(make_attention()),
            X,
            MEMORY,
            mask=MASKS,
            title=kind.__name__,
            covers=(kind.__name__, "Twice"),
        )
    dropped = L.CrossAttention(4, 2, attention_dropout=0.3, **SEEDED)
    yield layer("dropout of weights", dropped, X, MEMORY, mask=MASKS, training=True)
    table = L.Embedding(5, 4, **SEEDED)
    yield layer("without bias", L.TiedOutput(table), X)
    yield layer("with bias", L.TiedOutput(table, bias=True), X)
    yield layer("table used twice", L.Sequential(table, L.TiedOutput(table)), SOURCE % 5)


def _models() -> Iterator[Case]:
    causal = partial(small, causal=True)
    for norm in NORMS:
        block = DecoderBlock(causal(norm=norm, dropout=0.2), **SEEDED)
        yield layer(f"{norm}-norm, dropout", block, X, MEMORY, training=True, **MODEL)
        alone = DecoderBlock(causal(norm=norm, ffn="none"), **SEEDED)
        yield layer(f"{norm}-norm, without a network", alone, X, MEMORY, mask=MASKS, **MODEL)
        decoder = Decoder(causal(norm=norm), dtype="float64")
        yield layer(f"{norm}-norm, padding", decoder, X, MEMORY, mask=MASKS, **MODEL)
    in_blocks = causal(mixer=("dense_synthesizer", "mixture"), memory="blocks")
    wide_memory = Decoder(in_blocks, dtype="float64", d_memory=6)
    yield layer("other mixers, in blocks", wide_memory, X, draw(3, 5, 6), mask=MASKS, **MODEL)
    shared = Decoder(causal(share_layers=True, attention_dropout=0.2), dtype="float64")
    yield layer("shared layers, dropout of weights", shared, X, MEMORY, training=True, **MODEL)
    yield layer(
        "applied twice",
        Twice(Decoder(causal(), dtype="float64")),
        X,
        MEMORY,
        title="Decoder",
        covers=("Decoder",),
        **MODEL,
    )

    masks = keep([4, 2, 0], 4), keep([3, 1, 3], 3)
    for label, tied in (("tied", True), ("not tied", False)):
        writer = NextToken(causal(), 6, tied=tied, **SEEDED)
        yield layer(label, writer, SOURCE, mask=masks[0], **MODEL)
        transformer = Transformer(small(), 6, 6, tied=tied, **SEEDED)
        yield layer(label, transformer, SOURCE, TARGET, mask=masks, **MODEL)


SUBJECTS = _functions, _layers, _models
