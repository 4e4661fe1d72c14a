"""Check that a model has the layers that its configuration makes, so that it can be rebuilt."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from npformer.core import Layer, Parameter, checks, describe, same_definition, to_numpy
from npformer.layers import Dropout
from npformer.mixers import Attention
from npformer.models.losses import Classification, Loss

TRAINING_ONLY: list[tuple[type, str]] = [
    (Dropout, "rate"),
    (Attention, "memory"),
    (Classification, "label_smoothing"),
    (Classification, "class_weight"),
]
"""Settings that may differ from the configuration: they have no effect at evaluation."""

CONFIG_MAKES = ", and the model's configuration makes"


def check_rebuilt(model: Layer, rebuilt: Layer) -> None:
    """Check that a model equals the one rebuilt from its configuration, up to parameter values."""
    for difference in _differences("", model, rebuilt, set()):
        raise ValueError(
            f"{difference}. The file would be loaded as another model. Two ways out: register the "
            "layer and name it in the configuration (docs/extending.md), as in "
            "EncoderConfig(activation='mine'); or save model.parameters() with "
            "safetensors.numpy.save_file, and build the model by your own code"
        )
    if problems := checks.misfits(model.named_parameters(), rebuilt.named_parameters()):
        raise ValueError(
            "the model's parameters are not those that its configuration makes, so the file could "
            f"not be loaded: {problems}. Build the model with these sizes; to share a block among "
            "layers, say so in the configuration: EncoderConfig(share_layers=True)"
        )


def _differences(path: str, ours: Any, theirs: Any, seen: set[tuple[int, int]]) -> Iterator[str]:
    """Yield a description of each difference between a part of a model and the rebuilt part."""
    if (id(ours), id(theirs)) in seen:  # a shared block
        return
    seen.add((id(ours), id(theirs)))
    if not same_definition(type(ours), type(theirs)):
        yield f"{_is_not_that_of_config(path, ours, theirs)}; expected the same"
    elif isinstance(theirs, Layer | Loss):
        yield from _differences_of_attributes(path, ours, theirs, seen)
    elif isinstance(theirs, list | tuple):
        if len(ours) != len(theirs):
            yield f"{_name_of_part(path)} has {len(ours)} parts{CONFIG_MAKES} {len(theirs)}"
        for i, (one, other) in enumerate(zip(ours, theirs, strict=False)):
            yield from _differences(f"{path}.{i}", one, other, seen)
    elif not isinstance(theirs, Parameter) and not _equal(ours, theirs):
        yield (
            f"{_is_not_that_of_config(path, ours, theirs)}; expected the same. "
            "(Values that training changes belong in a Parameter, which is saved; a name that "
            "begins with _ is not compared)"
        )


def _differences_of_attributes(
    path: str, ours: Any, theirs: Any, seen: set[tuple[int, int]]
) -> Iterator[str]:
    """Yield a description of each difference between the attributes of two layers or losses."""
    our_attributes, their_attributes = vars(ours), vars(theirs)
    not_compared = [name for kind, name in TRAINING_ONLY if isinstance(theirs, kind)]
    for name in {**their_attributes, **our_attributes}:
        below = f"{path}.{name}" if path else name
        if name not in their_attributes:
            # A user may store anything on a layer, but may not replace a method.
            if hasattr(type(theirs), name):
                kind = type(theirs).__name__
                yield f"{_name_of_part(path)} overrides {name}; expected that of {kind}"
        elif name not in our_attributes:
            yield f"{below} is gone{CONFIG_MAKES} {describe(their_attributes[name])}"
        elif not name.startswith("_") and name not in not_compared:
            yield from _differences(below, our_attributes[name], their_attributes[name], seen)


def _name_of_part(path: str) -> str:
    """Return what errors call the part of a model at a path."""
    return path or "the model"


def _is_not_that_of_config(path: str, ours: Any, theirs: Any) -> str:
    """Return the beginning of an error about a part that the configuration makes otherwise."""
    return f"{_name_of_part(path)} is {describe(ours)}{CONFIG_MAKES} {describe(theirs)}"


def _equal(one: Any, other: Any) -> bool:
    """Return whether two settings are equal; settings that cannot be compared count as equal."""
    if hasattr(one, "__qualname__"):  # functions and classes
        return same_definition(one, other)
    equality: Any = type(one).__eq__
    if equality is object.__eq__:  # by identity, and these are different objects
        return True
    if hasattr(one, "shape") and hasattr(one, "dtype"):
        ours, theirs = to_numpy(one), to_numpy(other)
        return np.array_equal(ours, theirs, equal_nan=ours.dtype.kind in "fc")
    try:
        return bool(one == other)
    except (TypeError, ValueError):  # they contain arrays
        return True
