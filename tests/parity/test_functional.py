import copy

import numpy as np
import pytest

from npformer import functional as F
from npformer.interop import ARCHITECTURES
from npformer.layers import ACTIVATIONS
from tests.needs import NEEDS
from tests.pairs import FUNCTIONS, MASKED, NAMES, PLAIN, Example, gradients_of, pairs

from .formulas import FORWARD_ONLY, REFERENCES
from .functional_cases import CASES
from .functional_cases import FORWARD_ONLY as FORWARD_ONLY_CASES
from .helpers import assert_close, leaf, normals, torch
from .options import untried_options


def as_leaves(inputs):
    return [leaf(x) if x is not None and x.dtype.kind == "f" else x for x in inputs]


def assert_pair_agrees(name, inputs, options):
    leaves = as_leaves(inputs)
    expected = REFERENCES[name](*leaves, **copy.deepcopy(options))
    y, cache = FUNCTIONS[name](*inputs, **options)
    assert_close(y, expected)
    (dy,) = normals(y.shape, seed=99)
    differentiated = [x for x in leaves if isinstance(x, torch.Tensor)]
    theirs = torch.autograd.grad(expected, differentiated, torch.tensor(dy))
    pair = BACKWARD_OF.get(name, name)
    gradients = gradients_of(pair, dy, cache)
    for i, (ours, gradient) in enumerate(zip(gradients, theirs, strict=True)):
        assert_close(ours, gradient, f"gradient {i}")


BACKWARD_OF = {"averaging_weights": "softmax"}
"""Functions that share the backward pass of another one."""

EXAMPLES = {"plain": PLAIN, "masked": MASKED}
EXAMPLES["padded"] = Example(batch=3, length=5, others=2, padded=True, seed=4)
EXAMPLES["causal, more queries than keys"] = Example(length=6, keys=3, causal=True)
EXAMPLES["one of each"] = Example(batch=1, length=1, keys=1, n_heads=1, others=1)


def test_every_function_has_a_formula():
    public = [name for name, function in FUNCTIONS.items() if callable(function)]
    forward = [name for name in public if not name.endswith("_backward")]
    assert sorted({**REFERENCES, **FORWARD_ONLY}) == sorted(forward)


def calls_of(name):
    """Return how the tests of this file call a function."""
    rows = [case.values for case in (*CASES, *FORWARD_ONLY_CASES)]
    calls = [(inputs, options) for called, inputs, options in rows if called == name]
    return calls + [
        pairs(example, "float64")[name] for example in EXAMPLES.values() if name in NAMES
    ]


@pytest.mark.parametrize("name", [*REFERENCES, *FORWARD_ONLY])
def test_every_option_has_a_case(name):
    """With its default and with another value, as the signature has them."""
    assert calls_of(name)
    assert untried_options(FUNCTIONS[name], calls_of(name)) == []


# PyTorch notes that an even kernel with "same" costs it a copy of the input. That is what we ask.
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
@pytest.mark.parametrize("name", NAMES)
def test_a_pair_agrees(name, example):
    assert_pair_agrees(name, *pairs(example, "float64")[name])


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize(("name", "inputs", "options"), CASES)
def test_a_pair_agrees_in_this_case(name, inputs, options):
    assert_pair_agrees(name, inputs, options)


def flat(result):
    """Return the arrays of nested tuples."""
    if isinstance(result, tuple):
        return [array for entry in result for array in flat(entry)]
    return [result]


@pytest.mark.parametrize(("name", "inputs", "options"), FORWARD_ONLY_CASES)
def test_a_function_without_a_backward_pass_agrees(name, inputs, options):
    ours = flat(FUNCTIONS[name](*inputs, **options))
    theirs = flat(FORWARD_ONLY[name](*as_leaves(inputs), **options))
    for i, (array, expected) in enumerate(zip(ours, theirs, strict=True)):
        assert_close(array, expected, f"result {i}")


def test_steps_of_a_state_space_are_its_convolution():
    """What `state_space_step` does to the state token by token, as the kernel does it at once."""
    log_step, log_decay, frequency = normals((4,), (4, 3), (4, 3), seed=3)
    C, x = normals((2, 4, 3), (2, 7, 4), seed=5)
    decay, gain = (
        real + 1j * imag for real, imag in F.state_space_step(log_step, log_decay, frequency)
    )
    state = np.zeros((2, 4, 3), complex)
    outputs = []
    for token in range(7):
        state = decay * state + gain * x[:, token, :, None]
        outputs.append(2.0 * ((C[0] + 1j * C[1]) * state).sum(axis=-1).real)
    kernel, _ = F.state_space_kernel(log_step, log_decay, frequency, C, length=7)
    at_once, _ = F.causal_convolution(x, kernel)
    assert_close(np.stack(outputs, axis=1), at_once)


def test_a_name_that_is_read_means_the_same_function():
    torch = pytest.importorskip("torch", reason=NEEDS["torch"])
    theirs_by_name = pytest.importorskip(
        "transformers.activations", reason=NEEDS["transformers"]
    ).ACT2FN
    names = {
        item for architecture in ARCHITECTURES.values() for item in architecture.activations.items()
    }
    x = np.linspace(-6.0, 6.0, 201)
    assert len(names) >= 7
    for theirs, ours in sorted(names):
        expected = theirs_by_name[theirs](torch.tensor(x)).numpy()
        y = ACTIVATIONS.make(ours)(x)
        np.testing.assert_allclose(y, expected, rtol=1e-11, atol=1e-11, err_msg=theirs)
