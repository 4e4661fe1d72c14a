"""What must give the same numbers on every backend: one table, for the fake device and for a GPU.

The cases of mixers follow `npformer.MIXERS`, those of pairs `tests.pairs`. Layers are written out,
and a test says which are missing.
"""

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer import optim
from npformer.engine import EngineContext
from npformer.engine.team import Team
from npformer.engine.twins import twin_on
from npformer.layers import POOLINGS
from npformer.mixers import MixerSettings, WholeSequenceMixer
from npformer.tasks.wide import Wide
from tests.pairs import FUNCTIONS, MASKED, PLAIN, pairs

Results = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """Something to compute: ``run(backend, dtype)`` returns named arrays.

    `covers` is the public name that it is a case of.
    """

    name: str
    covers: str
    run: Callable[[str, str], Results]


def on_device(x: np.ndarray) -> Any:
    """Bring an array to the fake device."""
    return nf.asarray(x, backend="fake")


def same(a: Mapping[str, Any], b: Mapping[str, Any]) -> None:
    """Check that arrays of equal names are equal but for rounding in float64."""
    assert list(a) == list(b)
    for name in a:
        ours, theirs = nf.to_numpy(a[name]), nf.to_numpy(b[name])
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15, err_msg=name)


def parametrize_cases(cases: Sequence[Case]) -> pytest.MarkDecorator:
    """Run a test once for each case, as its argument `case`."""
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])


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
    """Bring an array to the backend, in `dtype` if it holds floats; copy a generator."""
    if isinstance(x, np.ndarray):
        return nf.asarray(x.astype(dtype) if x.dtype.kind == "f" else x, backend)
    return copy.deepcopy(x)


# Arrays to compute with ---------------------------------------------------------------------------
_rng = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return _rng.normal(size=shape)


def whole(top: int, *shape: int) -> np.ndarray:
    return _rng.integers(top, size=shape)


MASK = np.array([[True] * 5, [True, True, False, False, False], [False] * 5])
"""A full sequence, a padded one, and one of padding alone."""

X = normal(3, 5, 8)
MEMORY = np.random.default_rng(1).normal(size=(3, 4, 8))
IDS = whole(7, 3, 5)
TYPES = IDS % 2
LABELS = np.array([2, 0, 1])
LABELS_OF_TOKENS = np.where(MASK, whole(3, 3, 5), F.NO_LABEL)


# Pairs --------------------------------------------------------------------------------------------
def _pair(name: str, *inputs: Any, say: str = "", **options: Any) -> Case:
    def run(backend: str, dtype: str) -> Results:
        arrays = [move(x, backend, dtype) for x in inputs]
        chosen = {key: move(value, backend, dtype) for key, value in options.items()}
        y, cache = FUNCTIONS[name](*arrays, **chosen)
        dy = np.random.default_rng(1).normal(size=y.shape)
        dy = move(dy, backend, dtype) if y.shape else 0.7
        result = FUNCTIONS[f"{name}_backward"](dy, cache)
        gradients = result if isinstance(result, tuple) else (result,)
        return {"y": y} | {f"gradient {i}": g for i, g in enumerate(gradients)}

    return Case(f"{name}{', ' if say else ''}{say}", name, run)


_heads = [normal(3, 2, 5, 4) for _ in range(3)]
_over_heads = MASK[:, None, None, :]
_map = [normal(8, 8), normal(8), normal(8, 6), normal(6)]
_W1, _b1, _W2, _b2 = normal(8, 8), normal(8), normal(8, 2), normal(2)
_V1, _c1, _V2, _c2 = normal(8, 8), normal(8), normal(8, 4), normal(4)
_value = normal(3, 5, 4)
_longer_key = normal(3, 2, 7, 4)
_longer_value = normal(3, 2, 7, 3)

