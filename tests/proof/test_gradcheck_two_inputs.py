"""gradcheck of layers with two inputs: the right ones pass, and every broken one is found."""

import numpy as np
import pytest

import npformer as nf
from npformer import functional as F
from npformer import layers as L
from npformer.proof.gradcheck import gradcheck
from npformer.proof.problem import layer_problem
from npformer.proof.report import GradcheckError
from npformer.proof.rules import check_rules
from npformer.proof.twincheck import check_twin
from tests.two_inputs import Bilinear, CrossAttention, Twice, WordsToVectors

OF_A = np.arange(4) < np.array([[4], [2]])
OF_B = np.arange(3) < np.array([[1], [3]])
IDS = np.array([[1, 4, 1, 0], [2, 2, 3, 0]])


@pytest.fixture
def a(rng):
    return rng.normal(size=(2, 4, 3))


@pytest.fixture
def b(rng):
    return rng.normal(size=(2, 3, 5))


def refused(layer, *inputs, **options):
    with pytest.raises(GradcheckError) as caught:
        gradcheck(layer, *inputs, **options)
    report = caught.value.report
    return [t.name for t in report.tensors if not t.error <= report.tolerance], report.broken_rules


@pytest.mark.parametrize("mask", [None, (OF_A, OF_B), (OF_A, None), (None, OF_B)], ids=str)
def test_right_layers_pass(a, b, mask):
    report = gradcheck(CrossAttention(3, 5), a, b, mask=mask)
    parameters = CrossAttention(3, 5).parameters()
    assert [tensor.name for tensor in report.tensors] == ["a", "b", *parameters]
    assert [tensor.shape for tensor in report.tensors[:2]] == [a.shape, b.shape]
    assert report.complex_error < 1e-12
    assert all(tensor.complex_error is not None for tensor in report.tensors)
    assert gradcheck(Bilinear(3, 5), a, b, mask=mask).complex_error < 1e-13


def test_a_layer_may_be_applied_twice(a, rng):
    memory = rng.normal(size=(2, 3, 3))
    assert gradcheck(Twice(CrossAttention(3, 3)), a, memory, mask=(OF_A, OF_B)).passed


def test_token_ids_have_no_gradient_and_stay_as_they_are(b):
    ids, original_ids = IDS.copy(), IDS.copy()
    layer = WordsToVectors(5, 5)
    report = gradcheck(layer, ids, b)
    assert [tensor.name for tensor in report.tensors] == ["b", *layer.parameters()]
    np.testing.assert_array_equal(ids, original_ids)

    class Swapped(WordsToVectors):
        def forward(self, vectors, ids, context):
            return super().forward(ids, vectors, context)

        def backward(self, dy, cache, gradients):
            return super().backward(dy, cache, gradients)[::-1]

    assert next(t.name for t in gradcheck(Swapped(5, 5), b, ids).tensors) == "a"


def test_one_array_may_be_both_inputs(a):
    original = a.copy()
    assert gradcheck(Bilinear(3, 3), a, a).passed
    np.testing.assert_array_equal(a, original)


def test_masks_and_types_reach_their_sides(a, b):
    contexts = []

    class Noting(Bilinear):
        def forward(self, a, b, context):
            contexts.append(context)
            return super().forward(a, b, context)

    types = OF_A * 1, OF_B * 1
    gradcheck(Noting(3, 5), a, b, mask=(OF_A, OF_B), types=types, training=True)
    for context in contexts:
        np.testing.assert_array_equal(context.mask, OF_A)
        np.testing.assert_array_equal(context.memory_mask, OF_B)
        np.testing.assert_array_equal(context.types, types[0])
        np.testing.assert_array_equal(context.memory_types, types[1])
        assert context.generator is not None


