import copy
from itertools import product

import numpy as np
import pytest

from npformer import functional as F
from npformer.interop import ARCHITECTURES
from npformer.layers import ACTIVATIONS
from tests.pairs import MASKED, NAMES, PLAIN, Example, gradients_of, pairs

from .formulas import REFERENCES, softmax
from .helpers import assert_close, leaf, normals, torch

BATCH, LENGTH, D = 3, 5, 4
PADDING = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 0, 1, 0]], dtype=bool)
OVER_HEADS = PADDING[:, None, None, :]
EITHER = False, True


def assert_agrees(forward, backward, reference, inputs, options):
    leaves = [leaf(x) if x.dtype.kind == "f" else x for x in inputs]
    expected = reference(*leaves, **copy.deepcopy(options))
    y, cache = forward(*inputs, **options)
    assert_close(y, expected)
    (dy,) = normals(y.shape, seed=99)
    differentiated = [x for x in leaves if isinstance(x, torch.Tensor)]
    theirs = torch.autograd.grad(expected, differentiated, torch.tensor(dy))
    for i, (ours, gradient) in enumerate(zip(backward(dy, cache), theirs, strict=True)):
        assert_close(ours, gradient, f"gradient {i}")


def assert_pair_agrees(name, inputs, options):
    def backward(dy, cache):
        return gradients_of(name, dy, cache)

    assert_agrees(getattr(F, name), backward, REFERENCES[name], inputs, options)


EXAMPLES = {"plain": PLAIN, "masked": MASKED}
EXAMPLES["padded"] = Example(batch=3, length=5, others=2, padded=True, seed=4)
EXAMPLES["causal, more queries than keys"] = Example(length=6, keys=3, causal=True)
EXAMPLES["one of each"] = Example(batch=1, length=1, keys=1, n_heads=1, others=1)


def test_every_pair_has_a_formula():
    assert sorted(REFERENCES) == NAMES


# PyTorch notes that an even kernel with "same" costs it a copy of the input. That is what we ask.
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
@pytest.mark.parametrize("name", NAMES)
def test_a_pair_agrees(name, example):
    assert_pair_agrees(name, *pairs(example, "float64")[name])


def case(name, *inputs, scale=1.0, **options):
    """Return a row: inputs are arrays, or shapes of normals times `scale`."""
    arrays = [x if isinstance(x, np.ndarray) else scale * normals(x)[0] for x in inputs]
    shapes = " ".join("x".join(map(str, a.shape)) for a in arrays)
    given = {key: value for key, value in options.items() if value is not None}
    said = " ".join(f"{k}={v.shape if isinstance(v, np.ndarray) else v}" for k, v in given.items())
    return pytest.param(name, arrays, options, id=f"{name}-{shapes}-{said}")


def qkv(n_queries, n_keys, d_value=D, batch=2):
    return (batch, 2, n_queries, D), (batch, 2, n_keys, D), (batch, 2, n_keys, d_value)


def maps(*columns):
    """Return the shapes of the maps of a dense synthesizer without heads, one after the other."""
    return [s for n in columns for s in ((D, 6), (6,), (6, n), (n,))]


def head_maps(*columns):
    return [s for n in columns for s in ((D, 6), (6,), (2, 3, n), (2, n))]


X, VALUE, LONGER = (BATCH, LENGTH, D), (BATCH, LENGTH, 3), LENGTH + 3
WITHOUT_HEADS = [
    ("dense_synthesizer", (X, VALUE, *maps(LENGTH))),
    ("dense_synthesizer", (X, VALUE, *maps(LONGER))),
    ("factorized_dense_synthesizer", (X, VALUE, *maps(3, 2))),
    ("random_synthesizer", (VALUE, (LENGTH, LENGTH))),
    ("random_synthesizer", (VALUE, (LONGER, LONGER))),
    ("factorized_random_synthesizer", (VALUE, (LENGTH, 3), (LENGTH, 3))),
    ("factorized_random_synthesizer", (VALUE, (LONGER, 3), (LONGER, 3))),
]
SOME_LABELS = np.array([[0, -1, 2, -1], [-1, 6, 2, 5], [-1, -1, -1, -1]])
TARGETS = np.random.default_rng(1).uniform(size=(6, 2))
TARGETS[0] = 0.0, 1.0
LEADING = (), (6,), (2, 3), (2, 1, 3)
TRANSFORMED = (5, 4), (2, 6, 8), (3, 7, 5), (2, 2, 1, 9)

