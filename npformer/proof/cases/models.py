"""Cases of whole models: blocks, encoders, embeddings, classifiers, text encoders, the loss."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from npformer.layers import POOLINGS
from npformer.mixers import MIXERS
from npformer.models import (
    Encoder,
    EncoderBlock,
    InputEmbedding,
    SequenceModel,
    WideSequenceModel,
)
from npformer.proof.cases.case import MANY, SEEDED, Case, draw, keep, layer, small, twice
from npformer.proof.gradcheck import gradcheck
from npformer.training.trainable import SequenceClassifier, WideSequenceClassifier
from npformer.training.trainable.text_encoder import TextEncoder

MODEL: dict[str, Any] = {"group": "models", "max_entries": MANY}

IDS = np.random.default_rng(0).integers(0, 5, (3, 4))
TYPES = np.random.default_rng(1).integers(0, 3, (3, 4))
FEATURES = draw(3, 4, 2)
MASK = keep([4, 2, 0], 4)

LEARNED: dict[str, Any] = {"positions": "learned", "scale_embeddings": False}
BERT: dict[str, Any] = {**LEARNED, "n_token_types": 3, "embedding_norm": True}
FNET: dict[str, Any] = {**BERT, "embedding_projection": True, "mixer": "fourier", "dropout": 0.2}


def models() -> Iterator[Case]:
    """Yield the cases."""
    yield from _blocks()
    yield from _encoders()
    yield from _embeddings()
    yield from _classifiers()
    yield from _wide()
    yield from _text_encoders()
    yield from _losses()


def _blocks() -> Iterator[Case]:
    def block(**changes: Any) -> EncoderBlock:
        return EncoderBlock(small(**changes), **SEEDED)

    x, mask = draw(3, 3, 4), keep([3, 2, 0], 3)
    pre = block(norm="pre", dropout=0.2)
    yield layer("post-norm", block(dropout=0.2), x, **MODEL)
    training: dict[str, Any] = {"training": True, **MODEL}
    yield layer("pre-norm, dropout, padding mask", pre, x, mask=mask, **training)
    alone: dict[str, Any] = {"ffn": "none", "dropout": 0.2}
    covers: dict[str, Any] = {"covers": ("NoFeedForward",)}
    yield layer("mixer alone, padding mask", block(**alone), x, mask=mask, **MODEL, **covers)
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
        made = Encoder(small(**changes), dtype="float64")
        return layer(label, made, x, mask=mask if masked else None, training=training, **MODEL)

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
        made = InputEmbedding(small(**changes), **(words if x is IDS else vectors), **SEEDED)
        return layer(label, made, x, training="dropout" in changes, group="models", **options)

    without = {"positions": "none"}
    yield embed("tokens, sinusoidal positions", dropout)
    yield embed("tokens, not scaled, learned positions", dropout | LEARNED)
    yield embed("whole tokens dropped", dropout | {"token_dropout": 0.4})
    yield embed("features, without positions", dropout | without, FEATURES)
    yield embed("as in BERT", BERT, types=TYPES)
    yield embed("as in BERT, every token of type 0", BERT)
    yield embed("as in FNet, dropout", FNET, types=TYPES)
    yield embed("types beside scaled tokens and sinusoids", {"n_token_types": 3}, types=TYPES)
    yield embed("features as in FNet", FNET | {"dropout": 0.0}, FEATURES)
    yield embed("features and a norm", {"embedding_norm": True, **without}, FEATURES)


def _classifiers() -> Iterator[Case]:
    def classifier(
        label: str,
        x: np.ndarray = FEATURES,
        changes: dict[str, Any] | None = None,
        arguments: dict[str, Any] | None = None,
        **options: Any,
    ) -> Case:
        edge = {"vocab_size": 5} if x is IDS else {"n_features": 2}
        given = {"n_classes": 3, **edge, **(arguments or {})}
        made = SequenceClassifier(small(**(changes or {})), **given, **SEEDED)
        return layer(label, made, x, covers=("SequenceModel",), **MODEL, **options)

    below = SequenceModel(small(), 3, vocab_size=5, **SEEDED)
    yield layer("below its face", below, IDS, mask=MASK, **MODEL)
    yield classifier("tokens", IDS)
    learned = {"positions": "learned"}
    yield classifier("tokens, padding mask, learned positions", IDS, learned, mask=MASK)
    yield classifier("features")
    for pooling in POOLINGS:
        arguments = {"pooling": pooling}
        yield classifier(f"pooling {pooling}, padding mask", arguments=arguments, mask=MASK)
    yield classifier("one logit", arguments={"n_classes": 2, "output": "sigmoid"})
    dropped = {"dropout": 0.2, "norm": "pre"}
    yield classifier("tokens, dropout, pre-norm", IDS, dropped, training=True)
    yield classifier("ffn as convolutions", changes={"ffn": "conv1d"})
    mixed = {"mixer": ("fourier", "attention"), "activation": "gelu_tanh"}
    yield classifier("fourier and attention", IDS, mixed)


def _wide() -> Iterator[Case]:
    covers = ("SequenceModel", "SequenceClassifier")
    for kind in (WideSequenceModel, WideSequenceClassifier):
        made = kind(small(n_layers=1), 3, vocab_size=5, n_pairs=2, **SEEDED)
        case = layer("words and pairs, padding mask", made, IDS, mask=MASK, covers=covers, **MODEL)
        made.wide.learn(np.array([[0, 3], [1, 3]]), 1.0 + np.arange(7.0))  # the case changed both
        yield case


def _text_encoders() -> Iterator[Case]:
    for label, changes, pooler, options in (
        ("both outputs", BERT, True, {}),
        ("BERT", BERT, True, {"types": TYPES}),
        ("BERT, padding mask", BERT, True, {"types": TYPES, "mask": MASK}),
        ("BERT without a pooler", BERT, False, {"mask": MASK}),
        ("FNet, dropout", FNET, True, {"types": TYPES, "training": True}),
    ):
        made = TextEncoder(small(**changes), 5, pooler=pooler, dtype="float64")
        yield layer(label, made, IDS, **MODEL, **options)


def _losses() -> Iterator[Case]:
    labels, by_token = np.array([0, 1, 1]), np.array([[0, 1, 2, -1], [1, -1, -1, -1], [2, 2, 0, 1]])
    smooth: dict[str, Any] = {"label_smoothing": 0.1}
    sigmoid, each = {"output": "sigmoid"}, {"pooling": "none"}
    yield _loss("softmax, label smoothing", labels, {}, {}, **smooth)
    yield _loss("sigmoid", labels, sigmoid, {})
    yield _loss("sigmoid, label smoothing", labels, sigmoid, {}, **smooth)
    yield _loss("one label a token, some without", by_token, each, {})
    yield _loss("two workers, dropout", labels, {}, {"dropout": 0.2}, workers=2, seed=0)
    yield _loss("two workers, one label a token", by_token, each, {}, workers=2)
    given: dict[str, Any] = {"mask": MASK, "types": TYPES, "title": "SequenceClassifier"}
    yield _loss("token types", labels, {"pooling": "pooler"}, BERT, workers=2, **given)
    weighed: dict[str, Any] = {"sample_weight": np.array([2.0, 0.5, 1.0]), **smooth}
    yield _loss("words and pairs", labels, {"n_pairs": 2}, {}, WideSequenceClassifier, **weighed)


def _loss(
    label: str,
    y: np.ndarray,
    arguments: dict[str, Any],
    changes: dict[str, Any],
    kind: type[SequenceClassifier] = SequenceClassifier,
    title: str = "loss_and_gradients",
    **options: Any,
) -> Case:
    """Return a case for `loss_and_gradients`, as a function of all parameters."""
    n_classes = int(y.max()) + 1
    config = small(n_layers=1, **changes)
    model = kind(config, n_classes, vocab_size=5, **arguments, **SEEDED)
    flat: Any = model.parameters().flat

    def forward(parameters: np.ndarray) -> tuple[Any, Any]:
        flat[...] = parameters
        return model.loss_and_gradients(IDS, y, **options)

    def backward(dloss: Any, gradients: Any) -> Any:
        return dloss * gradients.flat

    start = flat + 0.3 * draw(*flat.shape, seed=1)
    run = partial(gradcheck, (forward, backward), start)
    covers = kind.__name__, "loss_and_gradients"
    return Case(f"{title}: {label}", "models", covers, run)
