import dataclasses
from functools import partial

import numpy as np
import pytest

import npformer as nf
from npformer.core import Padding
from npformer.engine import EngineContext
from npformer.engine.context import engine_context

MASK = np.arange(3) < np.array([[3], [1]])
OTHER = np.arange(5) < np.array([[2], [5]])
TYPES, OTHER_TYPES = MASK.astype("int64"), OTHER.astype("int64")
FULL = {"mask": MASK, "types": TYPES, "memory_mask": OTHER, "memory_types": OTHER_TYPES}
FIELDS = ("mask", "types", "memory_mask", "memory_types")


@pytest.fixture(params=[nf.Context, EngineContext])
def context(request):
    return request.param(True, np.random.default_rng(0), keep=False, **FULL)


def assert_holds(context, *expected):
    """Assert that a context has these very masks and types, or None."""
    assert [id(getattr(context, name)) for name in FIELDS] == [id(one) for one in expected]


def test_each_input_has_a_mask_and_types_of_its_own(context):
    assert_holds(context, MASK, TYPES, OTHER, OTHER_TYPES)
    assert context.padding.mask is MASK
    assert context.memory_padding.mask is OTHER


def test_a_padding_takes_the_place_of_a_mask():
    padding = Padding(OTHER)
    context = nf.Context(memory_padding=padding)
    assert context.memory_padding is padding
    assert_holds(context, None, None, OTHER, None)


def test_a_mask_is_no_padding():
    with pytest.raises(TypeError, match="memory_padding is an ndarray; expected a Padding"):
        nf.Context(memory_padding=OTHER, memory_mask=OTHER)


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("cleared", [False, True])
def test_replace_changes_one_and_keeps_the_others(context, name, cleared):
    new = None if cleared else FULL[name].copy()
    changed = dataclasses.replace(context, **{name: new})
    assert_holds(changed, *(new if other == name else FULL[other] for other in FIELDS))
    assert type(changed) is type(context)
    assert (changed.training, changed.keep) == (True, False)
    assert changed.generator is context.generator


def test_replace_takes_paddings_too(context):
    padding = Padding(OTHER.copy())
    assert dataclasses.replace(context, memory_padding=padding).memory_padding is padding
    assert_holds(dataclasses.replace(context, memory_padding=None), MASK, TYPES, None, OTHER_TYPES)
    assert dataclasses.replace(context, training=False).memory_padding is context.memory_padding


@pytest.mark.parametrize("name", FIELDS)
def test_without_masks_there_is_nothing_about_sequences(context, name):
    assert_holds(context.drop_mask(), None, None, None, None)
    assert context.drop_mask().generator is context.generator
    assert_holds(nf.Context(**{name: FULL[name]}).drop_mask(), None, None, None, None)


def test_a_context_that_says_nothing_about_sequences_is_returned_as_it_is():
    context = nf.Context(training=True)
    assert context.drop_mask() is context


def test_to_layers_of_the_memory_the_memory_is_the_first_input(context):
    memory_context = context.for_memory()
    assert_holds(memory_context, OTHER, OTHER_TYPES, None, None)
    assert memory_context.padding is context.memory_padding  # with the lengths that it found
    assert type(memory_context) is type(context)
    assert (memory_context.training, memory_context.keep) == (True, False)
    assert memory_context.generator is context.generator
    assert_holds(memory_context.for_memory(), None, None, None, None)


def test_the_engine_takes_over_both_and_shares_the_generator_that_is_made():
    context = nf.Context(True, partial(np.random.default_rng, 0), **FULL)
    fast_context = engine_context(context)
    assert_holds(fast_context, MASK, TYPES, OTHER, OTHER_TYPES)
    for name in ("generator", "padding", "memory_padding"):
        assert getattr(fast_context, name) is getattr(context, name)


@pytest.mark.parametrize(
    "side",
    [
        "",
        "memory_",
    ],
)
@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("mask", [[True]], TypeError, "mask is a list; expected an array"),
        ("mask", MASK * 1, TypeError, "mask has dtype int64; expected a boolean array"),
        ("mask", MASK[0], ValueError, r"mask has shape \(3,\); expected \(batch, length\)"),
        ("types", [[0]], TypeError, "types is a list; expected an array"),
        ("types", TYPES[0], ValueError, r"types has shape \(3,\); expected \(batch, length\)"),
        ("types", MASK, TypeError, "types has dtype bool; expected whole numbers"),
        ("padding", MASK, TypeError, "padding is an ndarray; expected a Padding"),
    ],
)
def test_wrong_values_are_refused_by_name(side, name, value, error, message):
    for make in (nf.Context, EngineContext):
        with pytest.raises(error, match=f"^{side}{message}"):
            make(**{f"{side}{name}": value})


def test_rows_are_grouped_by_length():
    mask = np.arange(4) < np.array([4, 2, 0, 2, 1])[:, None]
    groups = [(length, rows.tolist()) for length, rows in Padding(mask).rows_of_length()]
    assert groups == [(1, [4]), (2, [1, 3]), (4, [0])]


def test_rows_of_padding_alone_are_in_no_group():
    assert Padding(np.zeros((3, 4), dtype=bool)).rows_of_length() == []


def test_rows_are_grouped_once():
    padding = Padding(np.ones((3, 4), dtype=bool))
    assert padding.rows_of_length() is padding.rows_of_length()
