"""What libraries are asked: parts, their questions, and the float64 values that npformer gives."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]

Reference = Callable[[Arrays, Mapping[str, Any], np.ndarray | None], Arrays]
"""Returns `y` and, for a gradient `dy` of it, the gradients `dx` and so on, all in float64."""

SETTINGS = 10
"""How many random settings a part is asked about."""


@dataclass(frozen=True)
class Question:
    """Numbers that every library is asked about.

    Parameters
    ----------
    name : str
    text : str
        The question, as the page shows it.
    call : str
        The name of the call in a library's script.
    arrays : dict of arrays
        Floating ones hold numbers of `dtype`, as float64.
    settings : dict
        Plain numbers and texts.
    answers : dict of arrays
        What npformer gives in float64: `y`, and gradients such as `dx`.
    dy : array or None
        The gradient with respect to y, if gradients are asked for.
    dtype : str
        In which libraries compute.
    """

    name: str
    text: str
    call: str
    arrays: Arrays
    settings: dict[str, Any]
    answers: Arrays
    dy: np.ndarray | None = None
    dtype: str = "float32"


@dataclass(frozen=True)
class Part:
    """A part of a Transformer, with questions and random settings."""

    name: str
    title: str
    text: str
    questions: tuple[Question, ...]
    random: tuple[Question, ...] = field(default=())


def ask(
    reference: Reference,
    call: str,
    text: str = "",
    *,
    name: str = "",
    arrays: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
    dy: Any = None,
    gradients: Sequence[str] | None = None,
    dtype: str = "float32",
    refused: type[Exception] | None = None,
) -> Question:
    """Return a question, with its answer by npformer.

    Parameters
    ----------
    reference : callable
    call, text, name, settings, dtype
        As in `Question`; `name` is `call` if it is left out.
    arrays, dy
        Lists or arrays. Floating numbers are rounded to `dtype`, so that all compute with the same.
    gradients : sequence of str, optional
        Which gradients are asked for, such as "dx"; all that npformer gives, if left out.
    refused : type of an exception, optional
        What npformer raises. There are no answers then.
    """
    inputs = {key: round_to(value, dtype) for key, value in arrays.items()}
    settings = dict(settings or {})
    dy = None if dy is None else round_to(dy, dtype)
    with np.errstate(all="ignore"):  # questions about NaN and infinity
        answers = answers_of(reference, inputs, settings, dy, refused)
    answers = {
        key: np.asarray(value, dtype="float64")
        for key, value in answers.items()
        if key == "y" or gradients is None or key in gradients
    }
    return Question(name or call, text, call, inputs, settings, answers, dy, dtype)


def answers_of(
    reference: Reference,
    arrays: Arrays,
    settings: Mapping[str, Any],
    dy: np.ndarray | None,
    refused: type[Exception] | None,
) -> Arrays:
    """Return npformer's answers; none if it refuses the arrays, as expected."""
    if refused is None:
        return reference(arrays, settings, dy)
    try:
        reference(arrays, settings, dy)
    except refused:
        return {}
    raise AssertionError(f"npformer took {settings}; expected {refused.__name__}")


def round_to(value: Any, dtype: str) -> np.ndarray:
    """Return an array whose floating numbers were rounded to `dtype`, and are float64."""
    array = np.asarray(value)
    if array.dtype.kind != "f":
        return array
    if dtype == "bfloat16":  # the upper half of float32
        bits = array.astype("float32").view("uint32")
        bits = bits + 0x7FFF + ((bits >> 16) & 1)  # to the nearest, ties to even
        return (bits & np.uint32(0xFFFF0000)).view("float32").astype("float64")
    return array.astype(dtype).astype("float64")


def pair(forward: Callable[..., Any], backward: Callable[..., Any], names: Sequence[str]) -> Any:
    """Return the reference of a pair of functions; `names` are of the arrays with gradients."""

    def reference(arrays: Arrays, settings: Mapping[str, Any], dy: np.ndarray | None) -> Arrays:
        y, cache = forward(**arrays, **settings)
        answers = {"y": y}
        if dy is not None:
            gradients = backward(dy, cache)
            if not isinstance(gradients, tuple):
                gradients = (gradients,)
            for name, gradient in zip(names, gradients, strict=False):
                answers[f"d{name}"] = gradient
        return answers

    return reference


def constant(y: Any, **gradients: Any) -> Reference:
    """Return a reference that is known without a computation."""
    answers = {"y": np.asarray(y)} | {key: np.asarray(value) for key, value in gradients.items()}
    return lambda arrays, settings, dy: answers


def draw_questions(
    draw: Callable[[np.random.Generator], Question], seed: int
) -> tuple[Question, ...]:
    """Return questions with random settings and arrays."""
    rng = np.random.default_rng(seed)
    return tuple(draw(rng) for _ in range(SETTINGS))
