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
from npformer.classifier import SequenceClassifier
from npformer.core import Context, Gradients, Layer
from npformer.mixers import (
    MIXERS,
    SCORES,
    AttentionScores,
    AveragingMixer,
    DenseScores,
    FactorizedDenseScores,
    FactorizedRandomScores,
    Mixer,
    MixerSettings,
    MixtureScores,
    RandomScores,
    Scores,
    WholeSequenceMixer,
)
from npformer.models import Encoder, EncoderBlock, EncoderConfig, InputEmbedding, SequenceModel
from npformer.models.published import AskersSynthesizer, BlogFNetBlock, KerasFeedForward, blog_fnet
from npformer.proof.gradcheck import GradcheckReport, gradcheck
from npformer.text_encoder import TextEncoder

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
    return [*_functional(), *_layers(), *_mixers(), *_models(), *_text(), *_seeds()]


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


def _between(layer: Layer, top: type[Layer]) -> tuple[str, ...]:
    """Return the classes whose passes a layer has, from its own up to `top`, which is left out."""
    kinds = type(layer).__mro__
    return tuple(kind.__name__ for kind in kinds[: kinds.index(top)])


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
        *_averaging(),
        *_dense_synthesizer(),
        *_random_synthesizer(),
        *_mixture(),
        *_transforms(),
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
    draw = np.random.default_rng(0).standard_normal
    query, key, value = near = [draw((2, 2, 3, 4)) for _ in range(3)]
    far = query, draw((2, 2, 5, 4)), draw((2, 2, 5, 3))
    few, alone = (far[1], query, value), [x[0, 0] for x in near]
    pairs = np.random.default_rng(1).random((3, 5)) < 0.7
    pairs[1] = False
    table = [
        _pair("all pairs", F.attention_scores, query, key),
        _pair("other length of keys", F.attention_scores, *far[:2]),
        _pair("without leading axes", F.attention_scores, *alone[:2]),
    ]
    attend: list[tuple[Callable[..., Any], str, dict[str, Any]]] = [
        (F.scaled_dot_product_attention, "", {}),
        (F.blockwise_attention, ", two queries at a time", {"block": 2}),
        (F.blockwise_attention, ", a block longer than the length", {"block": 8}),
    ]
    for forward, way, block in attend:
        for label, qkv, options in (
            *((label, near, options) for label, options in _sights()),
            ("other length of keys", far, {}),
            ("other length of keys, causal", far, {"causal": True}),
            ("other length of keys, one query sees nothing", far, {"mask": pairs}),
            ("a mask without a query axis", far, {"mask": np.arange(5) % 2 == 0}),
            ("more queries than keys", few, {}),
            ("more queries than keys, causal", few, {"causal": True}),
            ("without leading axes", alone, {}),
        ):
            table.append(_pair(f"{label}{way}", forward, *qkv, **block, **options))
    return table


def _sights() -> list[tuple[str, dict[str, Any]]]:
    """Return what three queries of two sequences, by head, may see of three keys."""
    pairs = np.random.default_rng(1).random((3, 3)) < 0.7
    pairs[1] = False
    padding, nothing = (_keep(lengths, 3)[:, None, None, :] for lengths in ([3, 1], [2, 0]))
    return [
        ("all pairs", {}),
        ("padding mask", {"mask": padding}),
        ("mask of pairs, one query sees nothing", {"mask": pairs}),
        ("one sequence is all padding", {"mask": nothing}),
        ("causal", {"causal": True}),
        ("causal and padding mask", {"causal": True, "mask": padding}),
    ]


def _averaging() -> list[Case]:
    draw = np.random.default_rng(0).standard_normal
    value = draw((2, 2, 3, 4))
    weights = (F.averaging_weights, F.softmax_backward)
    table = [
        _pair("keys of another length", F.average, draw((2, 3, 5)), draw((2, 5, 4))),
        _pair("keys of another length, causal", F.average, draw((3, 5)), draw((5, 4)), causal=True),
        _pair("one value for all heads", F.average, draw((2, 2, 3, 3)), draw((2, 1, 3, 4))),
        _pair("one value for all scores", F.average, draw((2, 2, 3, 3)), draw((3, 4))),
    ]
    for whose, shape in (
        ("scores of each head", (2, 2, 3, 3)),
        ("scores shared by the batch", (2, 3, 3)),
        ("scores shared by the batch, an axis of 1", (1, 2, 3, 3)),
        ("scores shared by the heads, an axis of 1", (2, 1, 3, 3)),
        ("one table of scores for all", (3, 3)),
    ):
        scores = draw(shape)
        for label, options in _sights():
            table.append(_pair(f"{whose}, {label}", F.average, scores, value, **options))
    scores = draw((2, 2, 3, 3))

    def of_weights(label: str, options: dict[str, Any]) -> Case:
        return Case(
            name=f"averaging_weights: {label}",
            group="functional",
            covers=("averaging_weights",),
            run=lambda: gradcheck(weights, scores, **options),
        )

    return [*table, *(of_weights(label, options) for label, options in _sights())]


