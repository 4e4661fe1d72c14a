"""TwoInputLayer: its call, and what stands for each of its inputs."""

import re

import numpy as np
import pytest

import npformer as nf
from npformer import layers as L
from npformer.core.inputs import check_inputs, inputs_of_arrays, user_arrays, within
from tests.two_inputs import Bilinear, CrossAttention, WordsToVectors

A, B = np.random.default_rng(0).normal(size=(2, 2, 4, 3))
B = B[:, :3]
OF_A = np.arange(4) < np.array([[4], [2]])
OF_B = np.arange(3) < np.array([[1], [3]])


def test_a_call_is_the_forward_pass_at_evaluation():
    layer = CrossAttention(3, 3)
    context = nf.Context(mask=OF_A, memory_mask=OF_B, keep=False)
    np.testing.assert_array_equal(layer(A, B, (OF_A, OF_B)), layer.forward(A, B, context)[0])
    np.testing.assert_array_equal(layer(A, B), layer.forward(A, B, nf.Context())[0])
    contexts = []
    layer.forward = lambda a, b, context: (contexts.append(context), None)
    layer(A, B, mask=(OF_A, None))
    (context,) = contexts
    assert (context.mask is OF_A, context.memory_mask, context.keep) == (True, None, False)


def test_each_mask_belongs_to_its_input():
    layer = CrossAttention(3, 3)
    np.testing.assert_array_equal(layer(A, B, (OF_A, None))[~OF_A], 0.0)
    changed = np.where(OF_B[..., None], B, 9.0)
    np.testing.assert_array_equal(layer(A, changed, (None, OF_B)), layer(A, B, (None, OF_B)))
    assert not np.allclose(layer(A, changed), layer(A, B))


def test_one_input_may_be_token_ids():
    assert WordsToVectors(5, 3)(np.array([[1, 4]]), B[:1]).shape == (1, 2, 3)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((A, None), TypeError, "b is None; expected an array"),
        ((A.tolist(), B), TypeError, "a is a list; expected an array"),
        (
            (A, B, OF_A),
            TypeError,
            "mask is an ndarray; expected a tuple of 2, because CrossAttention has",
        ),
        (
            (A, B, (OF_A,)),
            TypeError,
            "mask is a tuple of 1; expected a tuple of 2.*mask=(that of a",
        ),
        ((A, B, (OF_B, OF_A)), ValueError, "mask[0] has shape (2, 3); expected (2, 4)"),
        ((A, B, (None, OF_A)), ValueError, "mask[1] has shape (2, 4); expected (2, 3)"),
        ((A, B, (None, OF_B * 1)), TypeError, "mask[1] has dtype int64; expected a boolean array"),
        ((A, B, ([[True]], None)), TypeError, "mask[0] is a list; expected an array"),
    ],
)
def test_wrong_calls_are_refused(arguments, error, message):
    with pytest.raises(error, match=re.escape(message).replace(r"\.\*", ".*")):
        CrossAttention(3, 3)(*arguments)


def test_a_layer_says_which_pass_it_lacks():
    class Half(nf.TwoInputLayer):
        pass

    with pytest.raises(NotImplementedError, match="Half does not define forward"):
        Half()(A, B)
    with pytest.raises(NotImplementedError, match="Half does not define backward"):
        Half().backward(A, None, nf.Gradients(Half()))


def test_a_layer_with_one_input_takes_no_tuple():
    tanh = L.Tanh()
    (one,) = inputs_of_arrays(tanh, A)
    assert (one.x is A, one.padding, one.types) == (True, None, None)
    message = "mask is a tuple of 2; expected one array, because Tanh has one input.*n_inputs = 2"
    with pytest.raises(TypeError, match=message):
        inputs_of_arrays(tanh, A, (OF_A, OF_B))
    with pytest.raises(ValueError, match=r"^mask has shape \(2, 3\); expected \(2, 4\)"):
        check_inputs(inputs_of_arrays(tanh, A, OF_B))


def test_masks_and_types_become_those_of_a_context_and_go_back_to_the_user():
    two = Bilinear(3, 3)
    of_a, of_b = OF_A * 1, OF_B * 1
    inputs = inputs_of_arrays(two, (A, B), (OF_A, OF_B), (of_a, of_b))
    context = within(inputs, nf.Context())
    assert context.mask is OF_A
    assert context.types is of_a
    assert context.memory_mask is OF_B
    assert context.memory_types is of_b
    for passed, back in zip(((A, B), (OF_A, OF_B), (of_a, of_b)), user_arrays(inputs), strict=True):
        assert all(one is other for one, other in zip(passed, back, strict=True))
    plain = nf.Context()
    assert within(inputs_of_arrays(two, (A, B)), plain) is plain
    one = within(inputs_of_arrays(L.Tanh(), A, OF_A, of_a), plain)
    assert (one.mask is OF_A, one.types is of_a, one.memory_mask) == (True, True, None)


def test_names_files_and_copies_are_those_of_any_layer():
    layer = CrossAttention(3, 5).flatten()
    assert list(layer.parameters())[:2] == ["query.weight", "query.bias"]
    assert nf.fast(layer) is layer  # the engine does not know it