PAIRS = [
    *(
        _pair(name, *inputs, say=say, **options)
        for say, example in (("", PLAIN), ("masked and causal", MASKED))
        for name, (inputs, options) in pairs(example, "float64").items()
    ),
    _pair("linear", X, normal(8, 4), say="no bias"),
    _pair("conv1d", X, normal(1, 8, 4), normal(4), say="kernel 1"),
    _pair("conv1d", X, normal(4, 8, 4), padding="valid", say="valid, no bias"),
    _pair("dropout", X, 0.4, say="evaluation"),
    _pair("average", normal(2, 5, 5), _heads[2], say="scores shared by the batch"),
    _pair("average", normal(5, 5), _heads[2], mask=_over_heads, causal=True, say="one table"),
    _pair("scaled_dot_product_attention", *_heads, mask=_over_heads, say="masked"),
    _pair("scaled_dot_product_attention", *_heads, mask=_over_heads, causal=True, say="both"),
    _pair("blockwise_attention", *_heads, say="one block"),
    _pair(
        "blockwise_attention",
        _heads[0],
        _longer_key,
        _longer_value,
        block=2,
        causal=True,
        say="other length of keys",
    ),
    _pair("blockwise_attention", *_heads, block=2, mask=normal(5, 5) > 0.0, say="mask of pairs"),
    _pair("dense_scores", X, *_map, columns=5, say="one map"),
    _pair("dense_synthesizer", X, _value, *_map, say="one map"),
    _pair(
        "factorized_dense_synthesizer",
        X,
        _value,
        _W1,
        _b1,
        _W2,
        _b2,
        _V1,
        _c1,
        _V2,
        _c2,
        say="one map",
    ),
    _pair("random_synthesizer", _value, normal(6, 6), say="one table"),
    _pair("factorized_random_synthesizer", _value, normal(6, 3), normal(6, 3), say="one table"),
    _pair("mixture_scores", normal(3), normal(3, 2, 5, 5), normal(2, 5, 5), normal(5, 5), say="3"),
    _pair("softmax_cross_entropy", normal(3, 4), LABELS.astype("uint8"), say="unsigned labels"),
]


# Layers and mixers --------------------------------------------------------------------------------
def _case_of_layer(
    covers: str,
    make: Callable[[str], nf.Layer],
    x: np.ndarray = X,
    mask: np.ndarray | None = None,
    say: str = "",
    types: np.ndarray | None = None,
) -> Case:
    def run(backend: str, dtype: str) -> Results:
        layer = make(dtype).to(backend)
        gradients = nf.Gradients(layer)
        generator, workspace = np.random.default_rng(2), nf.Workspace()
        context = EngineContext(
            True,
            generator,
            workspace=workspace,
            mask=move(mask, backend, dtype),
            types=move(types, backend, dtype),
        )
        twin = twin_on(backend, layer)
        inputs = x if isinstance(x, tuple) else (x,)
        y, cache = twin.forward(*(move(array, backend, dtype) for array in inputs), context)
        dy = np.random.default_rng(1).normal(size=y.shape)
        dx = twin.backward(move(dy, backend, dtype), cache, gradients)
        results = {"y": y}
        for i, gradient in enumerate(dx if isinstance(dx, tuple) else (dx,)):
            if gradient is not None:
                results[f"dx{i or ''}"] = gradient
        return results | dict(gradients)

    return Case(f"{covers}{', ' if say else ''}{say}", covers, run)


def _layer(
    covers: str,
    *sizes: int,
    x: np.ndarray = X,
    mask: np.ndarray | None = None,
    say: str = "",
    types: np.ndarray | None = None,
    **options: Any,
) -> Case:
    """Return a case of a layer of these sizes, with a seed and a dtype if its class takes them.

    `options` are those of the class; all others are those of `_case_of_layer`.
    """
    kind = Wide if covers == "Wide" else getattr(L, covers)

    def make(dtype: str) -> nf.Layer:
        common_options = {"seed": 0, "dtype": dtype}
        parameters = inspect.signature(kind).parameters
        accepted_options = {
            name: value for name, value in common_options.items() if name in parameters
        }
        return kind(*sizes, **options, **accepted_options)

    return _case_of_layer(covers, make, x=x, mask=mask, say=say, types=types)


L = nf.layers