def _dense_synthesizer() -> list[Case]:
    draw = np.random.default_rng(0).standard_normal
    x, value, head_value = draw((2, 3, 4)), draw((2, 3, 4)), draw((2, 2, 3, 2))
    padding, nothing = _keep([3, 1], 3), _keep([2, 0], 3)

    def maps(*columns: int, heads: bool) -> list[np.ndarray]:
        """Return W1, b1, W2, b2 for each number of columns."""
        single = [((4, 6), (6,), (6, n), (n,)) for n in columns]
        by_head = [((4, 6), (6,), (2, 3, n), (2, n)) for n in columns]
        return [draw(shape) for shapes in (by_head if heads else single) for shape in shapes]

    table = []
    for scores, synthesize, exact, longer in (
        (F.dense_scores, F.dense_synthesizer, (3,), (5,)),
        (F.factorized_dense_scores, F.factorized_dense_synthesizer, (3, 1), (2, 3)),
    ):
        whole, one, two = (
            maps(*exact, heads=False),
            maps(*longer, heads=False),
            maps(*longer, heads=True),
        )
        for label, x_, maps_ in (
            ("one map, at full length", x, whole),
            ("one map, shorter than max_len", x, one),
            ("one map, without a batch", x[0], one),
            ("heads, shorter than max_len", x, two),
        ):
            table.append(_pair(label, scores, x_, *maps_, 3))
        for label, x_, value_, maps_, options in (
            ("one map, at full length", x, value, whole, {}),
            ("one map, shorter than max_len", x, value, one, {}),
            ("one map, padding mask", x, value, one, {"mask": padding[:, None]}),
            ("one map, causal", x, value, one, {"causal": True}),
            ("one map, without a batch", x[0], value[0], one, {}),
            ("heads, shorter than max_len", x, head_value, two, {}),
            ("heads, padding mask", x, head_value, two, {"mask": padding[:, None, None]}),
            ("heads, causal", x, head_value, two, {"causal": True}),
            (
                "heads, one sequence is all padding",
                x,
                head_value,
                two,
                {"causal": True, "mask": nothing[:, None, None]},
            ),
        ):
            table.append(_pair(label, synthesize, x_, value_, *maps_, **options))
    return table


def _random_synthesizer() -> list[Case]:
    draw = np.random.default_rng(0).standard_normal
    value, head_value = draw((2, 3, 4)), draw((2, 2, 3, 2))
    padding, nothing = _keep([3, 1], 3), _keep([2, 0], 3)
    sizes: dict[str, tuple[tuple[int, ...], int]] = {
        "one table, at full length": ((), 3),
        "one table, cropped": ((), 5),
        "heads, at full length": ((2,), 3),
        "heads, cropped": ((2,), 5),
    }
    table = []
    for label, (heads, n) in sizes.items():
        factors = draw((*heads, n, 2)), draw((*heads, n, 2))
        table.append(_pair(label, F.random_scores, draw((*heads, n, n)), 3))
        table.append(_pair(label, F.factorized_random_scores, *factors, 3))
    for label, value_, (heads, n), options in (
        ("one table, at full length", value, ((), 3), {}),
        ("one table, cropped", value, ((), 5), {}),
        ("one table, padding mask", value, ((), 5), {"mask": padding[:, None]}),
        ("one table, causal", value, ((), 5), {"causal": True}),
        ("one table, without a batch", value[0], ((), 5), {}),
        ("heads, cropped", head_value, ((2,), 5), {}),
        ("heads, padding mask", head_value, ((2,), 5), {"mask": padding[:, None, None]}),
        ("heads, causal", head_value, ((2,), 5), {"causal": True}),
        (
            "heads, one sequence is all padding",
            head_value,
            ((2,), 5),
            {"causal": True, "mask": nothing[:, None, None]},
        ),
    ):
        R, factors = draw((*heads, n, n)), (draw((*heads, n, 2)), draw((*heads, n, 2)))
        table.append(_pair(label, F.random_synthesizer, value_, R, **options))
        table.append(_pair(label, F.factorized_random_synthesizer, value_, *factors, **options))
    return table


