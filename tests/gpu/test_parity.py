"""The GPU gives NumPy's numbers, up to the order of sums.

In float64 rounding is 1e-16 an operation: 1e-10 leaves room for a few hundred sums in another
order, and for nothing else. In float32 rounding is 6e-8, which the layers of these small models
raise to some 1e-6 on a CPU. 1e-4 leaves room for other algorithms of exp and erf and for atomic
additions, and is still below the 5e-4 of a product in TF32, which would be a mistake here.
"""

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from tests.device import cases
from tests.gpu import require_gpu

require_gpu()

TOLERANCE = {"float64": 1e-10, "float32": 1e-4}
AFTER_TRAINING = {"float64": 1e-8, "float32": 1e-2}
"""Some steps of Adam on, where each step begins with the rounding of the one before."""

on_and_off = pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "plain"])
"""NumPy's side is always `npformer.functional` alone."""


@pytest.mark.parametrize("dtype", TOLERANCE)
@cases.parametrize_cases(cases.PAIRS)
def test_a_pair_gives_the_numbers_of_numpy(case, dtype) -> None:
    cases.assert_agree(case, "cupy", dtype, TOLERANCE[dtype])


@on_and_off
@pytest.mark.parametrize("dtype", TOLERANCE)
@cases.parametrize_cases(
    [
        *cases.LAYERS,
        *cases.MIXERS,
        *cases.EXPLANATIONS,
        *cases.ENCODERS,
        *cases.CLASSIFIERS,
        *cases.OPTIMIZING,
    ]
)
def test_layers_models_and_optimizers_give_the_numbers_of_numpy(case, dtype, kernels) -> None:
    with nf.use_kernels(kernels):
        cases.assert_agree(case, "cupy", dtype, TOLERANCE[dtype])


@on_and_off
@pytest.mark.parametrize("dtype", TOLERANCE)
@cases.parametrize_cases(cases.TRAINING)
def test_a_training_run_gives_the_numbers_of_numpy(case, dtype, kernels) -> None:
    with nf.use_kernels(kernels):
        cases.assert_agree(case, "cupy", dtype, AFTER_TRAINING[dtype])


def test_training_continues_where_the_model_moves() -> None:
    stayed = cases.train("numpy", "float64", steps=6)
    moved = cases.train("numpy", "float64", steps=6, moves={2: "cupy", 4: "numpy"})
    for name, x in stayed.items():
        np.testing.assert_allclose(moved[name], x, rtol=1e-8, atol=1e-9, err_msg=name)


def test_a_model_that_moves_there_and_back_is_the_same() -> None:
    model = cases.classifier("float32")
    before = model.parameters().flat.copy()
    np.testing.assert_array_equal(model.to("cupy").to("numpy").parameters().flat, before)


def test_a_long_sequence_gives_the_numbers_of_numpy() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 4, 257, 64))
    mask = (np.arange(257) < np.array([257, 100])[:, None])[:, None, None, :]
    here, _ = F.scaled_dot_product_attention(x, x, x, mask=mask)
    there = nf.asarray(x, "cupy")
    y, _ = F.scaled_dot_product_attention(there, there, there, mask=nf.asarray(mask, "cupy"))
    np.testing.assert_allclose(nf.to_numpy(y), here, rtol=1e-10, atol=1e-12)


def test_ids_that_repeat_add_up() -> None:
    ids, dy = np.zeros((64, 128), dtype="int64"), np.ones((64, 128, 8))
    _, cache = F.embedding(nf.asarray(ids, "cupy"), nf.asarray(np.zeros((3, 8)), "cupy"))
    dtable = nf.to_numpy(F.embedding_backward(nf.asarray(dy, "cupy"), cache))
    np.testing.assert_array_equal(dtable, [[ids.size] * 8, [0.0] * 8, [0.0] * 8])


def test_mixed_backends_are_an_error_that_says_what_to_do() -> None:
    layer = nf.layers.Linear(2, 2, seed=0).to("cupy")
    with pytest.raises(TypeError, match=r"x is a numpy array and W is a cupy array; .*asarray\("):
        layer(np.zeros((1, 2), dtype="float32"))


def test_the_device_is_named() -> None:
    assert "CuPy" in nf.core.get_backend("cupy").device()
