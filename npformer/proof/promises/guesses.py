"""Settings that stand as plain numbers in an optimizer's code: the usual values, tried in turn."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator

USUAL_VALUES = {
    "eps": (1e-8, 1e-7, 1e-6, 1e-5, 1e-10, 1e-9, 1e-12),
    "beta1": (0.9, 0.95, 0.5),
    "beta2": (0.999, 0.99, 0.98),
    "momentum": (0.9, 0.95, 0.99, 0.5),
    "rho": (0.9, 0.99, 0.95, 0.999),
    "weight_decay": (0.0,),
}
"""Of each setting, the most usual first."""


def guesses(missing: Collection[str]) -> Iterator[dict[str, float]]:
    """Yield values for the settings that were found under no name, the most usual first."""
    for values in itertools.product(*(USUAL_VALUES[name] for name in missing)):
        yield dict(zip(missing, values, strict=True))
