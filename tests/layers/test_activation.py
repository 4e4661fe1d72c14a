import numpy as np
import pytest

from npformer import functional as F
from npformer.layers import ACTIVATIONS, GELU

FUNCTIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "tanh": F.tanh,
}


def test_every_name_has_its_function_here():
    assert set(FUNCTIONS) == set(ACTIVATIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_name_stands_for_its_function(either, rng, name):
    x = rng.normal(size=(2, 3))
    np.testing.assert_array_equal(either(ACTIVATIONS[name]())(x), FUNCTIONS[name](x)[0])


def test_gelu_heeds_which_form_is_asked_for(rng):
    x = rng.normal(size=9)
    assert (GELU()(x) != GELU(approximate="tanh")(x)).any()
