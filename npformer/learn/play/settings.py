"""The settings of a run, as the page sends them and as the run's folder keeps them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from npformer.core import checks, describe
from npformer.learn.museum import BUGS
from npformer.learn.play.bundle import read
from npformer.mixers import MIXERS
from npformer.models import EncoderConfig

TASKS: dict[str, dict[str, Any]] = {task["name"]: task for task in json.loads(read("tasks.json"))}
"""What the page says about each task, and its usual settings."""

NAMED = [name for name in TASKS if name != "file"]
"""Tasks that a command line names: a file has a path."""

MOST_RUNS = 4

LIMITS = {"layers": 8, "d_model": 512, "d_ff": 2048, "batch_size": 512, "epochs": 1000}
"""The largest values: beyond them a step takes longer than anybody would watch."""


MOST_SAMPLES = 10_000_000


@dataclass(frozen=True)
class Settings:
    """What is trained, and how.

    Attributes
    ----------
    task : str
        A name in `TASKS`.
    mixers : tuple of str
        One for each layer.
    d_model, n_heads, d_ff, batch_size, epochs, seed : int
    lr, dropout : float
    samples : int, optional
        Training samples, of one text characters; None for all. Few of them are soon memorized.
    activation : str
    norm : {"post", "pre"}
    file, text_column, label_column : str, optional
        For the tasks "file" and "text".
    bug : str, optional
        A name in `npformer.learn.museum.BUGS`, for the first block.
    """

    task: str
    mixers: tuple[str, ...] = ("attention",)
    d_model: int = 64
    n_heads: int = 4
    d_ff: int = 128
    lr: float = 1e-3
    batch_size: int = 32
    epochs: int = 20
    dropout: float = 0.1
    activation: str = "gelu"
    norm: str = "post"
    seed: int = 0
    samples: int | None = None
    file: str | None = None
    text_column: str | None = None
    label_column: str | None = None
    bug: str | None = None

    @classmethod
    def of(cls, values: Any) -> Self:
        """Return checked settings. Raises ValueError or TypeError, which name what is wrong."""
        if not isinstance(values, Mapping):
            raise TypeError(f"settings are {describe(values)}; expected an object with names")
        known = [field.name for field in fields(cls)]
        for name in values:
            checks.choice("a setting", name, known)
        checks.choice("task", values.get("task"), TASKS)
        typed = {k: v for k, v in values.items() if v is not None or getattr(cls, k, 0) is not None}
        mixers = typed.pop("mixers", cls.mixers)
        if not isinstance(mixers, list | tuple) or not 1 <= len(mixers) <= LIMITS["layers"]:
            raise ValueError(
                f"mixers is {mixers!r}; expected a list of 1 to {LIMITS['layers']} names, one for "
                "each layer"
            )
        for mixer in mixers:
            checks.choice("a mixer", mixer, MIXERS)
        limits = {
            "n_heads": LIMITS["d_model"],
            **LIMITS,
            "seed": 2**32 - 1,
            "samples": MOST_SAMPLES,
        }
        for name in filter(typed.__contains__, limits):
            least = int(name != "seed")
            typed[name] = checks.whole(name, typed[name], at_least=least, at_most=limits[name])
        checks.number("lr", typed.get("lr", cls.lr), above=0.0)
        for name in ("file", "text_column", "label_column"):
            checks.instance(name, typed.get(name, ""), str)
        if "bug" in typed:
            checks.choice("bug", typed["bug"], BUGS)
        settings = cls(mixers=tuple(mixers), **typed)
        EncoderConfig(max_len=8, **settings.encoder())  # it checks the rest
        return settings

    def encoder(self) -> dict[str, Any]:
        """Return the settings that belong to an `EncoderConfig`."""
        names = ("d_model", "n_heads", "d_ff", "dropout", "activation", "norm")
        mixer = self.mixers if len(set(self.mixers)) > 1 else self.mixers[0]
        options = {name: getattr(self, name) for name in names}
        return {**options, "n_layers": len(self.mixers), "mixer": mixer}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {**asdict(self), "mixers": list(self.mixers)}
