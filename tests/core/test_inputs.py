"""TwoInputLayer: its call, and what stands for each of its inputs."""

import re

import numpy as np
import pytest
from npformer.core.two_inputs import check_inputs, context_arguments, per_input

import npformer as nf
from npformer import layers as L
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
    seen = []
    layer.forward = lambda a, b, context: (seen.append(context), None)
    layer(A, B, mask=(OF_A, None))
    (context,) = seen
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
            "mask is a ndarray; expected a tuple of 2, for CrossAttention has",
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

    with pytest.raises(NotImplementedError, match="Half does not say how to go forward"):
        Half()(A, B)
    with pytest.raises(NotImplementedError, match="Half does not say how to go backward"):
        Half().backward(A, None, nf.Gradients(Half()))


def test_a_layer_with_one_input_takes_no_tuple():
    tanh = L.Tanh()
    assert per_input(tanh, "x", A) == (A,)
    message = "mask is a tuple of 2; expected one array, for Tanh has one input.*TwoInputLayer"
    with pytest.raises(TypeError, match=message):
        context_arguments(tanh, (OF_A, OF_B))
    with pytest.raises(ValueError, match=r"^mask has shape \(2, 3\); expected \(2, 4\)"):
        check_inputs(tanh, A, OF_B)


def test_masks_and_types_become_arguments_of_a_context():
    two = Bilinear(3, 3)
    of_a, of_b = OF_A * 1, OF_B * 1
    expected = {"mask": OF_A, "types": of_a, "memory_mask": OF_B, "memory_types": of_b}
    assert context_arguments(two, (OF_A, OF_B), (of_a, of_b)) == expected
    assert context_arguments(two, None) == dict.fromkeys(expected)
    assert context_arguments(L.Tanh(), OF_A, of_a) == {"mask": OF_A, "types": of_a}


def test_names_files_and_copies_are_those_of_any_layer():
    layer = CrossAttention(3, 5).flatten()
    assert list(layer.parameters())[:2] == ["query.weight", "query.bias"]
    assert nf.fast(layer) is layer  # the engine does not know it
