"""Why cells differ: `reasons.toml`, and npformer's expressions for a library's numbers."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.disagreements.question import Part, Question
from npformer import functional as F

REASONS = Path(__file__).with_name("reasons.toml")


@dataclass(frozen=True)
class Reason:
    """Why some libraries' answers to some questions differ from npformer's.

    Parameters
    ----------
    questions, libraries : list of str
        Names.
    because : str
    npformer : str
        An expression that gives the libraries' y, or "". Its names are the question's arrays and
        those in `MODULES`.
    """

    questions: list[str]
    libraries: list[str]
    because: str
    npformer: str = ""


MODULES = {"F": F, "np": np}


@cache
def all_reasons() -> dict[str, list[dict[str, Any]]]:
    """Return the reasons of all parts, as the file has them."""
    return tomllib.loads(REASONS.read_text("utf-8"))


def reasons_of(part: Part) -> list[Reason]:
    """Return the reasons of a part, in the order of their numbers on the page."""
    return [Reason(**table) for table in all_reasons().get(part.name, [])]


def reason_number(reasons: list[Reason], question: str, library: str) -> int | None:
    """Return the number of the first reason for a cell; None if there is none."""
    for number, reason in enumerate(reasons, start=1):
        if question in reason.questions and library in reason.libraries:
            return number
    return None


def evaluate(expression: str, question: Question) -> np.ndarray:
    """Return what an expression of npformer gives for a question's arrays."""
    names = MODULES | question.arrays
    with np.errstate(all="ignore"):
        return np.asarray(eval(expression, dict(names)), dtype="float64")