def _mixture() -> list[Case]:
    draw = np.random.default_rng(0).standard_normal

    def case(label: str, *shapes: tuple[int, ...]) -> Case:
        # gradcheck names what it differentiates by: as many names as there are parts
        parts: dict[int, Callable[..., Any]] = {
            1: lambda logits, a: F.mixture_scores(logits, a),
            2: lambda logits, a, b: F.mixture_scores(logits, a, b),
            3: lambda logits, a, b, c: F.mixture_scores(logits, a, b, c),
        }
        arrays = [draw(len(shapes)), *(draw(shape) for shape in shapes)]
        pair = parts[len(shapes)], F.mixture_scores_backward
        return Case(
            name=f"mixture_scores: {label}",
            group="functional",
            covers=("mixture_scores", "mixture_scores_backward"),
            run=lambda: gradcheck(pair, *arrays),
        )

    return [
        case("scores of one shape", (2, 2, 3, 3), (2, 2, 3, 3)),
        case("a table beside a batch", (2, 2, 3, 3), (2, 3, 3), (3, 3)),
        case("tables alone", (2, 3, 3), (2, 3, 3)),
        case("a single part", (3, 3)),
    ]


def _transforms() -> list[Case]:
    draw = np.random.default_rng(0).standard_normal
    table = []
    for transform in (F.fourier_mixing, F.hartley_mixing):
        table += [
            _pair("even sizes", transform, draw((2, 4, 6))),
            _pair("odd sizes", transform, draw((2, 5, 3))),
            _pair("a single token", transform, draw((2, 1, 4))),
            _pair("more leading axes", transform, draw((2, 2, 3, 2))),
        ]
    features = draw((4, 4))
    return [
        *table,
        _pair("at full length", F.linear_mixing, draw((2, 3, 4)), draw((3, 3)), features),
        _pair("cropped", F.linear_mixing, draw((2, 3, 4)), draw((5, 5)), features),
        _pair("a single token", F.linear_mixing, draw((2, 1, 4)), draw((3, 3)), features),
    ]