@pytest.mark.parametrize("name", ["x", "a", "b"])
def test_a_parameter_may_be_called_as_an_input_is(a, rng, name):
    """Both are checked: neither stands in the other's place."""

    class Shifted(nf.Layer if name == "x" else nf.TwoInputLayer):
        right = True

        def __init__(self):
            setattr(self, name, nf.Parameter(rng.normal(size=3)))

        def forward(self, *inputs_and_context):
            return sum(inputs_and_context[:-1]) * vars(self)[name].value, inputs_and_context[:-1]

        def backward(self, dy, inputs, gradients):
            gradients.add(vars(self)[name], (dy * sum(inputs)).sum(axis=(0, 1)))
            dx = dy * vars(self)[name].value * (1.0 if self.right else 1.01)
            return dx if len(inputs) == 1 else (dx, dx.copy())

    inputs = [a] if name == "x" else [a, a]
    names = {"x": ["x"], "a": ["a", "b"], "b": ["a", "b"]}[name]
    expected = [f"input {name}" if one == name else one for one in names] + [name]
    assert [t.name for t in gradcheck(Shifted(), *inputs).tensors] == expected
    Shifted.right = False
    wrong, _ = refused(Shifted(), *inputs)
    assert f"input {name}" in wrong
    assert name not in wrong


def but(change):

    class Wrong(Bilinear):
        def backward(self, dy, cache, gradients):
            return change(*super().backward(dy, cache, gradients))

    return Wrong


SwapsTheGradients = but(lambda da, db: (db, da))
SeesAOnly = but(lambda da, db: (da, 0.0 * db))
HasNoDb = but(lambda da, db: (da, None))
AlmostRight = but(lambda da, db: (da, db * (1.0 + 1e-9)))


class ForgetsItsWeight(Bilinear):
    def backward(self, dy, cache, gradients):
        return super().backward(dy, cache, nf.Gradients(self))


class ForgetsOneUseOfB(CrossAttention):
    def backward(self, dy, cache, gradients):
        q_cache, k_cache, v_cache, cache, kept_tokens = cache
        dq, dk, dv = F.scaled_dot_product_attention_backward(dy * kept_tokens, cache)
        self.value.backward(dv, v_cache, gradients)
        dmemory = self.key.backward(dk, k_cache, gradients)
        return self.query.backward(dq, q_cache, gradients), dmemory


class ScalesDy(Bilinear):
    def backward(self, dy, cache, gradients):
        dy *= 2.0
        return super().backward(0.5 * dy, cache, gradients)


@pytest.mark.parametrize("size", [3, 5])
def test_swapped_gradients_are_found(rng, size):
    """Of the same shape they have wrong values, of another they have a wrong shape."""
    a, b = rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 4, size))
    wrong, broken = refused(SwapsTheGradients(3, size), a, b)
    if size == 3:
        assert (wrong, broken) == (["a", "b"], [])
    else:
        assert broken == [
            "the gradient of a has shape (2, 4, 5), not (2, 4, 3)",
            "the gradient of b has shape (2, 4, 3), not (2, 4, 5)",
        ]


@pytest.mark.parametrize(
    ("layer", "name"),
    [(ForgetsItsWeight(3, 5), "weight"), (SeesAOnly(3, 5), "b"), (ForgetsOneUseOfB(3, 5), "b")],
)
def test_one_wrong_gradient_is_found(a, b, layer, name):
    wrong, broken = refused(layer, a, b)
    assert (wrong, broken) == ([name], [])


class MasksTheWrongSide(CrossAttention):
    def forward(self, x, memory, context):
        return super().forward(x, memory, context.for_memory())


class GoesBackToPadding(CrossAttention):
    def backward(self, dy, cache, gradients):
        return super().backward(dy, (*cache[:-1], 1.0), gradients)


class GoesBackWithTheOtherMask(CrossAttention):
    def forward(self, x, memory, context):
        y, cache = super().forward(x, memory, context)
        return y, (*cache[:-1], context.memory_mask[..., None])


def test_the_mask_of_the_wrong_side_is_found(a, b, rng):
    with pytest.raises(ValueError, match=r"shape|broadcast"):
        gradcheck(MasksTheWrongSide(3, 5), a, b, mask=(OF_A, OF_B))
    wrong, _ = refused(GoesBackToPadding(3, 5), a, b, mask=(OF_A, OF_B))
    assert "a" in wrong
    memory, mask = rng.normal(size=(2, 4, 5)), (OF_A, OF_A[::-1])  # as long as x
    wrong, _ = refused(GoesBackWithTheOtherMask(3, 5), a, memory, mask=mask)
    assert "a" in wrong