CASES = [
    *(case("linear", (*leading, 4), (4, 7), (7,)) for leading in LEADING),
    case("linear", (2, 3, 4), (4, 7)),
    *(
        case("conv1d", (2, 6, 4), (kernel, 4, 3), (3,), padding=padding)
        for kernel, padding in product((1, 2, 3, 5), ("same", "valid"))
    ),
    *(case("conv1d", (2, 6, 4), (kernel, 4, 3)) for kernel in (1, 3)),
    case("conv1d", (2, 3, 4), (5, 4, 3), (3,)),
    *(case(name, (3, 50), scale=4.0) for name in ("relu", "silu", "tanh", "sigmoid")),
    case("relu", np.array([-1.0, -0.0, 0.0, 1.0])),
    *(case("gelu", (3, 50), scale=4.0, approximate=form) for form in ("none", "tanh")),
    *(
        case("layer_norm", (*leading, 8), (8,), (8,), eps=eps)
        for leading, eps in product(LEADING[:3], (1e-5, 1e-12))
    ),
    *(case("rms_norm", (*leading, 8), (8,), eps=eps) for leading in LEADING for eps in (1e-5, 0.5)),
    *(
        case("rotary", (2, 3, 5, 8), np.arange(5), layout=layout, theta=theta)
        for layout, theta in product(("halves", "neighbours"), (10000.0, 37.0))
    ),
    *(
        case("gated", (*leading, 4), (4, 6), (4, 6), (6, 4), activation=activation)
        for leading, activation in product(LEADING, ("silu", "gelu", "relu", "tanh", "sigmoid"))
    ),
    *(case("softmax", (2, 3, 4), scale=3.0, axis=axis) for axis in (0, 1, 2, -1)),
    *(case("softmax", PADDING.shape, axis=axis, mask=PADDING) for axis in (0, -1)),
    *(case("attention_scores", (BATCH, 2, LENGTH, D), (BATCH, 2, n, D)) for n in (LENGTH, 3)),
    *(
        case("scaled_dot_product_attention", *[(*leading, LENGTH, D)] * 3, causal=causal)
        for leading, causal in product(((), (3,), (3, 2), (2, 1, 3)), EITHER)
    ),
    *(
        case("scaled_dot_product_attention", *qkv(*lengths, D + 3), causal=causal)
        for lengths, causal in product(((3, 6), (6, 3)), EITHER)
    ),
    *(
        # Causal, the third sequence's first query has nothing to see.
        case(
            "scaled_dot_product_attention", *qkv(n, LENGTH, batch=3), mask=OVER_HEADS, causal=causal
        )
        for n, causal in ((LENGTH, False), (2, False), (LENGTH, True))
    ),
    *(
        case("blockwise_attention", *qkv(*lengths, D + 3), causal=causal, block=block)
        for lengths, causal, block in product(((5, 5), (3, 6), (6, 3)), EITHER, (1, 2, 100))
    ),
    *(
        case(
            f"{kind}_attention", *qkv(5, 5, batch=3), mask=mask, causal=causal, window=3, **options
        )
        for kind, options in (("scaled_dot_product", {}), ("blockwise", {"block": 2}))
        for mask, causal in product((None, OVER_HEADS), EITHER)
    ),
    *(
        case("blockwise_attention", *qkv(5, 5, batch=3), mask=OVER_HEADS, causal=True, block=block)
        for block in (2, 100)
    ),
    *(
        case("average", (*leading, LENGTH, LENGTH), (BATCH, 2, LENGTH, D), mask=mask, causal=causal)
        for leading, mask, causal in product(
            ((), (2,), (1, 2), (BATCH, 1), (BATCH, 2)), (None, OVER_HEADS), EITHER
        )
    ),
    *(case("dense_scores", X, *maps(LENGTH), columns=n) for n in (2, LENGTH)),
    case("dense_scores", X, *head_maps(LENGTH), columns=LENGTH),
    *(
        case("factorized_dense_scores", X, *shapes(*ab), columns=LENGTH)
        for ab, shapes in product(((5, 1), (1, 5), (3, 2), (2, 3), (3, 4)), (maps, head_maps))
    ),
    case("dense_synthesizer", (LENGTH, D), (LENGTH, 3), *maps(LENGTH)),
    *(
        case(name, *shapes, mask=mask, causal=causal)
        for (name, shapes), mask, causal in product(
            WITHOUT_HEADS, (None, PADDING[:, None, :]), EITHER
        )
    ),
    case("random_scores", (2, LONGER, LONGER), length=LENGTH),
    case("factorized_random_scores", (2, LONGER, 3), (2, LONGER, 3), length=LENGTH),
    case("mixture_scores", (3,), (BATCH, 2, LENGTH, LENGTH), (2, LENGTH, LENGTH), (LENGTH, LENGTH)),
    *(
        case(name, shape)
        for name, shape in product(("fourier_mixing", "hartley_mixing"), TRANSFORMED)
    ),
    *(case("linear_mixing", X, (max_len, max_len), (D, D)) for max_len in (LENGTH, LONGER)),
    case("dropout", (4, 50), rate=0.3, generator=np.random.default_rng(7)),
    case("token_dropout", X, rate=0.4, generator=np.random.default_rng(7)),
    case("embedding", np.array([[0, 3, 3, 5], [3, 0, 2, 3]]), (6, D)),  # 3 four times, 1 never
    case("mean_pooling", X),
    case("mean_pooling", X, mask=PADDING),
    case("max_pooling", X),
    case("max_pooling", X, mask=PADDING),
    *(
        case("softmax_cross_entropy", shape, labels=labels, label_smoothing=smoothing)
        for (shape, labels), smoothing in product(
            (((5, 7), np.array([0, 6, 2, 2, 5])), ((3, 4, 7), SOME_LABELS)), (0.0, 0.1, 0.3)
        )
    ),
    case("softmax_cross_entropy", (3, 4), scale=1000.0, labels=np.array([0, 1, 2])),
    *(
        case("binary_cross_entropy_with_logits", (6, 2), scale=scale, targets=TARGETS)
        for scale in (1.0, 1000.0)
    ),
    case("mean_squared_error", (6, 2), target=TARGETS),
]


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize(("name", "inputs", "options"), CASES)
def test_a_pair_agrees_in_this_case(name, inputs, options):
    assert_pair_agrees(name, inputs, options)


def test_averaging_weights_agree_with_the_formula():
    mask = PADDING[:, None, :]
    assert_agrees(
        F.averaging_weights,
        lambda dy, cache: (F.softmax_backward(dy, cache),),
        lambda scores, mask: softmax(scores, mask=mask),
        normals((BATCH, LENGTH, LENGTH)),
        {"mask": mask},
    )


def test_a_name_that_is_read_means_the_same_function():
    torch = pytest.importorskip("torch")
    theirs_by_name = pytest.importorskip("transformers.activations").ACT2FN
    names = {item for each in ARCHITECTURES.values() for item in each.activations.items()}
    x = np.linspace(-6.0, 6.0, 201)
    assert len(names) >= 7
    for theirs, ours in sorted(names):
        expected = theirs_by_name[theirs](torch.tensor(x)).numpy()
        found = ACTIVATIONS.make(ours)(x)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11, err_msg=theirs)
