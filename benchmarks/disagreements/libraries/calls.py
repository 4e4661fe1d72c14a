"""What the scripts of all libraries share: read questions, answer them, write the answers.

A script defines calls, which are functions of arrays and settings, and hands over a `Library`.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

CALLS: dict[str, Callable[..., Any]] = {}


def call(function):
    """Register a call under its name."""
    CALLS[function.__name__] = function
    return function


@dataclass
class Library:
    """How a library's arrays are made, read, and differentiated.

    Parameters
    ----------
    array : callable
        ``array(values, dtype)``; `values` is a NumPy array in float64, integers or bool, and
        `dtype` a name, None for what is not floating.
    numpy : callable
        Returns a NumPy array; the dtype is that of the answer.
    gradients : callable or None
        ``gradients(function, arrays, names, dy)`` returns y and the gradients of these arrays.
    compiled : callable or None
        Compiles a function of arrays. It is used for random settings, where only agreement counts
        and compiling each operation alone would take minutes.
    """

    array: Callable[..., Any]
    numpy: Callable[..., Any] = np.asarray
    gradients: Callable[..., Any] | None = None
    compiled: Callable[..., Any] | None = None


def main(library):
    """Answer the questions in a file and write the answers into another."""
    questions = json.loads(Path(sys.argv[1]).read_text())
    answers = {}
    for question in questions:
        if question["call"] not in CALLS:
            continue
        try:
            answers[question["id"]] = answer(library, question)
        except Exception as error:
            lines = str(error).strip().splitlines() or [""]
            answers[question["id"]] = {"error": f"{type(error).__name__}: {lines[0][:200]}"}
            if "--errors" in sys.argv:
                raise
    Path(sys.argv[2]).write_text(json.dumps(answers))


def answer(library, question):
    """Return what a library gives, as lists."""
    function = CALLS[question["call"]]
    dtype = question["dtype"]
    arrays = {key: native(library, value, dtype) for key, value in question["arrays"].items()}
    names = question["gradients"]

    def y_of(**arrays):
        return function(**arrays, **question["settings"])

    if question["random"] and library.compiled is not None:
        y_of = library.compiled(y_of)
    if not names or library.gradients is None or getattr(function, "forward_only", False):
        return {"y": written(library.numpy(y_of(**arrays)))}
    dy = native(library, question["dy"], dtype)
    y, gradients = library.gradients(y_of, arrays, names, dy)
    answers = {f"d{name}": written(library.numpy(g)) for name, g in gradients.items()}
    return {"y": written(library.numpy(y))} | answers


def forward_only(function):
    """Mark a call whose gradient the library does not give."""
    function.forward_only = True
    return function


def native(library, value, dtype):
    """Return an array of the library."""
    array = np.array(value["values"], dtype=value["kind"]).reshape(value["shape"])
    return library.array(array, dtype if value["kind"] == "float64" else None)


def written(array):
    """Return an array as JSON has it."""
    array = np.asarray(array)
    values = array.astype("float64") if array.dtype.kind not in "biu" else array
    return {"dtype": str(array.dtype), "values": values.tolist()}