def test_the_complex_step_looks_at_both_inputs(a, b):

    with pytest.raises(GradcheckError) as caught:
        gradcheck(AlmostRight(3, 5), a, b)
    report = caught.value.report
    assert report.error < 1e-8
    assert [t.name for t in report.tensors if t.complex_error > 1e-10] == ["b"]
    assert gradcheck(AlmostRight(3, 5), a, b, complex_tolerance=None).passed


@pytest.mark.parametrize("kind", [Bilinear, SeesAOnly, HasNoDb, ScalesDy])
def test_a_twin_is_compared_in_both_inputs(a, b, kind):
    layer = Bilinear(3, 5)
    twin = object.__new__(kind)
    twin.__dict__ = layer.__dict__
    dy = np.cos(np.arange(24.0)).reshape(2, 4, 3)
    y, gradients, _ = check_rules(layer_problem(layer, (a, b), nf.Context), dy)
    problem = layer_problem(layer, (a, b), nf.Context, twin)
    reports, broken = check_twin(problem, dy, {**gradients, "y": y}, 0.0)
    assert [report.dtype for report in reports] == ["float64", "float32"]
    assert [report.passed for report in reports] == [kind in (Bilinear, ScalesDy)] * 2
    assert ("the backward pass changed its dy" in broken) is (kind is ScalesDy)
    if kind in (SeesAOnly, HasNoDb):
        assert {report.tensor for report in reports} == {"b"}


def test_a_twin_runs_in_each_dtype(a, b):
    dtypes_of_calls = []

    class Noting(Bilinear):
        def forward(self, a, b, context):
            dtypes_of_calls.append({a.dtype.name, b.dtype.name, self.weight.dtype.name})
            return super().forward(a, b, context)

    layer, dy = Bilinear(3, 5), np.ones((2, 4, 3))
    twin = object.__new__(Noting)
    twin.__dict__ = layer.__dict__
    y, gradients, _ = check_rules(layer_problem(layer, (a, b), nf.Context), dy)
    check_twin(layer_problem(layer, (a, b), nf.Context, twin), dy, {**gradients, "y": y}, 0.0)
    assert all(len(dtypes) == 1 for dtypes in dtypes_of_calls)
    assert set.union(*dtypes_of_calls) == {"float64", "float32"}


@pytest.mark.parametrize(
    ("returned", "what"),
    [
        (lambda da, db: da, "an ndarray"),
        (lambda da, db: None, "None"),
        (lambda da, db: (da,), "a tuple of 1"),
        (lambda da, db: (da, db, db), "a tuple of 3"),
    ],
)
def test_other_than_two_gradients_are_refused(a, b, returned, what):
    message = rf"backward pass of Wrong returned {what}; expected \(da, db\), in this order"
    with pytest.raises(TypeError, match=message):
        gradcheck(but(returned)(3, 5), a, b)


A, B = np.ones((2, 4, 3)), np.ones((2, 3, 5))


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        ([A], {}, "got 1 input; expected two, a and b, because Bilinear has two: gradcheck.layer"),
        ([(A, B)], {}, "got 1 input; expected two, a and b"),
        ([], {}, "got 0 inputs; expected two"),
        ([A, B, B], {}, "got 3 inputs; expected two"),
        ([A, B.astype("float32")], {}, "b has dtype float32; expected float64"),
        ([A.tolist(), B], {}, "a is a list; expected an array"),
        ([A, B], {"mask": OF_A}, "mask is an ndarray; expected a tuple of 2, because Bilinear has"),
        ([A, B], {"mask": (OF_A,)}, "mask is a tuple of 1; expected a tuple of 2"),
        ([A, B], {"types": OF_A * 1}, "types is an ndarray; expected a tuple of 2"),
        ([A, B], {"mask": (None, OF_B * 1)}, r"mask\[1\] has dtype int64; expected a boolean"),
        ([A, B], {"wrt": ["a"]}, "got wrt; expected nothing that only functions take"),
    ],
)
def test_wrong_calls_are_refused(inputs, options, message):
    with pytest.raises(TypeError, match=message):
        gradcheck(Bilinear(3, 5), *inputs, **options)


def test_a_layer_with_one_input_takes_no_tuple_of_masks():
    linear = L.Linear(3, 2, seed=0, dtype="float64")
    with pytest.raises(TypeError, match="mask is a tuple of 2; expected one array, because Linear"):
        gradcheck(linear, A, mask=(OF_A, OF_B))
