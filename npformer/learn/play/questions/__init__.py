"""What a page can ask a run: a function for each question, ``(now, **arguments) -> answer``.

Answers are plain values, ready for JSON. Questions work on a copy of the model.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from npformer.core import checks
from npformer.learn.play.played import export
from npformer.learn.play.questions.reading import digit, edit, sentence
from npformer.learn.play.questions.step import predictions, samples, step
from npformer.learn.play.questions.weight import weight
from npformer.learn.play.questions.writing import translate, write

QUESTIONS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        samples,
        predictions,
        step,
        weight,
        digit,
        sentence,
        edit,
        write,
        translate,
        export,
    )
}


def ask(now: Any, /, question: Any = None, **arguments: Any) -> Any:
    """Return the answer to a question; ValueError names what is unknown."""
    checks.choice("question", question, QUESTIONS)
    takes = [name for name in inspect.signature(QUESTIONS[question]).parameters if name != "now"]
    for name in arguments:
        checks.choice(f"an argument of {question}", name, takes)
    return QUESTIONS[question](now, **arguments)
