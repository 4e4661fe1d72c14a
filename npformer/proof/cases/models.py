"""Cases of whole models: blocks, encoders, embeddings, classifiers."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer.mixers import MIXERS
from npformer.models import (
    Encoder,
    EncoderBlock,
    InputEmbedding,
    MaskedTokens,
    SequenceModel,
)
from npformer.proof.cases.case import MODEL, SEEDED, Case, draw, keep, layer, small, twice

IDS = np.random.default_rng(0).integers(0, 5, (3, 4))
TYPES = np.random.default_rng(1).integers(0, 3, (3, 4))
FEATURES = draw(3, 4, 2)
MASK = keep([4, 2, 0], 4)

LEARNED: dict[str, Any] = {"positions": "learned", "scale_embeddings": False}
BERT: dict[str, Any] = {**LEARNED, "n_token_types": 3, "embedding_norm": True}
FNET: dict[str, Any] = {**BERT, "embedding_projection": True, "mixer": "fourier", "dropout": 0.2}


def _blocks() -> Iterator[Case]:
    def block(**changes: Any) -> EncoderBlock:
        return EncoderBlock(small(**changes), **SEEDED)

    x, mask = draw(3, 3, 4), keep([3, 2, 0], 3)
    pre = block(norm="pre", dropout=0.2)
    yield layer("post-norm", block(dropout=0.2), x, **MODEL)
    training: dict[str, Any] = {"training": True, **MODEL}
    yield layer("pre-norm, dropout, padding mask", pre, x, mask=mask, **training)
    rotated = block(
        norm="pre",
        norm_kind="rms",
        ffn="gated",
        dropout=0.2,
        positions="rotary",
        activation="silu",
        causal=True,
    )
    yield layer("rotary, RMS norm, gated, causal", rotated, x, mask=mask, **training)
    bare = block(ffn="gated", bias=False, ffn_dropout=0.2, window=2)
    yield layer("a window, gated, without biases", bare, x, **training)
    normed = block(norm="pre", embedding_norm=True, bias=False)
    yield layer("pre-norm behind a norm of embeddings", normed, x, mask=mask, **MODEL)
    alone: dict[str, Any] = {"ffn": "none", "dropout": 0.2}
    yield layer(
        "mixer alone, padding mask",
        block(**alone),
        x,
        mask=mask,
        **MODEL,
    )
    yield layer("mixer alone, pre-norm, dropout", block(**alone, norm="pre"), x, **training)
    inside = block(attention_dropout=0.3, ffn_dropout=0.2)
    yield layer("dropout of weights and inside the network", inside, x, mask=mask, **training)
    yield twice(block(), x, **MODEL)


def _encoders() -> Iterator[Case]:
    x, mask = draw(3, 3, 4), keep([3, 2, 0], 3)
    shared: dict[str, Any] = {"share_layers": True}
    pre, dropout = {"norm": "pre"}, {"dropout": 0.2}

    def encoder(
        label: str, changes: dict[str, Any], masked: bool = False, training: bool = False
    ) -> Case:
        model = Encoder(small(**changes), dtype="float64")
        return layer(label, model, x, mask=mask if masked else None, training=training, **MODEL)

    yield encoder("post-norm", {})
    yield encoder("pre-norm", pre)
    yield encoder("post-norm, padding mask", {}, masked=True)
    yield encoder("pre-norm, padding mask, causal", {**pre, "causal": True}, masked=True)
    yield encoder("shared layers", shared)
    yield encoder("shared layers, pre-norm, dropout", shared | pre | dropout, training=True)
    every = tuple(MIXERS)
    for i in range(0, len(every), 4):
        names = every[i : i + 4]
        stack = {"n_layers": len(names), "mixer": names, "padding": "per_length"}
        yield encoder(", ".join(names), stack)
        yield encoder(f"{', '.join(names)}, padding mask", stack, masked=True)
    in_blocks = {"memory": "blocks", "causal": True}
    yield encoder("attention in blocks, padding mask", in_blocks, masked=True)
    yield encoder("shared layers of a mixture", {**shared, "mixer": "mixture"})
    yield encoder("dropout in training", dropout, training=True)
    yield encoder("ffn as convolutions, relu", {"ffn": "conv1d", "activation": "relu"})
    yield encoder("without feed-forward networks, pre-norm", {**pre, "ffn": "none"}, masked=True)
    yield twice(Encoder(small(n_layers=1), dtype="float64"), x, **MODEL)


def _embeddings() -> Iterator[Case]:
    words: dict[str, Any] = {"vocab_size": 5, "n_features": None}
    vectors: dict[str, Any] = {"vocab_size": None, "n_features": 2}
    dropout = {"dropout": 0.2}

    def embed(label: str, changes: dict[str, Any], x: np.ndarray = IDS, **options: Any) -> Case:
        embedding = InputEmbedding(small(**changes), **(words if x is IDS else vectors), **SEEDED)
        return layer(label, embedding, x, training="dropout" in changes, group="models", **options)

    without = {"positions": "none"}
    yield embed("tokens, sinusoidal positional encoding", dropout)
    yield embed("tokens, not scaled, learned positional encoding", dropout | LEARNED)
    yield embed("whole tokens dropped", dropout | {"token_dropout": 0.4})
    yield embed("features, without positions", dropout | without, FEATURES)
    yield embed("as in BERT", BERT, types=TYPES)
    yield embed("as in BERT, every token of type 0", BERT)
    yield embed("as in FNet, dropout", FNET, types=TYPES)
    yield embed("types beside scaled tokens and sinusoids", {"n_token_types": 3}, types=TYPES)
    yield embed("features as in FNet", FNET | {"dropout": 0.0}, FEATURES)
    yield embed("features and a norm", {"embedding_norm": True, **without}, FEATURES)


def _classifiers() -> Iterator[Case]:
    below = SequenceModel(small(), 3, vocab_size=5, **SEEDED)
    yield layer("below its face", below, IDS, mask=MASK, **MODEL)
    plain: dict[str, Any] = {"mixer": "linear", "norm_kind": "rms", "bias": False}
    dropped: dict[str, Any] = {"training": True, "mask": MASK}
    for label, changes, options in (("no bias", plain, {}), ("dropout", {"dropout": 0.2}, dropped)):
        masked = MaskedTokens(small(**changes), 5, **SEEDED)
        yield layer(f"all tokens, {label}", masked, IDS, **options, **MODEL)
    untied = MaskedTokens(small(), 5, head_activation="silu", tied=False, **SEEDED)
    yield layer("all tokens, an output of its own", untied, IDS, **MODEL)


SUBJECTS = _blocks, _encoders, _embeddings, _classifiers