LAYERS = [
    _layer("Linear", 8, 4),
    _layer("Linear", 8, 4, bias=False, say="no bias"),
    _layer("Conv1d", 8, 4),
    _layer("Conv1d", 8, 4, 3, say="kernel 3"),
    _layer("LayerNorm", 8),
    _layer("RMSNorm", 8),
    _layer("GatedFeedForward", 8, 12),
    _layer("Dropout", rate=0.5),
    _layer("TokenDropout", rate=0.5),
    _layer("Embedding", 7, 4, x=IDS),
    _layer("Embedding", 7, 4, x=IDS, scale=True, say="scaled"),
    _layer("Positions", 6, 8),
    _layer("Positions", 6, 8, kind="learned", say="learned"),
    _layer("TokenTypes", 2, 8),
    _layer("TokenTypes", 2, 8, scale=True, types=TYPES, say="of several types"),
    _layer("Wide", 7, 2, 3, x=IDS),
    _layer("PositionwiseFeedForward", 8, 12),
    _layer("PositionwiseFeedForward", 8, 12, activation="gelu", ffn="conv1d", say="conv1d"),
    _layer("CrossAttention", 8, 2, x=(X, MEMORY)),
    _layer("CrossAttention", 8, 2, x=(X, MEMORY), mask=MASK, say="masked"),
    _layer("BlockwiseCrossAttention", 8, 2, x=(X, MEMORY)),
    _case_of_layer(
        "TiedOutput", lambda dtype: L.TiedOutput(L.Embedding(7, 8, seed=0, dtype=dtype), bias=True)
    ),
    *(_layer(name) for name in ("ReLU", "GELU", "SiLU", "Tanh")),
    *(_layer(name) for name in ("FirstToken", "EveryToken", "ChosenTokens")),
    *(_layer(name) for name in ("MeanPooling", "MaxPooling")),
    *(_layer(name, mask=MASK, say="masked") for name in ("MeanPooling", "MaxPooling")),
    _layer("Flatten", mask=MASK),
    _layer("Pooler", 8),
    _case_of_layer(
        "Sequential",
        lambda dtype: L.Sequential(
            L.LayerNorm(8, dtype=dtype), L.Linear(8, 4, seed=0, dtype=dtype)
        ),
    ),
    _case_of_layer(
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
        ("attention", "turned", {"rope_theta": 50.0}),
        (
            "attention",
            "of today",
            {"n_kv_heads": 1, "d_head": 6, "window": 3, "qk_norm": True, "bias": False},
        ),
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
            cases.append(_case_of_layer(name, make, mask=mask, say=words))
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


EXPLANATIONS = [_explanation(name, "", None) for name in nf.MIXERS]
EXPLANATIONS += [_explanation(name, "masked", MASK, padding="per_length") for name in nf.MIXERS]

# Models -------------------------------------------------------------------------------------------
SMALL = {"d_model": 8, "n_layers": 2, "n_heads": 2, "d_ff": 12, "max_len": 5}


def config(**changes: Any) -> nf.EncoderConfig:
    """Return a small configuration."""
    return nf.EncoderConfig(**(SMALL | changes))


def _encoder(say: str, mask: np.ndarray | None = None, **changes: Any) -> Case:
    def make(dtype: str) -> nf.Layer:
        return nf.Encoder(config(**changes), seed=0, dtype=dtype)

    return _case_of_layer("Encoder", make, mask=mask, say=say)


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
    model_options = {key: changes.pop(key) for key in ("pooling", "output") if key in changes}
    return nf.SequenceClassifier(
        config(**changes),
        n_classes=2 if model_options.get("output") == "sigmoid" else 3,
        vocab_size=None if features else 7,
        n_features=8 if features else None,
        **model_options,
        seed=0,
        dtype=dtype,
    )


def batch(model: nf.SequenceClassifier) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and labels on the host that fit a model of `classifier`."""
    x = IDS if model.vocab_size is not None else X.astype(model.dtype)
    y = LABELS_OF_TOKENS if model.pooling == "none" else LABELS
    if model.output == "sigmoid":
        y = np.where(MASK, 1, 0) if model.pooling == "none" else np.minimum(LABELS, 1)
    return x, y


def fit(model: nf.SequenceClassifier, data: Any, **options: Any) -> nf.History:
    """Train for two epochs of small batches, unless the options say otherwise."""
    default_options = {"epochs": 2, "batch_size": 2, "progress": False}
    return nf.fit(model, data, **(default_options | options))


def one_step(team: Team, optimizer: nf.Adam, mask: Any = MASK) -> Any:
    """Make a step of training, and return its loss."""
    checked_batch = team.model.batch(*batch(team.model), mask)
    loss, gradients = team.step(checked_batch, generator=np.random.default_rng(0))
    nf.clip_by_global_norm(gradients, 1.0)
    optimizer.step(gradients)
    return loss


def flat(model: nf.SequenceClassifier) -> np.ndarray:
    """Return all parameters on the host."""
    return nf.to_numpy(model.parameters().flat)


def _classifier(say: str, mask: np.ndarray | None = None, **changes: Any) -> Case:
    def run(backend: str, dtype: str) -> Results:
        model = classifier(dtype, **changes).to(backend)
        x, y = batch(model)
        smoothing = 0.0 if model.output == "sigmoid" else 0.1
        loss, gradients = model.loss_and_gradients(x, y, mask, label_smoothing=smoothing, seed=3)
        probabilities = model.predict_probabilities(x, mask, batch_size=2)
        return {
            "logits": model(x, mask),
            "probabilities": probabilities,
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
def _random_gradients(model: nf.SequenceClassifier) -> nf.Gradients:
    """Return random gradients: where one is 0 but for rounding, Adam would take a whole step."""
    rng = np.random.default_rng(6)
    gradients = nf.Gradients(model)
    for gradient in gradients.values():
        gradient[...] = move(rng.normal(size=gradient.shape), model.backend, model.dtype)
    return gradients


def _train_digits(backend: str, dtype: str, **changes: Any) -> Results:
    """Train on digits for an epoch, by `fit`, and return losses and logits of test images."""

    def first(n: int, arrays: Any) -> Any:
        return arrays[0][:n].astype(dtype), arrays[1][:n]

    dataset = nf.data.digits()
    sizes = {"d_model": 16, "n_layers": 1, "n_heads": 2, "d_ff": 32, "max_len": 8}
    chosen = config(**(sizes | changes))
    model = nf.SequenceClassifier(chosen, 10, n_features=8, pooling="flatten", seed=0, dtype=dtype)
    model.to(backend)
    validation = first(64, dataset.validation)
    history = fit(
        model,
        first(320, dataset.train),
        validation=validation,
        epochs=1,
        batch_size=32,
        workers=1,
        clip_norm=1.0,
    )
    logits = model(first(64, dataset.test)[0])
    return {"losses": np.array([*history.train_loss, *history.validation_loss]), "logits": logits}


def _adam(say: str, *, flat: bool, **options: Any) -> Case:
    def run(backend: str, dtype: str) -> Results:
        model = classifier(dtype).to(backend)
        gradients = _random_gradients(model)
        parameters = model.parameters() if flat else dict(model.parameters())
        optimizer = nf.Adam(parameters, lr=0.01, **options)
        for _ in range(3):
            optimizer.step(gradients if flat else dict(gradients))
        return dict(parameters)

    return Case(f"Adam, {say}", "Adam", run)


def _clipping(say: str, max_norm: float, *, flat: bool) -> Case:
    def run(backend: str, dtype: str) -> Results:
        gradients = _random_gradients(classifier(dtype).to(backend))
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
    """Train a classifier with dropout for a few steps; `moves` says before which it goes where.

    Return losses and logits, and in float64 the parameters. In float32 the gradient of attention's
    key bias, which is 0, is rounding as large as Adam's epsilon: that bias is left to chance, and
    nothing depends on it.
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
    Case("training", "Adam", train),
    Case("training on features, pre-norm", "Adam", partial(train, features=True, norm="pre")),
    Case("training on digits", "fit", _train_digits),
    Case(
        "training on digits with dropout and a Fourier transform",
        "fit",
        partial(_train_digits, mixer="fourier", dropout=0.2),
    ),
]

EVERYTHING = PAIRS + LAYERS + MIXERS + EXPLANATIONS + ENCODERS + CLASSIFIERS + OPTIMIZING + TRAINING
