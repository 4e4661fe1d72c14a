"""What people call the backward function of a forward function, and the derivative of a function.

The derivative of f is a function of the same arguments, f'(x); a backward function takes dy.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

DERIVATIVE = re.compile(r"prime|deriv|grad|^d_?[a-z]", re.IGNORECASE)
"""Names of functions that may be derivatives."""

DERIVATIVE_FORMS = (
    "{stem}_grad",
    "{stem}_gradient",
    "{stem}_prime",
    "{stem}_derivative",
    "{stem}_deriv",
    "d_{stem}",
    "grad_{stem}",
)

BACKWARD_FORMS: tuple[tuple[str, str], ...] = (
    (r"(?P<stem>.+)", "{stem}_backward"),
    (r"(?P<stem>.+)_forward", "{stem}_backward"),
    (r"(?P<before>.*)forward(?P<after>.*)", "{before}backward{after}"),
    (r"(?P<stem>.+)_fwd", "{stem}_bwd"),
    (r"(?P<stem>.+)_fw", "{stem}_bw"),
    (r"(?P<stem>.+)", "backward_{stem}"),
    *((r"(?P<stem>.+)", form) for form in DERIVATIVE_FORMS),
)
"""Names of a forward function, and what its backward function is called."""

GRADIENT_OF_OUTPUT = re.compile(r"^d|^g$|grad|err|delta|upstream", re.IGNORECASE)
"""Names of an argument that may be dy, the gradient of the output."""

TARGETS = re.compile(
    r"^(y|t|gt|d|desired|expected|actual)$|true|target|label|truth|gold|^y_?t$", re.IGNORECASE
)
"""Names of an argument of a loss that may be what is to be predicted."""


def backward_names(name: str) -> Iterator[str]:
    """Yield what the backward function of a function may be called, the usual forms first."""
    for pattern, form in BACKWARD_FORMS:
        match = re.fullmatch(pattern, name)
        if match is not None:
            yield form.format(**match.groupdict())


def looks_like_target(name: str) -> bool:
    """Whether an argument of a loss may be what is to be predicted, by its name."""
    return TARGETS.search(name) is not None


def required_names(function: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments that a function requires; none without a signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # such as a ufunc
        return []
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    empty = inspect.Parameter.empty
    return [p.name for p in parameters if p.default is empty and p.kind not in variable]


def takes_forward_arguments(
    forward: Callable[..., Any], backward: Callable[..., Any], name: str
) -> bool:
    """Whether a backward function takes what the forward function takes, in place of dy.

    It is so for a function that is called a derivative, f_prime(x), and for that of a loss, whose
    second argument is a target: (y_pred, y_true) or, as some write it, (dvalues, y_true).
    `name` is that of the backward function.
    """
    of_forward, of_backward = required_names(forward), required_names(backward)
    if not of_backward or len(of_forward) != len(of_backward):
        return False
    known = [n for n in of_backward if n in of_forward]
    if any(of_forward.index(n) != of_backward.index(n) for n in known):
        return False
    if len(of_backward) == 1:
        is_dy = GRADIENT_OF_OUTPUT.search(of_backward[0]) is not None and not known
        return DERIVATIVE.search(name) is not None and not is_dy
    if of_forward == of_backward:
        return True
    last_names = (of_forward[-1], of_backward[-1])
    return any(map(looks_like_target, last_names))
