"""Every option of every layer, mixer and loss beside PyTorch, a row each: y and all gradients."""

import inspect

import numpy as np
import pytest

import npformer as nf
from npformer import layers, losses, mixers

from . import formulas
from .helpers import assert_close, leaf, normals, randomise, torch
from .layer_formulas import FORMULAS, Given
from .options import options_of, untried_options, with_named_options

D, LENGTH = 8, 5
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]], dtype=bool)
MEMORY_MASK = np.array([[1, 1, 1, 1], [0, 1, 1, 0], [1, 0, 0, 0]], dtype=bool)
IDS = np.array([[0, 3, 3, 6, 1], [6, 2, 0, 0, 3], [1, 1, 1, 5, 2]])
X, MEMORY, SMALL_MEMORY = normals((3, LENGTH, D), (3, 4, D), (3, 4, 6))
SHORT = {"max_len": 7}


def rows(kind, *args, options):
    """Return a row with the defaults, and one for each of the options."""
    return [
        pytest.param(kind, args, changes, id=f"{kind.__name__}-{changes}")
        for changes in ({}, *options)
    ]


SYNTHESIZERS = (
    mixers.DenseSynthesizer,
    mixers.FactorizedDenseSynthesizer,
    mixers.RandomSynthesizer,
    mixers.FixedRandomSynthesizer,
    mixers.FactorizedRandomSynthesizer,
)
NETWORK = {"activation": "gelu"}, {"bias": False}, {"dropout": 0.4}
PADDINGS = {"padding": "per_length"}, {"padding": "zero"}
OF_A_SYNTHESIZER = SHORT, {"rank": 3}, {"n_heads": 2}, {"causal": True}, {"attention_dropout": 0.4}
OF_PLAIN_ATTENTION = {"n_heads": 2}, {"causal": True}, {"bias": False}
OF_ATTENTION = (
    *OF_PLAIN_ATTENTION,
    {"memory": "stored"},
    {"rope_theta": 7.0},
    {"n_heads": 4, "n_kv_heads": 2},
    {"n_heads": 2, "d_head": 6},
    {"window": 3},
    {"window": 2, "causal": True},
    {"qk_norm": True, "n_heads": 2},
    {"qk_norm": True, "norm_eps": 0.5},
)
CASES = [
    *rows(layers.GELU, options=[{"approximate": "tanh"}]),
    *rows(layers.Linear, D, 3, options=[{"bias": False}]),
    *rows(
        layers.Conv1d,
        D,
        3,
        options=[{"kernel": 4}, {"kernel": 3, "padding": "valid"}, {"kernel": 4, "bias": False}],
    ),
    *rows(layers.LayerNorm, D, options=[{"eps": 0.5}, {"bias": False}]),
    *rows(layers.RMSNorm, D, options=[{"eps": 0.5}]),
    *rows(layers.Embedding, 7, D, options=[{"scale": True}]),
    *rows(layers.TokenTypes, 7, D, options=[{"scale": True}]),
    *rows(layers.Positions, 7, D, options=[{"kind": "learned"}, {"kind": "sinusoidal_halves"}]),
    *rows(layers.PositionwiseFeedForward, D, 6, options=[{"ffn": "conv1d"}, *NETWORK]),
    *rows(layers.GatedFeedForward, D, 6, options=NETWORK),
    *rows(
        layers.Pooler,
        D,
        options=[
            {"activation": "relu"},
            {"of": "mean"},
            {"of": "none"},
            {"bias": False},
            {"norm": True},
            {"norm": True, "bias": False},
        ],
    ),
    *rows(
        layers.TiedOutput, layers.Embedding(7, D, seed=0, dtype="float64"), options=[{"bias": True}]
    ),
    *rows(
        layers.CrossAttention,
        D,
        options=[{"n_heads": 2}, {"d_memory": 6}, {"attention_dropout": 0.4}],
    ),
    *rows(layers.BlockwiseCrossAttention, D, options=[{"n_heads": 2}, {"d_memory": 6}]),
    *rows(mixers.Attention, D, options=OF_PLAIN_ATTENTION),
    *rows(mixers.GeneralAttention, D, options=[*OF_ATTENTION, {"attention_dropout": 0.4}]),
    *rows(mixers.BlockwiseAttention, D, options=[*OF_ATTENTION[:3], *OF_ATTENTION[4:]]),
    *(row for kind in SYNTHESIZERS for row in rows(kind, D, options=OF_A_SYNTHESIZER)),
    *(row for kind in (mixers.Fourier, mixers.Hartley) for row in rows(kind, options=PADDINGS)),
    *(
        row
        for kind in (mixers.LinearMixing, mixers.RandomMixing)
        for row in rows(kind, D, options=[SHORT, *PADDINGS])
    ),
    *rows(mixers.StateSpace, D, options=[{"n_states": 3}]),
    *rows(mixers.GatedConvolution, D, options=[SHORT]),
]

FIRST_VALUES = {"seed", "dtype", "init", "initializer", "std"}
"""Options that say what parameters are at first. Here they get other values."""

REFUSED = {"BlockwiseCrossAttention": {"attention_dropout"}}
REFUSED["BlockwiseAttention"] = {"attention_dropout", "memory"}
"""Options that a class takes for the sake of its siblings, with one value."""

BASES = {mixers.Synthesizer, mixers.WholeSequenceMixer}
"""What the other classes derive from: it computes nothing by itself."""


