"""Settings of two runs that have to agree, so that one can continue what the other began."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any


def check_agreement(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Check that a training continues with the settings it began with.

    `must` has to be the same; a difference in `may` is a warning, because the numbers then agree
    only up to rounding. Raises ValueError, which names each difference.
    """
    must, may = (_in_words(before[part], now[part]) for part in ("must", "may"))
    common = before["schedule"].keys() & now["schedule"].keys()
    factors = ({step: each["schedule"][step] for step in common} for each in (before, now))
    if changes := sorted(differences(*factors), key=lambda change: int(change[0])):
        step, is_now, was = changes[0]
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


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return (name, value now, value before) of what differs; of two mappings, of their entries."""
    found: list[tuple[str, Any, Any]] = []
    for name, value in now.items():
        was = before[name]
        if isinstance(value, Mapping) and isinstance(was, Mapping) and value.keys() == was.keys():
            found += [(f"{name}: {n}", one, other) for n, one, other in differences(was, value)]
        elif value != was:
            found.append((name, value, was))
    return found


def _in_words(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} is {value!r}, and was {was!r}" for name, value, was in differences(before, now)
    ]
