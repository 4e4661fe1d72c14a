import math

import numpy as np
import pytest

from npformer.core import checks, enough_memory
from npformer.core.support.explained_errors import add_place_to_errors


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((2, 3), (2, 3)),
        ((2, 3), ("batch", 3)),
        ((2, 3), ("batch", "length")),
        ((7, 2, 3), (None, 2, 3)),
        ((2, 3), (None, 2, 3)),
        ((5, 6, 2, 3), (None, "length", 3)),
        ((), ()),
        ((), (None,)),
    ],
)
def test_shapes_that_match(shape, expected):
    checks.shape("x", np.zeros(shape), expected)


@pytest.mark.parametrize(
    ("shape", "expected", "pattern"),
    [
        ((2, 3), (2, 4), "(2, 4)"),
        ((2, 3), ("batch", "length", 3), "(batch, length, 3)"),
        ((2, 3, 1), (2, 3), "(2, 3)"),
        ((3,), (None, 2, 3), "(..., 2, 3)"),
        ((7, 2, 4), (None, "length", 3), "(..., length, 3)"),
        ((2, 3), ("d",), "(d,)"),
        ((2,), (), "()"),
    ],
)
def test_shapes_that_do_not_match_are_shown_beside_what_was_expected(shape, expected, pattern):
    with pytest.raises(ValueError, match=r"^x has shape ") as caught:
        checks.shape("x", np.zeros(shape), expected, "Look again")
    assert str(caught.value) == f"x has shape {shape}; expected {pattern}. Look again"


def test_floating_returns_the_module():
    assert checks.floating(x=np.zeros(2), W=np.ones(1)) is np


def test_floating_refuses_none():
    with pytest.raises(TypeError, match=r"^W is None; expected an array"):
        checks.floating(x=np.zeros(2), W=None)


@pytest.mark.parametrize("dtype", ["int64", "float16", "complex64", "bool"])
def test_floating_takes_float32_and_float64_alone(dtype):
    with pytest.raises(TypeError, match=f"x has dtype {dtype}; expected float32 or float64"):
        checks.floating(x=np.zeros(2, dtype=dtype))


def test_floating_names_the_two_arrays_that_differ():
    with pytest.raises(TypeError) as caught:
        checks.floating(x=np.zeros(2, dtype="float32"), W=np.zeros(2))
    message = str(caught.value)
    assert "x has dtype float32 and W has dtype float64" in message
    assert "x.astype('float64') or W.astype('float32')" in message


@pytest.mark.parametrize(
    ("check", "values", "expected"),
    [
        (checks.positive, [0, -1, 1.0, True, "1", None], "a whole number of at least 1"),
        (checks.rate, [-0.1, 1.0, 2, float("nan"), "half", None], "a number from 0 up to"),
        (checks.not_negative, [-0.1, -math.inf, math.nan, "half", None], "0 or more$"),
        (checks.not_negative, [math.inf, np.float32(math.inf)], "a finite number$"),
    ],
)
def test_numbers_that_are_refused(check, values, expected):
    for value in values:
        with pytest.raises(ValueError, match=f"^n is .*; expected {expected}"):
            check("n", value)


def test_a_small_integer_of_numpys_becomes_pythons_which_does_not_overflow():
    assert type(checks.positive("n", np.uint8(200))) is int
    with pytest.raises(ValueError, match=r"expected a whole number of at least 1 and at most 9$"):
        checks.whole("n", 10, at_least=1, at_most=9)


def test_neither_a_bool_nor_an_endless_int_is_a_number():
    for value in (True, False, 10**400, np.array([0.5]), 1j):
        with pytest.raises(ValueError, match=r"^x is .*; expected a number above 0"):
            checks.number("x", value, above=0.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_gradient_may_have_any_precision(dtype):
    assert checks.gradient(np.zeros((2, 3), dtype), (2, 3)) is np


def test_a_gradient_has_the_shape_of_the_result():
    with pytest.raises(ValueError, match=r"dy has shape \(3,\); expected \(2, 3\)"):
        checks.gradient(np.zeros(3), (2, 3))


def test_a_gradient_holds_no_whole_numbers():
    with pytest.raises(TypeError, match="dy has dtype int64"):
        checks.gradient(np.zeros((2, 3), dtype="int64"), (2, 3))


def test_what_does_not_fit_into_memory_is_named():
    shape = (10**30, 2)
    refused = pytest.raises(MemoryError, match=r"a table would have shape .* GiB")
    with refused, enough_memory("a table", shape):
        np.empty(shape)
    refused = pytest.raises(MemoryError, match="a table would have shape")
    with refused, enough_memory("a table", (10**13,)):
        np.empty(10**13)


def test_a_class_in_place_of_an_object_is_named():
    with pytest.raises(TypeError, match=r"^x is the class dict; expected a list. Write x$"):
        checks.instance("x", dict, list, "Write x")
    with pytest.raises(TypeError, match=r"^x is a dict; expected a list$"):
        checks.instance("x", {}, list)


def test_an_error_says_where_and_keeps_its_kind():
    for kind in (TypeError, ValueError, Narrower):
        with pytest.raises(kind, match=r"^in data, x is 3$"), add_place_to_errors("in data, "):
            raise kind("x is 3")
    with pytest.raises(KeyError, match=r"^'x'$"), add_place_to_errors("in data, "):
        raise KeyError("x")


class Narrower(ValueError):
    """A kind of its own."""
