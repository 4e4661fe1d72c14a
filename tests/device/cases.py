"""What must give the same numbers on every backend: one table, for the fake device and for a GPU.

A case is a function of a backend and a dtype that returns named arrays. The table of mixers follows
`npformer.MIXERS`; the tables of pairs and layers are written out, and a test says what they lack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer import optim
from npformer.engine import EngineContext
from npformer.engine.twins import twin_on
from npformer.engine.workers import Team
from npformer.layers import POOLINGS
from npformer.mixers import MixerSettings, WholeSequenceMixer

Results = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """Something to compute.

    Attributes
    ----------
    name : str
        In words, for the report.
    covers : str
        The public name that it is a case of.
    run : callable
        ``run(backend, dtype)`` returns named arrays.
    """

    name: str
    covers: str
    run: Callable[[str, str], Results]


def parametrised(cases: Iterable[Case]) -> pytest.MarkDecorator:
    """Run a test once for each of these, as its argument `case`."""
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in cases])


def assert_agree(case: Case, backend: str, dtype: str, tolerance: float) -> None:
    """Check that a case gives on `backend` what it gives on NumPy, in the same dtypes.

    Differences count relative to the largest entry of their tensor, or to a hundredth of the
    largest of all if that is more: some gradients, as that of attention's key bias, are 0 but for
    rounding.
    """
    with nf.use_kernels(False):  # the mathematics is what everything is compared with
        expected = {name: nf.to_numpy(x) for name, x in case.run("numpy", dtype).items()}
    results = {name: nf.to_numpy(x) for name, x in case.run(backend, dtype).items()}
    assert list(results) == list(expected)
    floor = 0.01 * max(float(np.abs(x).max(initial=0.0)) for x in expected.values())
    for name, x in expected.items():
        assert results[name].dtype == x.dtype, name
        assert results[name].shape == x.shape, name
        scale = max(float(np.abs(x).max(initial=0.0)), floor)
        error = float(np.abs(results[name] - x).max(initial=0.0)) / scale
        assert error <= tolerance, f"{name} differs by {error:.1e}; expected {tolerance:g}"


def move(x: Any, backend: str, dtype: str) -> Any:
    """Bring an array to the backend, in `dtype` if it holds floats; call what can be called."""
    if isinstance(x, np.ndarray):
        return nf.asarray(x.astype(dtype) if x.dtype.kind == "f" else x, backend)
    return x() if callable(x) else x


# Arrays to compute with ---------------------------------------------------------------------------

_rng = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return _rng.normal(size=shape)


def whole(top: int, *shape: int) -> np.ndarray:
    return _rng.integers(top, size=shape)


MASK = np.array([[True] * 5, [True, True, False, False, False], [False] * 5])
"""A full sequence, a padded one, and one of padding alone."""

X = normal(3, 5, 8)
IDS = whole(7, 3, 5)
TYPES = IDS % 2
LABELS = np.array([2, 0, 1])
LABELS_OF_TOKENS = np.where(MASK, whole(3, 3, 5), F.NO_LABEL)

# Pairs --------------------------------------------------------------------------------------------


def _pair(name: str, *inputs: Any, say: str = "", **options: Any) -> Case:
    def run(backend: str, dtype: str) -> Results:
        given = [move(x, backend, dtype) for x in inputs]
        chosen = {key: move(value, backend, dtype) for key, value in options.items()}
        y, cache = getattr(F, name)(*given, **chosen)
        dy = np.random.default_rng(1).normal(size=y.shape)
        result = getattr(F, f"{name}_backward")(move(dy, backend, dtype) if y.shape else 0.7, cache)
        gradients = result if isinstance(result, tuple) else (result,)
        return {"y": y} | {f"gradient {i}": g for i, g in enumerate(gradients)}

    return Case(f"{name}{', ' if say else ''}{say}", name, run)


_heads = [normal(3, 2, 5, 4) for _ in range(3)]
_over_heads = MASK[:, None, None, :]
_maps = [normal(8, 8), normal(8), normal(2, 4, 6), normal(2, 6)]
_map = [normal(8, 8), normal(8), normal(8, 6), normal(6)]
_two_maps = [normal(*shape) for n in (2, 4) for shape in ((8, 8), (8,), (2, 4, n), (2, n))]
_two_single_maps = [normal(*shape) for n in (2, 4) for shape in ((8, 8), (8,), (8, n), (n,))]
_value = normal(3, 5, 4)
_far = [_heads[0], normal(3, 2, 7, 4), normal(3, 2, 7, 3)]
_table, _tables = normal(6, 6), normal(2, 6, 6)
_factors = [normal(2, 6, 3), normal(2, 6, 3)]

PAIRS = [
    _pair("relu", X),
    _pair("gelu", X),
    _pair("gelu", X, approximate="tanh", say="tanh"),
    _pair("tanh", X),
    _pair("sigmoid", X),
    _pair("softmax", X),
    _pair("softmax", X, axis=1, say="axis 1"),
    _pair("softmax", X, mask=MASK[..., None], axis=1, say="masked"),
    _pair("layer_norm", X, normal(8), normal(8)),
    _pair("linear", X, normal(8, 4), normal(4)),
    _pair("linear", X, normal(8, 4), say="no bias"),
    _pair("conv1d", X, normal(1, 8, 4), normal(4), say="kernel 1"),
    _pair("conv1d", X, normal(3, 8, 4), normal(4), say="kernel 3"),
    _pair("conv1d", X, normal(4, 8, 4), padding="valid", say="valid, no bias"),
    _pair("dropout", X, 0.4, generator=lambda: np.random.default_rng(5)),
    _pair("dropout", X, 0.4, say="evaluation"),
    _pair("embedding", IDS, normal(7, 4)),
    _pair("mean_pooling", X),
    _pair("mean_pooling", X, mask=MASK, say="masked"),
    _pair("fourier_mixing", X),
    _pair("hartley_mixing", X),
    _pair("linear_mixing", X, normal(5, 5), normal(8, 8)),
    _pair("linear_mixing", X, normal(7, 7), normal(8, 8), say="cropped"),
    _pair("attention_scores", *_heads[:2]),
    _pair("attention_scores", *_far[:2], say="other length of keys"),
    _pair("average", normal(3, 2, 5, 5), _heads[2]),
    _pair("average", normal(2, 5, 5), _heads[2], say="scores shared by the batch"),
    _pair("average", normal(5, 5), _heads[2], mask=_over_heads, causal=True, say="one table"),
    _pair("scaled_dot_product_attention", *_heads),
    _pair("scaled_dot_product_attention", *_heads, mask=_over_heads, say="masked"),
    _pair("scaled_dot_product_attention", *_heads, causal=True, say="causal"),
    _pair(
        "scaled_dot_product_attention",
        *_heads,
        mask=_over_heads,
        causal=True,
        say="masked and causal",
    ),
    _pair("blockwise_attention", *_heads, say="one block"),
    _pair("blockwise_attention", *_heads, block=2, say="three blocks"),
    _pair("blockwise_attention", *_far, block=2, causal=True, say="other length of keys, causal"),
    _pair("blockwise_attention", *_heads, block=2, mask=_over_heads, causal=True, say="masked"),
    _pair("blockwise_attention", *_heads, block=2, mask=normal(5, 5) > 0.0, say="mask of pairs"),
    _pair("dense_scores", X, *_map, columns=5),
    _pair("dense_scores", X, *_maps, columns=4, say="heads"),
    _pair("factorized_dense_scores", X, *_two_maps, columns=5, say="heads"),
    _pair("factorized_dense_synthesizer", X, _value, *_two_single_maps, say="one map"),
    _pair(
        "factorized_dense_synthesizer",
        X,
        _heads[2],
        *_two_maps,
        mask=_over_heads,
        causal=True,
        say="heads, masked",
    ),
    _pair("random_scores", _tables, length=5),
    _pair("random_synthesizer", _value, _table, say="one table"),
    _pair("random_synthesizer", _heads[2], _tables, mask=_over_heads, causal=True, say="masked"),
    _pair("factorized_random_scores", *_factors, length=5),
    _pair("factorized_random_synthesizer", _value, _factors[0][0], _factors[1][0], say="one table"),
    _pair(
        "factorized_random_synthesizer",
        _heads[2],
        *_factors,
        mask=_over_heads,
        causal=True,
        say="masked",
    ),
    _pair("mixture_scores", normal(3), normal(3, 2, 5, 5), normal(2, 5, 5), normal(5, 5)),
    _pair("dense_synthesizer", X, normal(3, 5, 4), *_map, say="one map"),
    _pair("dense_synthesizer", X, normal(3, 2, 5, 4), *_maps, say="heads"),
    _pair("dense_synthesizer", X, _heads[2], *_maps, mask=_over_heads, causal=True, say="masked"),
    _pair("softmax_cross_entropy", normal(3, 4), LABELS),
    _pair("softmax_cross_entropy", normal(3, 4), LABELS.astype("uint8"), say="unsigned labels"),
    _pair("softmax_cross_entropy", normal(3, 4), LABELS, label_smoothing=0.1, say="smoothed"),
    _pair("softmax_cross_entropy", normal(3, 5, 3), LABELS_OF_TOKENS, say="tokens without label"),
    _pair("binary_cross_entropy_with_logits", normal(3, 4), np.eye(3, 4)),
    _pair("mean_squared_error", normal(3, 4), normal(3, 4)),
]

# Layers and mixers --------------------------------------------------------------------------------


def _run_layer(
    layer: nf.Layer,
    x: np.ndarray,
    mask: np.ndarray | None,
    types: np.ndarray | None,
    backend: str,
    dtype: str,
) -> Results:
    gradients = nf.Gradients(layer.to(backend))
    context = EngineContext(
        training=True,
        generator=np.random.default_rng(2),
        mask=move(mask, backend, dtype),
        types=move(types, backend, dtype),
        workspace=nf.Workspace(),
    )
    twin = twin_on(backend, layer)
    y, cache = twin.forward(move(x, backend, dtype), context)
    dy = np.random.default_rng(1).normal(size=y.shape)
    dx = twin.backward(move(dy, backend, dtype), cache, gradients)
    return {"y": y} | ({} if dx is None else {"dx": dx}) | dict(gradients)


def _layer(
    covers: str,
    make: Callable[[str], nf.Layer],
    x: np.ndarray = X,
    mask: np.ndarray | None = None,
    say: str = "",
    types: np.ndarray | None = None,
) -> Case:
    def run(backend: str, dtype: str) -> Results:
        return _run_layer(make(dtype), x, mask, types, backend, dtype)

    return Case(f"{covers}{', ' if say else ''}{say}", covers, run)


L = nf.layers

LAYERS = [
    _layer("Linear", lambda dtype: L.Linear(8, 4, seed=0, dtype=dtype)),
    _layer("Linear", lambda dtype: L.Linear(8, 4, bias=False, seed=0, dtype=dtype), say="no bias"),
    _layer("Conv1d", lambda dtype: L.Conv1d(8, 4, seed=0, dtype=dtype)),
    _layer("Conv1d", lambda dtype: L.Conv1d(8, 4, 3, seed=0, dtype=dtype), say="kernel 3"),
    _layer("LayerNorm", lambda dtype: L.LayerNorm(8, dtype=dtype)),
    _layer("Dropout", lambda dtype: L.Dropout(0.5)),
    _layer("Embedding", lambda dtype: L.Embedding(7, 4, seed=0, dtype=dtype), x=IDS),
    _layer(
        "Embedding",
        lambda dtype: L.Embedding(7, 4, scale=True, seed=0, dtype=dtype),
        IDS,
        say="scaled",
    ),
    _layer("Positions", lambda dtype: L.Positions(6, 8, seed=0, dtype=dtype)),
    _layer("TokenTypes", lambda dtype: L.TokenTypes(2, 8, seed=0, dtype=dtype)),
    _layer(
        "TokenTypes",
        lambda dtype: L.TokenTypes(2, 8, scale=True, seed=0, dtype=dtype),
        types=TYPES,
        say="of several types",
    ),
    _layer(
        "Positions", lambda dtype: L.Positions(6, 8, "learned", seed=0, dtype=dtype), say="learned"
    ),
    _layer(
        "PositionwiseFeedForward",
        lambda dtype: L.PositionwiseFeedForward(8, 12, seed=0, dtype=dtype),
    ),
    _layer(
        "PositionwiseFeedForward",
        lambda dtype: L.PositionwiseFeedForward(8, 12, "gelu", ffn="conv1d", seed=0, dtype=dtype),
        say="conv1d",
    ),
    _layer("ReLU", lambda dtype: L.ReLU()),
    _layer("GELU", lambda dtype: L.GELU()),
    _layer("Tanh", lambda dtype: L.Tanh()),
    _layer("MeanPooling", lambda dtype: L.MeanPooling()),
    _layer("MeanPooling", lambda dtype: L.MeanPooling(), mask=MASK, say="masked"),
    _layer("FirstToken", lambda dtype: L.FirstToken()),
    _layer("Flatten", lambda dtype: L.Flatten(), mask=MASK),
    _layer("EveryToken", lambda dtype: L.EveryToken()),
    _layer("Pooler", lambda dtype: L.Pooler(8, seed=0, dtype=dtype)),
    _layer(
        "Sequential",
        lambda dtype: L.Sequential(
            L.LayerNorm(8, dtype=dtype), L.Linear(8, 4, seed=0, dtype=dtype)
        ),
    ),
    _layer(
        "TimeDistributed",
        lambda dtype: L.TimeDistributed(L.Linear(8, 4, seed=0, dtype=dtype)),
        mask=MASK,
    ),
]


def _mixers() -> list[Case]:
    cases = []
    variants: list[tuple[str, str, dict[str, Any]]] = [
        *((name, "", {}) for name in nf.MIXERS),
        ("attention", "in blocks", {"memory": "blocks"}),
        ("mixture", "of six", {"mixture": tuple(nf.mixers.SCORES)}),
    ]
    for name, variant, settings in variants:
        for say, mask, options in (
            ("", None, {}),
            ("masked", MASK, {"padding": "per_length"}),
            ("padding as zeros", MASK, {"padding": "zero"}),
            ("causal", None, {"causal": True}),
            ("masked and causal", MASK, {"causal": True, "padding": "per_length"}),
        ):
            if options.get("causal") and issubclass(nf.MIXERS[name], WholeSequenceMixer):
                continue  # it sees all of a sequence at once
            chosen = {"d_model": 8, "n_heads": 2, "max_len": 6, "rank": 2} | settings | options

            def make(dtype: str, name: str = name, chosen: Any = chosen) -> nf.Layer:
                return nf.MIXERS[name].build(MixerSettings(**chosen), seed=0, dtype=dtype)

            words = ", ".join(word for word in (variant, say) if word)
            cases.append(_layer(name, make, mask=mask, say=words))
    return cases


MIXERS = _mixers()


def _explanation(name: str, say: str, mask: np.ndarray | None, **settings: Any) -> Case:
    def run(backend: str, dtype: str) -> Results:
        chosen = MixerSettings(**({"d_model": 8, "n_heads": 2, "max_len": 6} | settings))
        mixer = nf.MIXERS[name].build(chosen, seed=0, dtype=dtype).to(backend)
        context = nf.Context(mask=move(mask, backend, dtype))
        return parts_of(twin_on(backend, mixer).explain(move(X, backend, dtype), context))

    return Case(f"what {name} mixed with{', ' if say else ''}{say}", name, run)


def parts_of(matrices: Any) -> Results:
    """Return real numbers: the transforms of Fourier and Hartley are complex."""
    if matrices.dtype.kind == "c":
        return {"real": matrices.real, "imaginary": matrices.imag}
    return {"matrices": matrices}


EXPLANATIONS = [
    *(_explanation(name, "", None) for name in nf.MIXERS),
    *(_explanation(name, "masked", MASK, padding="per_length") for name in nf.MIXERS),
]

# Models -------------------------------------------------------------------------------------------

SMALL = {"d_model": 8, "n_layers": 2, "n_heads": 2, "d_ff": 12, "max_len": 5}


def config(**changes: Any) -> nf.EncoderConfig:
    """Return a small configuration."""
    return nf.EncoderConfig(**(SMALL | changes))


def _encoder(say: str, mask: np.ndarray | None = None, **changes: Any) -> Case:
    def make(dtype: str) -> nf.Layer:
        return nf.Encoder(config(**changes), seed=0, dtype=dtype)

    return _layer("Encoder", make, mask=mask, say=say)


def _text_encoder(say: str, mask: np.ndarray | None = None, **changes: Any) -> Case:
    def run(backend: str, dtype: str) -> Results:
        chosen = config(n_token_types=2, embedding_norm=True, embedding_projection=True, **changes)
        encoder = nf.TextEncoder(chosen, 7, seed=0, dtype=dtype).to(backend)
        gradients = nf.Gradients(encoder)
        mask_there, types = (move(x, backend, dtype) for x in (mask, TYPES))
        context = EngineContext(mask=mask_there, workspace=nf.Workspace(), types=types)
        twin = twin_on(backend, encoder)
        (hidden, pooled), cache = twin.forward(move(IDS, backend, dtype), context)
        rng = np.random.default_rng(1)
        dy = [move(rng.normal(size=y.shape), backend, dtype) for y in (hidden, pooled)]
        twin.backward((dy[0], dy[1]), cache, gradients)
        return {"hidden": hidden, "pooled": pooled, **gradients}

    return Case(f"TextEncoder, {say}", "TextEncoder", run)


ENCODERS = [
    _encoder("post-norm"),
    _encoder("pre-norm, masked", MASK, norm="pre"),
    _encoder("causal", causal=True),
    _encoder("shared layers", share_layers=True),
    _encoder("convolutions", ffn="conv1d", activation="gelu_tanh"),
    _encoder("dropout", dropout=0.3),
    _encoder("a mixer for each layer", mixer=["fourier", "attention"]),
    _encoder("attention in blocks, masked", MASK, memory="blocks"),
    _encoder("every mixer", n_layers=len(nf.MIXERS), mixer=list(nf.MIXERS), norm="pre"),
    _text_encoder("masked", MASK, positions="learned", scale_embeddings=False),
    _text_encoder("fourier", mixer="fourier"),
]


def classifier(dtype: str, *, features: bool = False, **changes: Any) -> nf.SequenceClassifier:
    """Return a small model of three classes; what it does not know is the encoder's."""
    own = {key: changes.pop(key) for key in ("pooling", "output") if key in changes}
    kind = {"n_features": 8} if features else {"vocab_size": 7}
    n_classes = 2 if own.get("output") == "sigmoid" else 3
    return nf.SequenceClassifier(config(**changes), n_classes, **kind, **own, seed=0, dtype=dtype)


