"""What a page can ask a run: a function for each question, ``(now, **arguments) -> answer``.

Answers are plain values, ready for JSON. Questions work on a copy of the model.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from npformer.core import checks

QUESTIONS = (
    *("samples", "step", "weight", "digit", "sentence", "edit", "write", "translate"),
    *("gradcheck", "export"),
)


def named(question: str) -> Callable[..., Any]:
    """Return the function that answers a question."""
    checks.choice("question", question, QUESTIONS)
    module = importlib.import_module(f"npformer.learn.play.questions.{question}")
    found: Callable[..., Any] = getattr(module, question)
    return _checked(found, question)


def _checked(function: Callable[..., Any], question: str) -> Callable[..., Any]:
    """Return a function that names unknown arguments in its error."""
    takes = [name for name in inspect.signature(function).parameters if name != "now"]

    def asked(now: Any, **arguments: Any) -> Any:
        for name in arguments:
            checks.choice(f"an argument of {question}", name, takes)
        return function(now, **arguments)

    return asked
