"""Weight decay of some parameters and not of others."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from npformer.core import Array, checks, describe

NORMS_AND_BIASES = (
    "*.bias",
    "*.b[12]",
    "*.c[12]",
    "*.gamma",
    "*.beta",
    "*.skip",
    "*.log_step",
    "*.log_decay",
    "*.frequency",
)
"""Patterns for the names of biases, of the scales and shifts of layer norms, and of the parameters
of long convolutions and state spaces that are not matrices: 0 is not a neutral value for them."""


def fits_any(name: str, patterns: Sequence[str]) -> bool:
    """Return whether a name matches one of some patterns, as in `fnmatch`."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def check_patterns(patterns: Any, parameters: Mapping[str, Array]) -> tuple[str, ...]:
    """Return the patterns of ``no_decay``, after checking that some parameter matches."""
    if isinstance(patterns, str) or not isinstance(patterns, Sequence):
        raise TypeError(
            f"no_decay is {describe(patterns)}; expected a list of patterns, such as ['*.bias'], "
            "or npformer.optim.NORMS_AND_BIASES"
        )
    for pattern in patterns:
        checks.text("a pattern in no_decay", pattern)
    no_decay = tuple(patterns)
    if no_decay and not any(fits_any(name, no_decay) for name in parameters):
        raise ValueError(
            f"no_decay is {list(no_decay)}, and no parameter matches; expected patterns for names "
            f"such as {next(iter(parameters))!r}"
        )
    return no_decay
