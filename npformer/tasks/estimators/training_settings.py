"""Training settings, filled in for the number of samples."""

from collections.abc import Mapping
from typing import Any

from npformer.core import checks
from npformer.optim import schedule_for


def filled(settings: Mapping[str, Any], n_samples: int) -> dict[str, Any]:
    """Return arguments of `npformer.fit`.

    A schedule given by name is as long as the training; ``warmup``, a share of all steps, is for
    the schedule and is not passed to `fit`. With an optimizer, lr and schedule are left out.
    """
    arguments = dict(settings)
    epochs = checks.positive("epochs", arguments.get("epochs", 10))
    batch_size = checks.positive("batch_size", arguments.get("batch_size", 32))
    steps = epochs * -(-n_samples // (batch_size * arguments.get("accumulate", 1)))
    warmup = arguments.pop("warmup", 0.0)
    checks.rate("warmup", warmup)
    if arguments.get("optimizer") is not None:
        return {n: v for n, v in arguments.items() if n not in ("lr", "schedule", "weight_decay")}
    if steps == 1:
        arguments.pop("schedule", None)  # in one step, nothing rises or falls
    if isinstance(arguments.get("schedule"), str):
        arguments["schedule"] = schedule_for(arguments["schedule"], steps, int(warmup * steps))
    return arguments


def check_without_validation(training: Mapping[str, Any]) -> None:
    """Raise ValueError if an argument of `fit` needs the validation data that are missing."""
    for name in ("patience", "metric"):
        if training.get(name) is not None:
            raise ValueError(
                f"{name} is {training[name]!r} and there is no validation; expected some, because "
                "it decides which epoch is better: validation=0.1, or --validation 0.1 on the "
                "command line"
            )
