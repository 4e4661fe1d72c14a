"""Settings of two runs that have to agree, so that one goes on with what the other began."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any


def check_agreement(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Check that a training goes on with what it began with.

    `must` has to be the same; of `may`, a difference is told by a warning, because the numbers then
    agree up to rounding only. Raises ValueError, which names each difference.
    """
    if problems := _changes(before["must"], now["must"]):
        raise ValueError(
            f"the training cannot go on from the checkpoint: {problems}. Expected what it began "
            "with. Pass the same again, or begin another training in another folder"
        )
    common = before["schedule"].keys() & now["schedule"].keys()
    other = sorted((s for s in common if before["schedule"][s] != now["schedule"][s]), key=int)
    if other:
        was, is_now = (each["schedule"][other[0]] for each in (before, now))
        change = f"the learning rate's factor at step {other[0]} is {is_now!r}, and was {was!r}"
        if before["epochs"] == now["epochs"]:
            raise ValueError(
                f"the training cannot go on from the checkpoint: {change}. Expected the same. Pass "
                "the same schedule, or begin another training in another folder"
            )
        warnings.warn(
            f"{change}: it depends on the number of epochs. Steps from here on take the new one",
            stacklevel=2,
        )
    if changes := _changes(before["may"], now["may"]):
        warnings.warn(
            f"{changes}: the training goes on, and equals one that was not stopped up to rounding, "
            "not bit for bit",
            stacklevel=2,
        )


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return which values differ; "" if none does. Of two mappings it names the entries."""
    found = []
    for name, value in now.items():
        was = before[name]
        if isinstance(value, Mapping) and isinstance(was, Mapping) and value.keys() == was.keys():
            inside = _changes(was, value)
            found += [f"{name}: {inside}"] if inside else []
        elif value != was:
            found.append(f"{name} is {value!r}, and was {was!r}")
    return "; ".join(found)
