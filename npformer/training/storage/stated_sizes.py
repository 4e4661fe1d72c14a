"""Sizes that a model file states, checked against its tensors before anything is made.

What is left, such as d_ff, is bounded by `undrawn_for` while the model is made.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from npformer.core import Parameter, initializers
from npformer.models import Encoder, EncoderConfig

Tensors = Mapping[str, np.ndarray] | Mapping[str, Parameter]

FLOOR = 2**16
"""A setting that no tensor shows may have any size up to here."""

MOST_LAYERS = 1000
"""What a file with fewer tensors may state. Shared layers show in one block only."""


def check_stated(config: Mapping[str, Any], arguments: Mapping[str, Any], tensors: Tensors) -> None:
    """Refuse whole numbers that an `EncoderConfig` could not even check in a short time.

    max_len may be any number: the table of positions is compared by `misfit`.
    """
    shown = max((n for array in tensors.values() for n in array.shape), default=0)
    numbers = sum(array.size for array in tensors.values())
    limits = {"n_layers": max(MOST_LAYERS, len(tensors)), "d_model": max(FLOOR, shown)}
    of_parts = [mapping for mapping in arguments.values() if isinstance(mapping, Mapping)]
    for name, value in chain(*(mapping.items() for mapping in (config, arguments, *of_parts))):
        limit = limits.get(name, max(FLOOR, numbers))
        if type(value) is int and value > limit and name != "max_len":
            raise ValueError(
                f"{name} is {value}; expected at most {limit} for {len(tensors)} tensors with "
                f"{numbers} numbers"
            )


def misfit(kind: type, config: EncoderConfig, tensors: Tensors) -> str:
    """Return how a tensor that every such model has does not fit; "" if all fit."""
    for name, shape in _certain(kind, config):
        if name not in tensors:
            return f"{name} is missing"
        if tensors[name].shape != shape:
            return f"{name} has shape {tensors[name].shape}, expected {shape}"
    return ""


def undrawn_for(tensors: Tensors) -> Any:
    """Return a seed for a model with these tensors: nothing is drawn, and memory is bounded.

    A layer from a plugin may draw more than it keeps, or draw twice what it then shares.
    """
    return initializers.undrawn(4 * sum(array.size for array in tensors.values()) + 2**20)


def _certain(kind: type, config: EncoderConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield names and shapes that show d_model, n_layers and, with a table, max_len."""
    blocks = "blocks" if kind is Encoder else "encoder.blocks"
    first = int(config.starts_normed)  # that block has no such norm
    for i in range(first, 1 if config.share_layers else config.n_layers):
        yield f"{blocks}.{i}.mixer_norm.gamma", (config.d_model,)
    if kind is not Encoder and config.adds_positions:
        embed = getattr(kind, "first", "embed")
        yield f"{embed}.positions.table", (config.max_len, config.d_model)
