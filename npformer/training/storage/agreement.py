"""Settings of two runs that have to agree, so that one can continue what the other began."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Difference = tuple[str, Any, Any]
"""A name, its value now, and its value before."""


def check_agreement(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Check that a training continues with the settings it began with.

    `must` has to be the same; a difference in `may` is a warning, because the numbers then agree
    only up to rounding. Raises ValueError, which names each difference.
    """
    must, may = (
        _describe_differences(differences(before[kind], now[kind])) for kind in ("must", "may")
    )
    factors = {k: factor for k, factor in now["schedule"].items() if k in before["schedule"]}
    if first := next(differences(before["schedule"], factors), None):
        step, is_now, was = first
        change = f"the learning rate's factor at step {step} is {is_now!r}, and was {was!r}"
        if before["epochs"] == now["epochs"]:
            must += [change]
        else:
            warnings.warn(
                f"{change}: it depends on the number of epochs. From here on steps take the new "
                "one",
                stacklevel=2,
            )
    if must:
        raise ValueError(
            f"the training cannot go on from the checkpoint: {'; '.join(must)}. Expected what it "
            "began with. Pass the same again, or begin another training in another folder"
        )
    if may:
        warnings.warn(
            f"{'; '.join(may)}: the training goes on, and equals an uninterrupted one up to "
            "rounding, not bit for bit",
            stacklevel=2,
        )


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield what differs; of two mappings, what differs among their entries."""
    for name, value in now.items():
        was = before[name]
        if isinstance(value, Mapping) and isinstance(was, Mapping) and value.keys() == was.keys():
            yield from ((f"{name}: {n}", one, other) for n, one, other in differences(was, value))
        elif value != was:
            yield name, value, was


def _describe_differences(pairs: Iterable[Difference]) -> list[str]:
    return [f"{name} is {value!r}, and was {was!r}" for name, value, was in pairs]
