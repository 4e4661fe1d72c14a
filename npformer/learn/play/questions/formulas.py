"""What a layer is called in a step, and its formulas, forward and backward."""

from __future__ import annotations

import json

from npformer.core import Layer
from npformer.learn.play.bundle import read

WORDS = json.loads(read("formulas.json"))
"""Titles of linear maps by the last part of their names; by class, a title and two formulas."""


def words_of(name: str, layer: Layer) -> tuple[str, str, str]:
    """Return the title of a layer, and its formulas forward and backward."""
    kind = type(layer)
    title, forward = kind.__name__, (kind.__doc__ or "").strip().partition("\n")[0]
    backward = "the gradients of its input and of its weights, from dy"
    if known := [each.__name__ for each in kind.__mro__ if each.__name__ in WORDS["formulas"]]:
        title, forward, backward = WORDS["formulas"][known[0]]
    if name == "output":  # of a model that writes
        title = "output"
    elif name.endswith(".output"):
        title = "W_O"
    return WORDS["titles"].get(name.rpartition(".")[2], title), forward, backward