def _other_functions() -> list[Case]:
    draw = np.random.default_rng(0).standard_normal
    repeated, table = np.array([[1, 3, 1], [1, 0, 3]]), draw((5, 4))
    x = draw((3, 4, 5))
    return [
        _pair("repeated ids", F.embedding, repeated, table),
        _pair("a row of ids", F.embedding, np.array([4, 2, 4]), table),
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
        _layer("types of the tokens", L.TokenTypes(3, 4, **made), x, types=ids % 3),
        _layer("every token of type 0, scaled", L.TokenTypes(3, 4, scale=True, **made), x),
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
        for ffn in ("linear", "conv1d"):
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

    def mixer(name: str, **settings: Any) -> Mixer:
        chosen = MixerSettings(**({"d_model": 4, "max_len": 5} | settings))
        built: Mixer = MIXERS[name].build(chosen, seed=0, dtype="float64")
        return built

    def case(label: str, name: str, mask: np.ndarray | None = None, **settings: Any) -> Case:
        layer = mixer(name, **settings)
        covers = (name, *_between(layer, Mixer))
        if isinstance(layer, AveragingMixer):
            covers += _between(layer.scores, Layer)
        return _layer(label, layer, x, group="mixers", title=name, covers=covers, mask=mask)

    two: dict[str, Any] = {"n_heads": 2}
    blocks: dict[str, Any] = {"n_heads": 2, "memory": "blocks"}
    six: dict[str, Any] = {"n_heads": 2, "mixture": tuple(SCORES)}
    table = []
    for name, kind in MIXERS.items():
        table += [
            case("all tokens", name, **two),
            case("at full length", name, **two, max_len=4),
            case("padding mask", name, mask, **two, padding="per_length"),
            _twice(mixer(name, **two), x, group="mixers", title=name),
        ]
        if issubclass(kind, AveragingMixer):
            table += [
                case("one head", name),
                case("causal", name, **two, causal=True),
                case("causal and padding mask", name, mask, **two, causal=True),
            ]
        if issubclass(kind, WholeSequenceMixer):
            table += [
                case("padding as zeros", name, mask, padding="zero"),
                case("a mask that keeps everything", name, _keep([4] * 3, 4), padding="per_length"),
            ]
    return [
        *_scores(),
        *table,
        case("in blocks", "attention", **blocks),
        case("in blocks, padding mask", "attention", mask, **blocks),
        case("in blocks, causal and padding mask", "attention", mask, **blocks, causal=True),
        _twice(mixer("attention", **blocks), x, group="mixers", title="attention in blocks"),
        case("rank 1", "factorized_random_synthesizer", **two, rank=1),
        case("six parts", "mixture", **six),
        case("six parts, padding mask", "mixture", mask, **six),
        case("six parts, causal and padding mask", "mixture", mask, **six, causal=True),
        case(
            "tables alone",
            "mixture",
            **two,
            mixture=("random_synthesizer", "factorized_random_synthesizer"),
        ),
        case("one part twice", "mixture", **two, mixture=("attention", "attention")),
    ]


def _scores() -> list[Case]:
    x, tokens = np.random.default_rng(0).standard_normal((2, 3, 4)), np.zeros((2, 3, 4), dtype=int)
    made: dict[str, Any] = {"seed": 0, "dtype": "float64"}

    def mixture(*names: str) -> MixtureScores:
        settings = MixerSettings(d_model=4, n_heads=2, max_len=5, mixture=names)
        return MixtureScores.build(settings, **made)

    def case(label: str, layer: Scores, x: np.ndarray = x) -> Case:
        return _layer(label, layer, x, group="mixers", covers=_between(layer, Layer))

    return [
        case("two heads", AttentionScores(4, 2, **made)),
        case("two heads, cropped", DenseScores(4, 2, 5, **made)),
        case("two heads, cropped", FactorizedDenseScores(4, 2, 5, **made)),
        # whole numbers: the tokens' values have no say here, and no gradient
        case("two heads, cropped", RandomScores(2, 5, **made), tokens),
        case("two heads, cropped", FactorizedRandomScores(2, 5, 2, **made), tokens),
        case("six parts", mixture(*SCORES)),
        case("tables alone", mixture("random_synthesizer", "fixed_random_synthesizer"), tokens),
    ]


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

    every = tuple(MIXERS)
    stacks = [every[i : i + 4] for i in range(0, len(every), 4)]
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
        *(encoder(", ".join(names), n_layers=len(names), mixer=names) for names in stacks),
        *(
            encoder(
                f"{', '.join(names)}, padding mask",
                n_layers=len(names),
                mixer=names,
                mask=mask,
                padding="per_length",
            )
            for names in stacks
        ),
        encoder("attention in blocks, padding mask", mask=mask, memory="blocks", causal=True),
        encoder("shared layers of a mixture", share_layers=True, mixer="mixture"),
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
        options: dict[str, Any] = {"group": "models", "max_entries": MANY}
        covers = ("SequenceModel",)
        return _layer(label, layer, x, mask=mask, training=training, covers=covers, **options)

    model = SequenceModel(_config(), 3, vocab_size=5, **made)
    return [
        _layer("below its face", model, ids, mask=mask, group="models", max_entries=MANY),
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


# Text: token types, the pooler, two outputs -------------------------------------------------------


def _of_parameters(
    label: str,
    layer: Layer,
    run: Callable[[], tuple[Any, Any]],
    pull: Callable[[Any, Any, Gradients], Any],
    *more: str,
) -> Case:
    """Return a case for all parameters at once, of a layer that takes or gives several things."""
    flat: Any = layer.flatten().parameters().flat
    start = flat + 0.3 * np.random.default_rng(1).standard_normal(flat.shape)

    def forward(parameters: np.ndarray) -> tuple[Any, Any]:
        flat[...] = parameters
        y, cache = run()
        return y, (parameters.copy(), cache)

    def backward(dy: Any, cache: Any) -> Any:
        flat[...], run_cache = cache  # backward is asked at the parameters that forward had
        gradients = Gradients(layer)
        pull(dy, run_cache, gradients)
        return gradients.flat

    name = type(layer).__name__
    return Case(
        name=f"{name}: {label}",
        group="models",
        covers=(name, *more),
        run=lambda: gradcheck((forward, backward), start),
    )


def _text() -> list[Case]:
    rng = np.random.default_rng(0)
    ids, features = rng.integers(0, 5, (3, 4)), rng.standard_normal((3, 4, 2))
    types, mask = rng.integers(0, 3, (3, 4)), _keep([4, 2, 0], 4)
    made: dict[str, Any] = {"seed": 0, "dtype": "float64"}
    bert: dict[str, Any] = {
        "positions": "learned",
        "scale_embeddings": False,
        "n_token_types": 3,
        "embedding_norm": True,
    }
    fnet: dict[str, Any] = {**bert, "embedding_projection": True, "mixer": "fourier"}

    def context(generator: bool = False, **options: Any) -> Context:
        if generator:
            options |= {"training": True, "generator": np.random.default_rng(2)}
        return Context(**options)

    def embed(label: str, changes: dict[str, Any], **options: Any) -> Case:
        layer = InputEmbedding(_config(**changes), vocab_size=5, n_features=None, **made)
        return _of_parameters(
            label, layer, lambda: layer.forward(ids, context(**options)), layer.backward
        )

    def encoder(label: str, changes: dict[str, Any], pooler: bool = True, **options: Any) -> Case:
        layer = TextEncoder(_config(**changes), 5, pooler=pooler, dtype="float64")

        def run() -> tuple[np.ndarray, Any]:
            (hidden, pooled), cache = layer.forward(ids, context(**options))
            both = [hidden] if pooled is None else [hidden, pooled]
            return np.concatenate([y.reshape(-1) for y in both]), cache

        def pull(dy: Any, cache: Any, gradients: Gradients) -> None:
            dhidden = dy[: ids.size * 4].reshape(*ids.shape, 4)
            dpooled = dy[ids.size * 4 :].reshape(-1, 4) if pooler else None
            layer.backward((dhidden, dpooled), cache, gradients)

        return _of_parameters(label, layer, run, pull)

    def features_embedded(label: str, **changes: Any) -> Case:
        layer = InputEmbedding(_config(**changes), vocab_size=None, n_features=2, **made)
        return _layer(label, layer, features, group="models")

    classifier = SequenceClassifier(_config(**bert), 3, vocab_size=5, pooling="pooler", **made)
    whole = TextEncoder(_config(**bert), 5, dtype="float64")
    return [
        _layer("both outputs", whole, ids, types=types, group="models", max_entries=MANY),
        _layer("three tokens", L.Pooler(4, **made), rng.standard_normal((2, 3, 4))),
        embed("as in BERT", bert, types=types),
        embed("as in BERT, every token of type 0", bert),
        embed("as in FNet, dropout", {**fnet, "dropout": 0.2}, types=types, generator=True),
        embed("types beside scaled tokens and sinusoids", {"n_token_types": 3}, types=types),
        features_embedded("features as in FNet", **fnet),
        features_embedded("features and a norm", embedding_norm=True, positions="none"),
        encoder("BERT", bert, types=types),
        encoder("BERT, padding mask", bert, types=types, mask=mask),
        encoder("BERT without a pooler", bert, pooler=False, mask=mask),
        encoder("FNet, dropout", {**fnet, "dropout": 0.2}, types=types, generator=True),
        _of_parameters(
            "token types",
            classifier,
            lambda: classifier.loss_and_gradients(
                ids, np.array([0, 2, 1]), mask, types=types, workers=2
            ),
            lambda dloss, found, gradients: np.copyto(gradients.flat, dloss * found.flat),
            "loss_and_gradients",
        ),
    ]


# What npformer grew from --------------------------------------------------------------------------


def _seeds() -> list[Case]:
    draw = np.random.default_rng(0).standard_normal
    made: dict[str, Any] = {"seed": 0, "dtype": "float64"}
    x, v = draw((2, 3, 4)), draw((2, 3, 2))
    table = [
        _layer(f"{ffn}, dropout", KerasFeedForward(4, 6, 0.3, ffn=ffn, **made), x, training=True)
        for ffn in ("linear", "conv1d")
    ]
    table += [
        _layer("one block, dropout", BlogFNetBlock(4, 6, 0.3, **made), x, training=True),
        _layer(
            "applied three times",
            blog_fnet(4, 6, 0.0, 3, **made),
            x,
            title="BlogFNetBlock",
            covers=("BlogFNetBlock",),
        ),
    ]

    def synthesizer(label: str, *inputs: np.ndarray, mask: np.ndarray | None = None) -> Case:
        layer = AskersSynthesizer(3, 4, **made)
        flat: Any = layer.flatten().parameters().flat
        start = flat + 0.3 * draw(flat.shape)

        def forward(x: np.ndarray, v: np.ndarray, parameters: np.ndarray) -> tuple[Any, Any]:
            flat[...] = parameters
            y, cache = layer.forward((x, v), Context(mask=mask))
            return y, (parameters.copy(), cache)

        def backward(dy: Any, cache: Any) -> tuple[Any, ...]:
            flat[...], forward_cache = cache
            gradients = Gradients(layer)
            dx, dv = layer.backward(dy, forward_cache, gradients)
            return dx, dv, gradients.flat

        return Case(
            name=f"AskersSynthesizer: {label}",
            group="layers",
            covers=("AskersSynthesizer",),
            run=lambda: gradcheck((forward, backward), *inputs, start),
        )

    return [
        *table,
        synthesizer("without a batch", x[0], v[0]),
        synthesizer("a batch", x, v),
        synthesizer("a batch, padding mask", x, v, mask=_keep([3, 1], 3)),
    ]
