"""Estimators that say where a setting that they do not take belongs."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from npformer.core.support.other_names import argument_here, suggest_argument
from npformer.models import EncoderConfig
from npformer.training.fit import fit

E = TypeVar("E", bound=type)

SET_BY_ESTIMATORS = ("model", "data", "misplaced", "seed")
"""Arguments of `npformer.fit` that an estimator sets itself."""

ARGUMENTS_OF_FIT = [name for name in signature(fit).parameters if name not in SET_BY_ESTIMATORS]


def explain_unknown_settings(estimator: E) -> E:
    """Make an estimator say which arguments it takes, if it is given another."""
    initialize: Callable[..., None] = estimator.__init__  # type: ignore[misc]
    known = [name for name in signature(initialize).parameters if name != "self"]

    @wraps(initialize)
    def checked(self: Any, *values: Any, **named: Any) -> None:
        unknown = [name for name in named if name not in known]
        if unknown:
            suggestion = _suggest(unknown[0], known)
            raise TypeError(
                f"{type(self).__name__} takes no {unknown[0]!r}; it takes {', '.join(known)}"
                f"{suggestion}"
            )
        initialize(self, *values, **named)

    estimator.__init__ = checked  # type: ignore[misc]
    return estimator


def _suggest(name: str, known: list[str]) -> str:
    """Return where a setting belongs: another name, an argument of `fit`, or the encoder's."""
    if argument_here(name, known) is None:
        of_fit = argument_here(name, ARGUMENTS_OF_FIT)
        if of_fit is not None:
            return f". Did you mean an argument of its method: fit(..., {of_fit}=...)?"
        of_encoder = argument_here(name, EncoderConfig.__dataclass_fields__)
        if of_encoder is not None and "config" in known:
            return f". Did you mean config={{{of_encoder!r}: ...}}?"
    return suggest_argument(name, known)
