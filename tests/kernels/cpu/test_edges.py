"""Batches without rows, and arguments that do not fit, for every kernel."""

from dataclasses import replace

import numpy as np
import pytest

from npformer.engine import EngineContext
from tests.kernels import helpers
from tests.kernels.cpu.helpers import KERNELS, expected, forward, run
from tests.kernels.helpers import Case

EMPTY = {
    "linear": helpers.linear((0, 4, 3), 5),
    "layer_norm": helpers.layer_norm((0, 3, 8)),
    "fourier_mixing": helpers.fourier_mixing((0, 4, 3)),
    "embedding": helpers.embedding((0, 4), 5, 3),
    **{f"feed_forward, {a}": helpers.feed_forward((0, 3, 8), 5, a) for a in helpers.ACTIVATIONS},
}


@pytest.mark.parametrize("empty", EMPTY.values(), ids=EMPTY.keys())
def test_no_rows_at_all_send_zeros_to_the_parameters(empty):
    y, *gradients = run(empty)
    assert y.size == 0
    assert y.shape == expected(empty)[0].shape
    for gradient, array in zip(gradients, empty.arrays, strict=True):
        assert gradient.shape == array.shape
        assert not gradient.any()


def with_first(case, change):
    """Return the case with another first array."""
    x, *others = case.arrays
    return replace(case, arrays=(change(x), *others))


def ones(name, *shapes):
    return Case(name, tuple(map(np.ones, shapes)))


LINEAR, NORM, FEED_FORWARD = helpers.linear(), helpers.layer_norm(), helpers.feed_forward()
ATTENTION, DENSE = helpers.attention_heads(3, 4), helpers.dense_heads(3, 4, max_len=4)
LONGER_MASK, NUMBERS_AS_MASK = np.ones((3, 5), bool), np.ones((3, 4), int)


def single(x):
    return x.astype("float32")


def whole(x):
    return x.astype("int64")


def narrower(x):
    return x[..., 1:]


REFUSED = [
    (with_first(LINEAR, narrower), ValueError, "x has shape"),
    (ones("linear", (2, 3), (3, 5), (4,)), ValueError, "b has shape"),
    (ones("linear", (2, 3), (3,), (3,)), ValueError, "W has shape"),
    (ones("layer_norm", (2, 3), (4,), (3,)), ValueError, "gamma has shape"),
    (with_first(NORM, single), TypeError, "float32"),
    (with_first(FEED_FORWARD, narrower), ValueError, "x has shape"),
    (with_first(FEED_FORWARD, single), TypeError, "float32"),
    (ones("fourier_mixing", (4,)), ValueError, "x has shape"),
    (with_first(helpers.fourier_mixing(), lambda x: 1j * x), TypeError, "complex128"),
    (
        replace(helpers.embedding((2,), 5), others=(np.array([0, 5]),)),
        ValueError,
        "ids holds 5; expected whole numbers from 0 to 4",
    ),
    (helpers.dropout(rate=1.0), ValueError, "rate is 1"),
    (with_first(ATTENTION, narrower), ValueError, "x has shape"),
    (with_first(ATTENTION, lambda x: x[0]), ValueError, "x has shape"),
    (replace(ATTENTION, mask=LONGER_MASK), ValueError, "mask has shape"),
    (replace(ATTENTION, mask=NUMBERS_AS_MASK), TypeError, "True means keep"),
    (with_first(ATTENTION, single), TypeError, "float32.*; expected"),
    (with_first(ATTENTION, whole), TypeError, "int64.*; expected"),
    (
        with_first(DENSE, lambda x: np.concatenate([x, x[:, :1]], axis=1)),
        ValueError,
        "x has length 5; expected at most 4",
    ),
    (with_first(DENSE, narrower), ValueError, "x has shape"),
    (replace(DENSE, mask=LONGER_MASK), ValueError, "mask has shape"),
    (with_first(DENSE, single), TypeError, "float32.*; expected"),
    (with_first(DENSE, whole), TypeError, "int64.*; expected"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), REFUSED)
def test_what_does_not_fit_is_refused_and_not_cast(wrong, error, message):
    with pytest.raises(error, match=message):
        forward(wrong, wrong.arrays, wrong.context())


def test_dropout_refuses_what_is_no_generator():
    with pytest.raises(TypeError, match="generator is an int"):
        KERNELS["dropout"][0](np.ones(3), 0.5, 3, context=EngineContext())
