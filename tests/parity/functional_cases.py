"""Calls of `npformer.functional` beside those of tests.pairs: every option, and odd shapes."""

from itertools import product

import numpy as np
import pytest

from .helpers import normals

BATCH, LENGTH, D = 3, 5, 4
PADDING = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 0, 1, 0]], dtype=bool)
OVER_HEADS = PADDING[:, None, None, :]
EITHER = False, True


def case(name, *inputs, scale=1.0, **options):
    """Return a row: inputs are arrays or None, or shapes of normals times `scale`."""
    arrays = [scale * normals(x)[0] if isinstance(x, tuple) else x for x in inputs]
    shapes = " ".join("None" if a is None else "x".join(map(str, a.shape)) for a in arrays)
    set_options = {key: value for key, value in options.items() if value is not None}
    option_text = " ".join(
        f"{k}={v.shape if isinstance(v, np.ndarray) else v}" for k, v in set_options.items()
    )
    return pytest.param(name, arrays, options, id=f"{name}-{shapes}-{option_text}")


def qkv(n_queries, n_keys, d_value=D, batch=2):
    return (batch, 2, n_queries, D), (batch, 2, n_keys, D), (batch, 2, n_keys, d_value)


def maps(*columns):
    """Return the shapes of the maps of a dense synthesizer without heads, one after the other."""
    return [s for n in columns for s in ((D, 6), (6,), (6, n), (n,))]


def head_maps(*columns):
    return [s for n in columns for s in ((D, 6), (6,), (2, 3, n), (2, n))]


X = (BATCH, LENGTH, D)
VALUE = (BATCH, LENGTH, 3)
LONGER = LENGTH + 3
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
WEIGHTS = np.array([0.5, 0.0, 2.0, 1.0, 3.0, 0.25])
CLASS_WEIGHTS = np.array([1.0, 0.5, 3.0, 0.0, 2.0, 1.0, 0.25])
OF_EACH_ROW = np.array([0, 7, 2])[None, :, None] + np.array([0, 40])[:, None, None] + np.arange(5)
OF_SIX_KEYS = np.pad(OVER_HEADS, [(0, 0), (0, 0), (0, 0), (1, 0)], constant_values=True)
LEADING = (), (6,), (2, 3), (2, 1, 3)
TRANSFORMED = (5, 4), (2, 6, 8), (3, 7, 5), (2, 2, 1, 9)

CASES = [
    *(case("linear", (*leading, 4), (4, 7), (7,)) for leading in LEADING),
    case("linear", (2, 3, 4), (4, 7)),
    *(
        case("conv1d", (2, 6, 4), (kernel, 4, 3), (3,), padding=padding)
        for kernel, padding in product((1, 2, 3, 4, 5), ("same", "valid"))
    ),
    *(case("conv1d", (2, 6, 4), (kernel, 4, 3)) for kernel in (1, 3, 4)),
    case("conv1d", (2, 6, 4), (4, 4, 3), padding="valid"),
    case("conv1d", (2, 3, 4), (5, 4, 3), (3,)),
    *(case(name, (3, 50), scale=4.0) for name in ("relu", "silu", "tanh", "sigmoid")),
    case("relu", np.array([-1.0, -0.0, 0.0, 1.0])),
    *(case("gelu", (3, 50), scale=4.0, approximate=form) for form in ("none", "tanh")),
    *(
        case("layer_norm", (*leading, 8), (8,), (8,), eps=eps)
        for leading, eps in product(LEADING[:3], (1e-5, 1e-12))
    ),
    *(case("layer_norm", (*leading, 8), (8,), None) for leading in LEADING),
    *(case("rms_norm", (*leading, 8), (8,), eps=eps) for leading in LEADING for eps in (1e-5, 0.5)),
    *(
        case("rotary", (2, 3, 5, 8), np.arange(5), layout=layout, theta=theta)
        for layout, theta in product(("halves", "neighbours"), (10000.0, 37.0))
    ),
    *(
        case("rotary", (2, 3, 5, 8), OF_EACH_ROW, layout=layout)
        for layout in ("halves", "neighbours")
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
    case("blockwise_attention", *qkv(3, 300)),  # a block of 256 keys, and one of the rest
    *(
        case("average", (*leading, LENGTH, LENGTH), (BATCH, 2, LENGTH, D), mask=mask, causal=causal)
        for leading, mask, causal in product(
            ((), (2,), (1, 2), (BATCH, 1), (BATCH, 2)), (None, OVER_HEADS), EITHER
        )
    ),
    *(
        case("average", (2, 3, 6), (BATCH, 2, 6, D), causal=causal, begin=begin, window=window)
        for causal, begin, window in product(EITHER, (0, 1, 3), (None, 1, 2, 3, 9))
    ),
    *(
        case(
            "average",
            (*leading, LENGTH, LENGTH),
            (BATCH, 2, LENGTH, D),
            mask=mask,
            causal=True,
            rate=0.4,
            generator=generator,
        )
        for leading, mask, generator in product(
            ((), (2,), (BATCH, 2)), (None, OVER_HEADS), (None, np.random.default_rng(7))
        )
    ),
    *(
        case("averaging_weights", (BATCH, 2, LENGTH, LENGTH), mask=mask, causal=causal, window=n)
        for mask, causal, n in product((None, OVER_HEADS), EITHER, (None, 1, 3))
    ),
    *(
        case(
            f"{kind}_attention",
            *qkv(3, 6, D + 3, batch=3),
            mask=mask,
            causal=causal,
            begin=begin,
            window=window,
            **options,
        )
        for kind, options in (("scaled_dot_product", {}), ("blockwise", {"block": 2}))
        for mask, causal, begin, window in product(
            (None, OF_SIX_KEYS), EITHER, (1, 3), (None, 2, 3)
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
    *(case(name, X, rate=0.4) for name in ("dropout", "token_dropout")),
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
        case(
            "softmax_cross_entropy",
            (3, 4, 7),
            labels=SOME_LABELS,
            label_smoothing=smoothing,
            weights=weights,
            class_weights=class_weights,
        )
        for smoothing, weights, class_weights in product(
            (0.0, 0.1), (None, WEIGHTS[:3, None] * np.ones(4)), (None, CLASS_WEIGHTS)
        )
    ),
    *(
        case("binary_cross_entropy_with_logits", (6, 2), scale=scale, targets=TARGETS)
        for scale in (1.0, 1000.0)
    ),
    *(
        case(
            "binary_cross_entropy_with_logits",
            (6, 2),
            targets=TARGETS,
            weights=weights,
            class_weights=class_weights,
        )
        for weights, class_weights in product(
            (None, WEIGHTS[:, None] * np.ones(2)), (None, CLASS_WEIGHTS[1:3])
        )
    ),
    *(case("mean_squared_error", (6, 2), target=TARGETS, weights=w) for w in (None, WEIGHTS)),
]

STEP_AND_STATES = (4,), (4, 3), (4, 3)
FORWARD_ONLY = [
    *(case("split_heads", (2, 5, 6), n_heads=n) for n in (1, 2, 6)),
    *(case("merge_heads", (2, n, 5, 3)) for n in (1, 2)),
    case("state_space_step", *STEP_AND_STATES),
    case("state_space_step", *STEP_AND_STATES, scale=3.0),
]
"""Functions that have no backward pass."""
