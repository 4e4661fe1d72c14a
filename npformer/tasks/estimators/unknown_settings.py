"""Estimators that say where a setting that they do not take belongs."""

from collections.abc import Callable
from inspect import signature
from typing import TypeVar

from npformer.core.support.explained_errors import refuse_unknown_arguments
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
    estimator.__init__ = refuse_unknown_arguments(initialize, _suggest)  # type: ignore[misc]
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
