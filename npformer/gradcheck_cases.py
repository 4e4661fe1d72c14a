"""Everything in npformer that has a gradient, each with its checks.

``npformer gradcheck`` prints this table and the tests run it: what a user sees proven is what the
tests prove.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer import functional as F
from npformer import layers as L
from npformer.classifier import InputEmbedding, SequenceClassifier
from npformer.encoder import Encoder, EncoderBlock, EncoderConfig
from npformer.gradcheck import GradcheckReport, gradcheck
from npformer.mixers import MIXERS, MixerSettings
from npformer.module import Layer

GROUPS = ("functional", "layers", "mixers", "models")

MANY = 12
"""Tensors of a whole model with more entries than this are checked along random directions."""


@dataclass(frozen=True)
class Case:
    """One check of one gradient.

    Attributes
    ----------
    name : str
        What is checked, and under which circumstances.
    group : {"functional", "layers", "mixers", "models"}
        Where it belongs.
    covers : tuple of str
        The functions, classes and names in `MIXERS` that it proves.
    run : callable
        Checks, and returns the report; raises `GradcheckError` if something is wrong.
    """

    name: str
    group: str
    covers: tuple[str, ...]
    run: Callable[[], GradcheckReport]


def cases() -> list[Case]:
    """Return every case, those that others build on first.

    Returns
    -------
    cases : list of Case
        Their names differ.
    """
    return [*_functional(), *_layers(), *_mixers(), *_models()]


# What cases are made of ---------------------------------------------------------------------------


def _pair(label: str, forward: Callable[..., Any], *inputs: Any, **options: Any) -> Case:
    """Return a case for a forward function and the backward function beside it."""
    name = forward.__name__
    return Case(
        name=f"{name}: {label}",
        group="functional",
        covers=(name, f"{name}_backward"),
        run=lambda: gradcheck(forward, *inputs, **options),
    )


def _layer(
    label: str,
    layer: Layer,
    x: np.ndarray,
    *,
    group: str = "layers",
    title: str = "",
    covers: tuple[str, ...] = (),
    **options: Any,
) -> Case:
    """Return a case for a layer whose parameters all lie away from where they began."""
    # A fresh layer norm has gamma = 1 and a fresh bias is 0: there, forgetting either goes unseen.
    rng = np.random.default_rng(1)
    for array in layer.parameters().values():
        array += 0.3 * rng.standard_normal(array.shape)
    name = type(layer).__name__
    return Case(
        name=f"{title or name}: {label}",
        group=group,
        covers=(name, *covers),
        run=lambda: gradcheck(layer, x, **options),
    )


def _twice(layer: Layer, x: np.ndarray, *, title: str = "", **options: Any) -> Case:
    """Return a case for one layer at two places: two caches, and gradients that add up."""
    name = type(layer).__name__
    chain = L.Sequential(layer, layer)
    return _layer("applied twice", chain, x, title=title or name, covers=(name,), **options)


def _keep(lengths: list[int], length: int) -> np.ndarray:
    """Return a mask that keeps the first tokens of each sequence."""
    return np.arange(length) < np.array(lengths)[:, None]


# The mathematics ----------------------------------------------------------------------------------


def _functional() -> list[Case]:
    return [
        *_linear_and_conv1d(),
        *_elementwise(),
        *_normalisations(),
        *_attention(),
        *_synthesizer(),
        *_other_functions(),
        *_losses(),
    ]


def _linear_and_conv1d() -> list[Case]:
    draw = np.random.default_rng(0).standard_normal
    b = draw(4)
    table = [
        _pair("with bias", F.linear, draw((2, 3, 5)), draw((5, 4)), b),
        _pair("without bias", F.linear, draw((2, 5)), draw((5, 4))),
        _pair("a single row", F.linear, draw(5), draw((5, 4)), b),
        _pair("weights along random directions", F.linear, draw((3, 12)), draw((12, 10)), draw(10)),
        _pair("kernel 1", F.conv1d, draw((2, 5, 3)), draw((1, 3, 4)), b),
        _pair("kernel 3, without bias", F.conv1d, draw((2, 5, 3)), draw((3, 3, 4))),
        _pair("kernel 4, longer than x", F.conv1d, draw((2, 3, 3)), draw((4, 3, 4)), b),
    ]
    for kernel in (2, 3):
        for padding in ("same", "valid"):
            x, W = draw((2, 5, 3)), draw((kernel, 3, 4))
            table.append(_pair(f"kernel {kernel}, {padding}", F.conv1d, x, W, b, padding=padding))
    return table


def _elementwise() -> list[Case]:
    draw = np.random.default_rng(0).standard_normal
    at_corner = draw((3, 4))
    at_corner[::2, 1:3] = 0.0
    rate, generator = 0.4, np.random.default_rng(2)
    return [
        _pair("random points", F.relu, draw((3, 4))),
        _pair("4 points at exactly 0, where it has no derivative", F.relu, at_corner),
        _pair("exact", F.gelu, 2.0 * draw((3, 4))),
        _pair("tanh form", F.gelu, 2.0 * draw((3, 4)), approximate="tanh"),
        _pair("random points", F.tanh, draw((3, 4))),
        _pair("random points", F.sigmoid, 3.0 * draw((3, 4))),
        _pair("training", F.dropout, draw((4, 6)), rate, generator),
        _pair("evaluation", F.dropout, draw((4, 6)), rate),
        _pair("rate 0", F.dropout, draw((4, 6)), 0.0, generator),
    ]


def _normalisations() -> list[Case]:
    rng = np.random.default_rng(0)
    draw = rng.standard_normal
    gamma, beta = 1.5 + draw(6), draw(6)
    masked = rng.random((3, 5)) < 0.6
    masked[1] = False
    by_row = np.array([[True], [False], [True]])
    return [
        _pair("gamma away from 1", F.layer_norm, draw((2, 3, 6)), gamma, beta),
        _pair("mean of 100", F.layer_norm, 100.0 + draw((4, 6)), gamma, beta),
        _pair("large epsilon", F.layer_norm, draw((4, 6)), gamma, beta, eps=0.5),
        _pair("last axis", F.softmax, draw((2, 3, 4))),
        _pair("first axis", F.softmax, draw((3, 4)), axis=0),
        _pair("masked, one row fully", F.softmax, draw((3, 5)), mask=masked),
        _pair("masked, first axis", F.softmax, draw((3, 5)), axis=0, mask=by_row),
    ]


def _attention() -> list[Case]:
    rng = np.random.default_rng(0)
    query, key, value = (rng.standard_normal((2, 2, 3, 4)) for _ in range(3))
    far_key, far_value = rng.standard_normal((2, 2, 5, 4)), rng.standard_normal((2, 2, 5, 3))
    padding = _keep([3, 1], 3)[:, None, None, :]
    pairs = rng.random((3, 3)) < 0.7
    pairs[1] = False
    nothing = _keep([2, 0], 3)[:, None, None, :]
    table = []
    for label, options in (
        ("all pairs", {}),
        ("padding mask", {"mask": padding}),
        ("mask of pairs, one query sees nothing", {"mask": pairs}),
        ("one sequence is all padding", {"mask": nothing}),
        ("causal", {"causal": True}),
        ("causal and padding mask", {"causal": True, "mask": padding}),
    ):
        table.append(_pair(label, F.attention_weights, query, key, **options))
        table.append(_pair(label, F.scaled_dot_product_attention, query, key, value, **options))
    for label, causal in (("other length of keys", False), ("other length of keys, causal", True)):
        table.append(_pair(label, F.attention_weights, query, far_key, causal=causal))
        table.append(
            _pair(label, F.scaled_dot_product_attention, query, far_key, far_value, causal=causal)
        )
    table.append(
        _pair(
            "without leading axes",
            F.scaled_dot_product_attention,
            query[0, 0],
            key[0, 0],
            value[0, 0],
        )
    )
    return table


def _synthesizer() -> list[Case]:
    rng = np.random.default_rng(0)
    draw = rng.standard_normal
    x, W1, b1 = draw((2, 3, 4)), draw((4, 6)), draw(6)
    single = (W1, b1, draw((6, 5)), draw(5))
    by_head = (W1, b1, draw((2, 3, 5)), draw((2, 5)))
    exactly = (W1, b1, draw((6, 3)), draw(3))
    value, head_value = draw((2, 3, 4)), draw((2, 2, 3, 2))
    padding, nothing = _keep([3, 1], 3), _keep([2, 0], 3)
    table = []
    for label, x_, value_, maps, options in (
        ("one map, at full length", x, value, exactly, {}),
        ("one map, shorter than max_len", x, value, single, {}),
        ("one map, padding mask", x, value, single, {"mask": padding[:, None]}),
        ("one map, causal", x, value, single, {"causal": True}),
        ("one map, without a batch", x[0], value[0], single, {}),
        ("heads, shorter than max_len", x, head_value, by_head, {}),
        ("heads, padding mask", x, head_value, by_head, {"mask": padding[:, None, None]}),
        ("heads, causal", x, head_value, by_head, {"causal": True}),
        (
            "heads, one sequence is all padding",
            x,
            head_value,
            by_head,
            {"causal": True, "mask": nothing[:, None, None]},
        ),
    ):
        table.append(_pair(label, F.dense_synthesizer_weights, x_, *maps, **options))
        table.append(_pair(label, F.dense_synthesizer, x_, value_, *maps, **options))
    return table


def _other_functions() -> list[Case]:
    draw = np.random.default_rng(0).standard_normal
    repeated, table = np.array([[1, 3, 1], [1, 0, 3]]), draw((5, 4))
    x = draw((3, 4, 5))
    return [
        _pair("repeated ids", F.embedding, repeated, table),
        _pair("a row of ids", F.embedding, np.array([4, 2, 4]), table),
        _pair("even sizes", F.fourier_mixing, draw((2, 4, 6))),
        _pair("odd sizes", F.fourier_mixing, draw((2, 5, 3))),
        _pair("a single token", F.fourier_mixing, draw((2, 1, 4))),
        _pair("without a mask", F.mean_pooling, x),
        _pair("one sequence is all padding", F.mean_pooling, x, mask=_keep([4, 2, 0], 4)),
    ]


def _losses() -> list[Case]:
    rng = np.random.default_rng(0)
    draw = rng.standard_normal
    logits, labels = draw((4, 3)), np.array([0, 2, 1, 2])
    by_token, some = draw((2, 3, 3)), np.array([[0, -1, 2], [1, 1, -1]])
    z, targets = 3.0 * draw((4, 2)), rng.random((4, 2))
    crossed, differences = ["logits"], ["prediction"]
    return [
        _pair("one label a row", F.softmax_cross_entropy, logits, labels),
        _pair("label smoothing", F.softmax_cross_entropy, logits, labels, label_smoothing=0.1),
        _pair("some without a label", F.softmax_cross_entropy, by_token, some),
        _pair(
            "some without a label, label smoothing",
            F.softmax_cross_entropy,
            by_token,
            some,
            label_smoothing=0.3,
        ),
        _pair("no label at all", F.softmax_cross_entropy, logits, np.full(4, F.NO_LABEL)),
        _pair("soft targets", F.binary_cross_entropy_with_logits, z, targets, wrt=crossed),
        _pair("hard targets", F.binary_cross_entropy_with_logits, z, targets.round(), wrt=crossed),
        _pair("random points", F.mean_squared_error, z, draw((4, 2)), wrt=differences),
    ]


# Layers -------------------------------------------------------------------------------------------


def _layers() -> list[Case]:
    draw = np.random.default_rng(0).standard_normal
    made: dict[str, Any] = {"seed": 0, "dtype": "float64"}
    x, ids = draw((2, 3, 4)), np.array([[1, 3, 1], [1, 0, 3]])
    mask = _keep([3, 1], 3)
    table = [
        _layer("with bias", L.Linear(4, 3, **made), x),
        _layer("without bias", L.Linear(4, 3, bias=False, **made), x),
        _layer("kernel 1", L.Conv1d(4, 3, **made), x),
        _layer("kernel 3, same", L.Conv1d(4, 3, 3, **made), x),
        _layer("kernel 2, valid", L.Conv1d(4, 3, 2, padding="valid", bias=False, **made), x),
        _layer("with parameters", L.LayerNorm(4, dtype="float64"), x),
        _layer("training", L.Dropout(0.4), x, training=True),
        _layer("evaluation", L.Dropout(0.4), x),
        _layer("repeated ids", L.Embedding(5, 4, **made), ids),
        _layer("scaled by sqrt(d_model)", L.Embedding(5, 4, scale=True, **made), ids),
        _layer("sinusoidal", L.Positions(5, 4, **made), x),
        _layer("learned, shorter than max_len", L.Positions(5, 4, "learned", **made), x),
        _layer("without a mask", L.MeanPooling(), x),
        _layer("padding mask", L.MeanPooling(), x, mask=mask),
        _layer("three tokens", L.FirstToken(), x),
        _layer("without a mask", L.Flatten(), x),
        _layer("padding mask", L.Flatten(), x, mask=mask),
        _layer("three tokens", L.EveryToken(), x),
        _layer("of a linear layer", L.TimeDistributed(L.Linear(4, 3, **made)), x),
        _layer(
            "of a pooling",
            L.TimeDistributed(L.Sequential(L.Linear(4, 2, **made), L.MeanPooling())),
            draw((2, 3, 2, 4)),
        ),
        _layer(
            "a chain with dropout",
            L.Sequential(L.Linear(4, 6, **made), L.GELU(), L.Dropout(0.3), L.Linear(6, 4, **made)),
            x,
            training=True,
        ),
        _layer("no layer at all", L.Sequential(), x),
    ]
    for name, activation in L.ACTIVATIONS.items():
        table.append(_layer(f"named {name}", activation(), x))
        for ffn in L.FFNS:
            layer = L.PositionwiseFeedForward(4, 6, name, ffn=ffn, **made)
            table.append(_layer(f"{ffn}, {name}", layer, x))
    table += [
        _twice(L.Linear(4, 4, **made), x),
        _twice(L.Conv1d(4, 4, 3, **made), x),
        _twice(L.ReLU(), x),
        _twice(L.GELU(), x),
        _twice(L.Tanh(), x),
        _twice(L.LayerNorm(4, dtype="float64"), x),
        _twice(L.Dropout(0.4), x, training=True),
        _twice(L.Positions(5, 4, "learned", **made), x),
        _twice(L.EveryToken(), x),
        _twice(L.PositionwiseFeedForward(4, 6, "gelu", **made), x),
        _twice(L.TimeDistributed(L.Linear(4, 4, **made)), x),
        _twice(L.Sequential(L.Linear(4, 4, **made), L.Tanh()), x),
    ]
    return table


# Mixers -------------------------------------------------------------------------------------------


def _mixers() -> list[Case]:
    x = np.random.default_rng(0).standard_normal((3, 4, 4))
    mask = _keep([4, 2, 0], 4)

    def mixer(name: str, **settings: Any) -> Layer:
        chosen = MixerSettings(d_model=4, max_len=5, **settings)
        return MIXERS[name].build(chosen, seed=0, dtype="float64")

    def case(label: str, name: str, mask: np.ndarray | None = None, **settings: Any) -> Case:
        layer = mixer(name, **settings)
        return _layer(label, layer, x, group="mixers", title=name, covers=(name,), mask=mask)

    table = []
    for name in MIXERS:
        table += [
            case("all tokens", name, n_heads=2),
            case("padding mask", name, mask, n_heads=2, padding="per_length"),
            _twice(mixer(name, n_heads=2), x, group="mixers", title=name),
        ]
    for name in ("attention", "dense_synthesizer"):
        table += [
            case("one head", name),
            case("causal", name, n_heads=2, causal=True),
            case("causal and padding mask", name, mask, n_heads=2, causal=True),
        ]
    return [*table, case("padding as zeros", "fourier", mask, padding="zero")]


# Models -------------------------------------------------------------------------------------------


def _config(**changes: Any) -> EncoderConfig:
    small = {"d_model": 4, "n_layers": 2, "n_heads": 2, "d_ff": 6, "max_len": 4}
    return EncoderConfig(**(small | changes))


def _models() -> list[Case]:
    x = np.random.default_rng(0).standard_normal((3, 3, 4))
    mask = _keep([3, 2, 0], 3)
    model: dict[str, Any] = {"group": "models", "max_entries": MANY}

    def block(label: str, norm: str, **options: Any) -> Case:
        layer = EncoderBlock(_config(norm=norm, dropout=0.2), seed=0, dtype="float64")
        return _layer(label, layer, x, **model, **options)

    def encoder(
        label: str, *, mask: np.ndarray | None = None, training: bool = False, **changes: Any
    ) -> Case:
        layer = Encoder(_config(**changes), dtype="float64")
        return _layer(label, layer, x, mask=mask, training=training, **model)

    return [
        block("post-norm", "post"),
        block("pre-norm, dropout, padding mask", "pre", mask=mask, training=True),
        _twice(EncoderBlock(_config(), seed=0, dtype="float64"), x, **model),
        encoder("post-norm"),
        encoder("pre-norm", norm="pre"),
        encoder("post-norm, padding mask", mask=mask),
        encoder("pre-norm, padding mask, causal", norm="pre", mask=mask, causal=True),
        encoder("shared layers", share_layers=True),
        encoder(
            "shared layers, pre-norm, dropout",
            share_layers=True,
            norm="pre",
            training=True,
            dropout=0.2,
        ),
        encoder("one mixer a layer", n_layers=len(MIXERS), mixer=tuple(MIXERS)),
        encoder(
            "one mixer a layer, padding mask",
            n_layers=len(MIXERS),
            mixer=tuple(MIXERS),
            mask=mask,
            padding="per_length",
        ),
        encoder("dropout in training", dropout=0.2, training=True),
        encoder("ffn as convolutions, relu", ffn="conv1d", activation="relu"),
        _twice(Encoder(_config(n_layers=1), dtype="float64"), x, **model),
        *_classifiers(),
        *_loss_and_gradients(),
    ]


def _classifiers() -> list[Case]:
    rng = np.random.default_rng(0)
    ids, features = rng.integers(0, 5, (3, 4)), rng.standard_normal((3, 4, 2))
    mask = _keep([4, 2, 0], 4)
    made: dict[str, Any] = {"seed": 0, "dtype": "float64"}
    words, vectors = {"vocab_size": 5, "n_features": None}, {"vocab_size": None, "n_features": 2}

    def embed(label: str, x: np.ndarray, kind: dict[str, Any], **changes: Any) -> Case:
        layer = InputEmbedding(_config(dropout=0.2, **changes), **kind, **made)
        return _layer(label, layer, x, group="models", training=True)

    def classifier(
        label: str,
        *,
        x: np.ndarray = features,
        mask: np.ndarray | None = None,
        training: bool = False,
        changes: dict[str, Any] | None = None,
        **arguments: Any,
    ) -> Case:
        kind = words if x is ids else vectors
        layer = SequenceClassifier(
            _config(**(changes or {})), **({"n_classes": 3} | kind | arguments), **made
        )
        return _layer(
            label, layer, x, group="models", mask=mask, training=training, max_entries=MANY
        )

    return [
        embed("tokens, sinusoidal positions", ids, words),
        embed(
            "tokens, not scaled, learned positions",
            ids,
            words,
            positions="learned",
            scale_embeddings=False,
        ),
        embed("features, without positions", features, vectors, positions="none"),
        classifier("tokens", x=ids),
        classifier(
            "tokens, padding mask, learned positions",
            x=ids,
            mask=mask,
            changes={"positions": "learned"},
        ),
        classifier("features"),
        *(
            classifier(f"pooling {pooling}, padding mask", pooling=pooling, mask=mask)
            for pooling in L.POOLINGS
        ),
        classifier("one logit", n_classes=2, output="sigmoid"),
        classifier(
            "tokens, dropout, pre-norm",
            x=ids,
            training=True,
            changes={"dropout": 0.2, "norm": "pre"},
        ),
        classifier("ffn as convolutions", changes={"ffn": "conv1d"}),
        classifier(
            "fourier and attention",
            x=ids,
            changes={"mixer": ("fourier", "attention"), "activation": "gelu_tanh"},
        ),
    ]


def _loss_and_gradients() -> list[Case]:
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 5, (3, 4))
    labels, by_token = np.array([0, 1, 1]), np.array([[0, 1, 2, -1], [1, -1, -1, -1], [2, 2, 0, 1]])

    def loss(
        label: str, y: np.ndarray, n_classes: int, changes: dict[str, Any], **options: Any
    ) -> Case:
        arguments = {k: options.pop(k) for k in ("pooling", "output") if k in options}
        model = SequenceClassifier(
            _config(n_layers=1, **changes), n_classes, vocab_size=5, dtype="float64", **arguments
        )
        flat: Any = model.parameters().flat
        start = flat.copy()

        def forward(parameters: np.ndarray) -> tuple[Any, Any]:
            flat[...] = parameters
            return model.loss_and_gradients(ids, y, **options)

        def backward(dloss: Any, gradients: Any) -> Any:
            return dloss * gradients.flat

        return Case(
            name=f"loss_and_gradients: {label}",
            group="models",
            covers=("SequenceClassifier", "loss_and_gradients"),
            run=lambda: gradcheck((forward, backward), start),
        )

    return [
        loss("softmax, label smoothing", labels, 2, {}, label_smoothing=0.1),
        loss("sigmoid", labels, 2, {}, output="sigmoid"),
        loss("sigmoid, label smoothing", labels, 2, {}, output="sigmoid", label_smoothing=0.1),
        loss("one label a token, some without", by_token, 3, {}, pooling="none"),
        loss("two workers, dropout", labels, 2, {"dropout": 0.2}, workers=2, seed=0),
        loss("two workers, one label a token", by_token, 3, {}, workers=2, pooling="none"),
    ]