def batch(model: nf.SequenceClassifier) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and labels on the host that fit a model of `classifier`."""
    x = IDS if model.vocab_size is not None else X.astype(model.dtype)
    y = LABELS_OF_TOKENS if model.pooling == "none" else LABELS
    if model.output == "sigmoid":
        y = np.where(MASK, 1, 0) if model.pooling == "none" else np.minimum(LABELS, 1)
    return x, y


def _classifier(say: str, mask: np.ndarray | None = None, **changes: Any) -> Case:
    def run(backend: str, dtype: str) -> Results:
        model = classifier(dtype, **changes).to(backend)
        x, y = batch(model)
        smoothing = 0.0 if model.output == "sigmoid" else 0.1
        loss, gradients = model.loss_and_gradients(x, y, mask, label_smoothing=smoothing, seed=3)
        return {
            "logits": model(x, mask),
            "probabilities": model.predict_probabilities(x, mask, batch_size=2),
            "loss": np.asarray(loss),
            **gradients,
        }

    return Case(f"SequenceClassifier, {say}", "SequenceClassifier", run)


CLASSIFIERS = [
    _classifier("tokens"),
    _classifier("tokens, masked", MASK),
    _classifier("features", features=True),
    _classifier("features, masked", MASK, features=True),
    *(_classifier(f"pooling {name}", MASK, pooling=name) for name in POOLINGS),
    _classifier("sigmoid", MASK, output="sigmoid"),
    _classifier("dropout", MASK, dropout=0.3),
    _classifier("learned positions", positions="learned", scale_embeddings=False),
    _classifier("each length by itself", MASK, mixer="fourier", padding="per_length"),
    _classifier("tables that are not trained", MASK, mixer="fixed_random_synthesizer"),
    _classifier("a mixture of six", MASK, mixer="mixture", mixture=tuple(nf.mixers.SCORES)),
]

# Optimizing ---------------------------------------------------------------------------------------


def _given_gradients(model: nf.SequenceClassifier) -> nf.Gradients:
    """Return gradients that depend on no forward pass.

    Adam divides by their size: where a gradient is 0 but for rounding, it makes a whole step of it.
    """
    rng = np.random.default_rng(6)
    gradients = nf.Gradients(model)
    for gradient in gradients.values():
        gradient[...] = move(rng.normal(size=gradient.shape), model.backend, model.dtype)
    return gradients


def _train_digits(backend: str, dtype: str, **changes: Any) -> Results:
    """Train on digits for an epoch, by `fit`, and look at what it says of the test images."""
    dataset = nf.data.digits()
    x, y = (part[:320] for part in dataset.train)
    model_config = nf.EncoderConfig(
        **({"d_model": 16, "n_layers": 1, "n_heads": 2, "d_ff": 32, "max_len": 8} | changes)
    )
    model = nf.SequenceClassifier(
        model_config, 10, n_features=8, pooling="flatten", seed=0, dtype=dtype
    ).to(backend)
    history = nf.fit(
        model,
        (x.astype(dtype), y),
        validation=tuple(part[:64] for part in _cast(dataset.validation, dtype)),
        epochs=1,
        workers=1,
        clip_norm=1.0,
        progress=False,
    )
    logits = model(_cast(dataset.test, dtype)[0][:64])
    return {"losses": np.array([*history.train_loss, *history.validation_loss]), "logits": logits}


def _cast(part: Any, dtype: str) -> Any:
    return part[0].astype(dtype), part[1]


def _adam(say: str, *, flat: bool, **options: Any) -> Case:
    def run(backend: str, dtype: str) -> Results:
        model = classifier(dtype).to(backend)
        gradients = _given_gradients(model)
        parameters = model.parameters() if flat else dict(model.parameters())
        optimizer = nf.Adam(parameters, lr=0.01, **options)
        for _ in range(3):
            optimizer.step(gradients if flat else dict(gradients))
        return dict(parameters)

    return Case(f"Adam, {say}", "Adam", run)


def _clipping(say: str, max_norm: float, *, flat: bool) -> Case:
    def run(backend: str, dtype: str) -> Results:
        gradients = _given_gradients(classifier(dtype).to(backend))
        mapping = gradients if flat else dict(gradients)
        return {"norm": nf.clip_by_global_norm(mapping, max_norm), **mapping}

    return Case(f"clip_by_global_norm, {say}", "clip_by_global_norm", run)


OPTIMIZING = [
    _adam("one flat buffer", flat=True),
    _adam("array by array", flat=False),
    _adam("weight decay and a schedule", flat=True, weight_decay=0.1, schedule=optim.cosine(9, 2)),
    _adam("betas and eps of the paper", flat=True, betas=(0.9, 0.98), eps=1e-9),
    _adam("a schedule, array by array", flat=False, schedule=optim.warmup_inverse_sqrt(2)),
    _clipping("above the norm", 0.1, flat=True),
    _clipping("below the norm", 1e3, flat=True),
    _clipping("array by array", 0.1, flat=False),
]


def train(
    backend: str, dtype: str, steps: int = 5, moves: dict[int, str] | None = None, **changes: Any
) -> Results:
    """Train a classifier with dropout for a few steps, from one seed.

    Parameters
    ----------
    backend : str
        Where it begins.
    dtype : {"float32", "float64"}
    steps : int
    moves : dict of int to str, optional
        Before which step the model moves, and where to.
    **changes
        For `classifier`.

    Returns
    -------
    results : dict
        Losses and logits; in float64 the parameters too. In float32 the gradient of attention's key
        bias, which is 0, is rounding as large as Adam's epsilon, and what becomes of that bias is
        chance. Nothing depends on it.
    """
    model = classifier(dtype, **({"dropout": 0.2} | changes)).to(backend)
    x, y = batch(model)
    generator = np.random.default_rng(4)
    optimizer = nf.Adam(model.parameters(), lr=0.01)
    losses = []
    with Team(model) as team:
        for step in range(steps):
            if moves and step in moves:
                model.to(moves[step])
            loss, gradients = team.step(model.batch(x, y, MASK), generator=generator)
            nf.clip_by_global_norm(gradients, 1.0)
            optimizer.step(gradients)
            losses.append(float(loss))
    logits = model(x, MASK)
    parameters = model.parameters() if dtype == "float64" else {}
    return {"losses": np.array(losses), "logits": logits, **parameters}


TRAINING = [
    Case("training", "Adam", lambda backend, dtype: train(backend, dtype)),
    Case(
        "training on features, pre-norm",
        "Adam",
        lambda backend, dtype: train(backend, dtype, features=True, norm="pre"),
    ),
    Case("training on digits", "fit", _train_digits),
    Case(
        "training on digits with dropout and a Fourier transform",
        "fit",
        lambda backend, dtype: _train_digits(backend, dtype, mixer="fourier", dropout=0.2),
    ),
]

EVERYTHING = [
    *PAIRS,
    *LAYERS,
    *MIXERS,
    *EXPLANATIONS,
    *ENCODERS,
    *CLASSIFIERS,
    *OPTIMIZING,
    *TRAINING,
]
