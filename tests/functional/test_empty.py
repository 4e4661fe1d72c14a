"""Arrays without entries: PyTorch's convention, or an error in words; never a warning."""

import numpy as np
import pytest

from npformer import functional as F
from npformer.layers import POOLINGS
from npformer.mixers import MIXERS, MixerSettings
from tests.pairs import FUNCTIONS


def zeros(*shape):
    return np.zeros(shape)


def ids(*shape):
    return np.zeros(shape, int)


EMPTY = [
    ("softmax", [zeros(3, 0)], {}),
    ("softmax", [zeros(3, 0)], {"mask": np.ones((3, 0), bool)}),
    ("softmax", [zeros(0, 3)], {}),
    *(
        (name, [zeros(2, queries, 4), zeros(2, keys, 4), zeros(2, keys, 5)], options)
        for name in ("scaled_dot_product_attention", "blockwise_attention")
        for queries, keys in ((0, 3), (3, 0), (0, 0))
        for options in ({}, {"causal": True}, {"mask": np.ones((queries, keys), bool)})
    ),
    ("scaled_dot_product_attention", [zeros(0, 3, 4)] * 3, {}),
    ("average", [zeros(2, 3, 0), zeros(2, 0, 4)], {}),
    ("dense_synthesizer", [*[zeros(2, 0, 4)] * 2, *map(np.zeros, ((4, 4), 4, (4, 6), 6))], {}),
    ("random_synthesizer", [zeros(2, 0, 4), zeros(6, 6)], {}),
    ("linear_mixing", [zeros(2, 0, 4), zeros(6, 6), zeros(4, 4)], {}),
    *((f"{name}_mixing", [zeros(0, 3, 4)], {}) for name in ("fourier", "hartley")),
    ("linear", [zeros(3, 0), zeros(0, 4), zeros(4)], {}),
    ("linear", [zeros(3, 4), zeros(4, 0), zeros(0)], {}),
    ("linear", [zeros(0, 4), zeros(4, 2), zeros(2)], {}),
    ("conv1d", [zeros(0, 5, 4), zeros(3, 4, 2), zeros(2)], {}),
    ("embedding", [ids(2, 0), zeros(4, 3)], {}),
    ("embedding", [ids(0, 3), zeros(4, 3)], {}),
    ("bag", [ids(2, 0), zeros(2, 0), zeros(4, 3)], {}),
    ("bag", [ids(0, 3), zeros(0, 3), zeros(4, 3)], {}),
    ("mean_pooling", [zeros(0, 3, 4)], {}),
    ("max_pooling", [zeros(0, 3, 4)], {}),
    ("softmax_cross_entropy", [zeros(0, 3), ids(0)], {}),
    ("softmax_cross_entropy", [zeros(2, 3), ids(2) - 1], {}),
    ("binary_cross_entropy_with_logits", [zeros(0), zeros(0)], {}),
    ("mean_squared_error", [zeros(0, 2), zeros(0, 2)], {}),
]


@pytest.mark.parametrize(
    ("name", "arrays", "options"), EMPTY, ids=[f"{e[0]} {[a.shape for a in e[1]]}" for e in EMPTY]
)
def test_nothing_gives_nothing_or_0(name, arrays, options):
    y, cache = FUNCTIONS[name](*arrays, **options)
    gradients = FUNCTIONS[f"{name}_backward"](np.ones_like(y), cache)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    expected_shapes = [array.shape for array in arrays if array.dtype.kind == "f"]
    # Targets of a loss have no gradient.
    assert [gradient.shape for gradient in gradients] == expected_shapes[: len(gradients)]
    for array in (y, *gradients[:1]):
        np.testing.assert_array_equal(array, 0.0)


WRONG = [
    (lambda: F.fourier_mixing(zeros(2, 0, 4)), r"x has shape \(2, 0, 4\); expected no axis of"),
    (lambda: F.hartley_mixing(zeros(2, 4, 0)), r"x has shape \(2, 4, 0\); expected no axis of"),
    (lambda: F.linear_mixing(zeros(2, 3, 0), zeros(6, 6), zeros(0, 0)), r"W_features has shape"),
    (lambda: F.attention_scores(zeros(3, 0), zeros(3, 0)), r"query .* at least one feature"),
    (lambda: F.conv1d(zeros(2, 0, 4), zeros(3, 4, 2)), "x has length 0 and the kernel has size 3"),
    (lambda: F.conv1d(zeros(2, 5, 4), zeros(0, 4, 2)), r"W has shape \(0, 4, 2\); .* no axis"),
    (lambda: F.mean_pooling(zeros(2, 0, 4)), "expected at least one token, not 0"),
    (lambda: F.max_pooling(zeros(2, 0, 4)), "expected at least one token, not 0"),
    (lambda: F.softmax_cross_entropy(zeros(0, 0), ids(0)), "expected at least one class"),
    (lambda: F.embedding(ids(2), zeros(0, 3)), "ids holds 0; .* the table has 0 rows"),
    *(
        (lambda name=name: POOLINGS.make(name, 4, 0, "float64")(zeros(2, 0, 4)), "least one token")
        for name in ("mean", "first", "pooler")
    ),
    *(
        (
            lambda name=name: MIXERS[name].build(MixerSettings(4), seed=0, dtype="float64")(
                zeros(2, 0, 4)
            ),
            "at least one token",
        )
        for name in ("fourier", "hartley", "linear", "random")
    ),
]


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_has_no_meaning_is_refused_in_words(call, message):
    with pytest.raises(ValueError, match=message):
        call()
