"""What a layer's output is called in a step, and its formulas, forward and backward."""

from __future__ import annotations

import json

from npformer.core import Layer
from npformer.learn.play.bundle import read

WORDS = json.loads(read("formulas.json"))
"""By the last part of a linear map's name its letters: its output, as a phrase, its input, its
weights. By class a title and two formulas, and the same for the arrays inside an attention."""


def letter_of(layer: str, parameter: str) -> str:
    """Return what a parameter is called in the formulas: weight and bias of a linear map have W, b.

    `layer` and `parameter` are their names.
    """
    W: str = WORDS["titles"].get(layer.rpartition(".")[2], ["", "", "", "W"])[3]
    letters = {"weight": W, "bias": W.replace("W", "b")}
    return letters.get(parameter, f" {parameter}")


def words_of(name: str, layer: Layer) -> tuple[str, str, str, str]:
    """Return the title of a layer's output, and its formulas forward and backward."""
    kind = type(layer)
    title, forward = kind.__name__, (kind.__doc__ or "").strip().partition("\n")[0]
    backward = "the gradients of its input and of its weights, from dy"
    if known := [base.__name__ for base in kind.__mro__ if base.__name__ in WORDS["formulas"]]:
        title, forward, backward = WORDS["formulas"][known[0]]
    last = name.rpartition(".")[2] if name != "output" else "classify"  # of a model that writes
    title, description, x, W = WORDS["titles"].get(last, [title, kind.__name__, "x", "W"])
    letters = {"y": title if len(title) == 1 else "y", "x": x, "W": W, "b": W.replace("W", "b")}
    for letter, symbol in letters.items():
        forward = forward.replace(f"{{{letter}}}", symbol)
        backward = backward.replace(f"{{{letter}}}", symbol)
    return title, description, forward, backward
