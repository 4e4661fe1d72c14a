"""Caches whose backward pass runs only once, as in a training step.

Each block's caches are dropped as soon as they are used, so that their memory serves the backward
passes of the blocks below. Otherwise all caches stay until the whole backward pass is over.
"""

from collections.abc import Sequence
from typing import Any

from npformer.core import Context


class OneUse(list[Any]):
    """Caches of a forward pass whose backward pass runs once, and drops each when it is used."""


def take(caches: Sequence[Any], index: int) -> Any:
    """Return one of several caches; of `OneUse`, the last one, so that nobody holds it any more."""
    return caches.pop() if type(caches) is OneUse else caches[index]


def taken_once(caches: Sequence[Any], context: Context) -> Sequence[Any]:
    """Return caches as `OneUse` if the backward pass of this context runs only once."""
    return OneUse(caches) if getattr(context, "backward_once", False) else caches