def kinds_with_options():
    """Return the public layers and mixers with options other than the first values."""
    public = [getattr(module, name) for module in (layers, mixers) for name in module.__all__]
    classes = [entry for entry in public if inspect.isclass(entry) and entry not in BASES]
    kinds = {entry for entry in classes if issubclass(entry, nf.Layer)}
    with_options = [
        kind for kind in kinds if set(options_of(with_named_options(kind))) - FIRST_VALUES
    ]
    return sorted(with_options, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", kinds_with_options())
def test_every_option_has_a_row(kind):
    calls = [row.values[1:] for row in CASES if row.values[0] is kind]
    assert calls
    apart = FIRST_VALUES | REFUSED.get(kind.__name__, set())
    untried = untried_options(with_named_options(kind), calls)
    assert [words for words in untried if words.partition(":")[0] not in apart] == []


def inputs_of(kind, options):
    if kind is layers.Embedding:
        return (IDS,)
    if issubclass(kind, layers.CrossAttention):
        return X, SMALL_MEMORY if "d_memory" in options else MEMORY
    return (X,)


def all_options(kind, args, options):
    bound = inspect.signature(with_named_options(kind)).bind(*args, **options)
    bound.apply_defaults()
    return dict(bound.arguments)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize(("kind", "args", "options"), CASES)
def test_a_layer_agrees(kind, args, options):
    settings = dict(options)
    if "dtype" in options_of(with_named_options(kind)):
        settings["dtype"] = "float64"
    layer = kind(*args, **settings)
    case = Given(o=all_options(kind, args, options), mask=MASK, memory_mask=MEMORY_MASK, types=IDS)
    is_whole = issubclass(kind, mixers.WholeSequenceMixer)
    mask = None if is_whole and case.o["padding"] == "refuse" else MASK
    if not is_whole:
        randomise(layer)
    case.p = {name: leaf(p.value) for name, p in layer.named_parameters().items()}
    case.generator = np.random.default_rng(7)
    context = nf.Context(
        training=True,
        generator=np.random.default_rng(7),
        mask=mask,
        memory_mask=MEMORY_MASK,
        types=IDS,
    )
    inputs = inputs_of(kind, options)
    leaves = [leaf(x) if x.dtype.kind == "f" else x for x in inputs]

    gradients = nf.Gradients(layer)
    y, cache = layer.forward(*inputs, context)
    y_torch = FORMULAS[kind](case, *leaves)
    assert_close(y, y_torch)
    (dy,) = normals(y.shape, seed=3)
    dinputs = layer.backward(dy, cache, gradients)
    y_torch.backward(torch.tensor(dy))
    if inputs[0].dtype.kind == "f":
        ours = dinputs if isinstance(dinputs, tuple) else (dinputs,)
        for dx, x in zip(ours, leaves, strict=True):
            assert_close(dx, x.grad, "gradient of an input")
    largest = max((float(case.p[name].grad.abs().max()) for name in gradients), default=0.0)
    for name, gradient in gradients.items():
        theirs = case.p[name].grad.numpy()
        # that of a bias of keys is 0 but for rounding
        allowed = 1e-10 * max(np.abs(theirs).max(), 1e-3 * largest)
        assert np.abs(gradient - theirs).max() < allowed, name


LABELS = np.array([1, 0, 1, 1, 0])
WEIGHTS = np.array([0.5, 2.0, 0.0, 1.0, 3.0])
OF_CLASSES = {"label_smoothing": 0.1}, {"class_weight": (0.5, 3.0)}
LOSSES = [
    *rows(losses.SoftmaxCrossEntropy, options=OF_CLASSES),
    *rows(losses.BinaryCrossEntropy, options=OF_CLASSES),
    *rows(losses.MeanSquaredError, options=()),
]


def softmax_loss(outputs, y, weights, label_smoothing=0.0, class_weight=None):
    by_class = None if class_weight is None else np.array(class_weight)
    return formulas.softmax_cross_entropy(outputs, y, label_smoothing, weights, by_class)


def binary_loss(outputs, y, weights, label_smoothing=0.0, class_weight=None):
    by_class = None if class_weight is None else np.array(class_weight)
    targets = (1.0 - label_smoothing) * y[:, None] + 0.5 * label_smoothing
    weights = None if weights is None else weights[:, None]
    return formulas.binary_cross_entropy_with_logits(outputs, targets, weights, by_class)


OF_A_LOSS = {
    losses.SoftmaxCrossEntropy: ((5, 2), LABELS, softmax_loss),
    losses.BinaryCrossEntropy: ((5, 1), LABELS, binary_loss),
    losses.MeanSquaredError: ((5, 2), normals((5, 2), seed=4)[0], formulas.mean_squared_error),
}
"""The shape of the outputs, the targets, and the formula."""


@pytest.mark.parametrize("kind", losses.LOSSES.values())
def test_every_option_of_a_loss_has_a_row(kind):
    calls = [row.values[1:] for row in LOSSES if row.values[0] is kind]
    assert calls
    assert untried_options(kind, calls) == []


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize(("kind", "args", "options"), LOSSES)
def test_a_loss_agrees(kind, args, options, weights):
    shape, y, formula = OF_A_LOSS[kind]
    (outputs,) = normals(shape)
    loss = kind(*args, **options)
    value, cache = loss.forward(outputs, y, weights)
    outputs_torch = leaf(outputs)
    expected = formula(outputs_torch, y, weights, **options)
    expected.backward()
    assert_close(value, expected, "loss")
    assert_close(loss.backward(1.0, cache), outputs_torch.grad, "gradient")
