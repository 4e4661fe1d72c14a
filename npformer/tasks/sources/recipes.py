"""Named tasks: for each, data, a model and a training that fit together."""

import importlib.resources
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npformer import data
from npformer.data import Dataset
from npformer.models import EncoderConfig
from npformer.models.trainable import SequenceClassifier
from npformer.tasks.sources.file_kinds import is_generated

TABLE = tomllib.loads(
    (importlib.resources.files("npformer.tasks.sources") / "recipes.toml").read_text("utf-8")
)


@dataclass(frozen=True)
class Recipe:
    """A task: a row of ``recipes.toml``."""

    name: str  # of a function in `npformer.data`
    summary: str
    splits: Mapping[str, str]  # ways to divide the data; the first is the main one
    config: Mapping[str, Any]
    pooling: str
    training: Mapping[str, Any]
    tokens: Sequence[str] | None = None  # what ids are called, where they are not plain numbers
    classes: Sequence[str] | None = None

    def load(self, split: str, seed: int, dtype: str = "float32") -> Dataset:
        """Return the data of a split; `dtype` is that of feature vectors."""
        if self.name == "digits":
            return data.digits(split, dtype)
        return getattr(data, self.name)(seed)  # type: ignore[no-any-return]

    def model(
        self, dataset: Dataset, seed: int = 0, dtype: str = "float32", **changes: Any
    ) -> SequenceClassifier:
        """Return an untrained model for data that `load` returned.

        `changes` are of its configuration, its pooling, its output, and its class, `kind`.
        """
        kind: type[SequenceClassifier] = changes.pop("kind", SequenceClassifier)
        pooling = changes.pop("pooling", self.pooling)
        output = changes.pop("output", "softmax")
        settings = {"max_len": dataset.length, **self.config, **changes}
        return kind(
            EncoderConfig(**settings),
            dataset.n_classes,
            vocab_size=dataset.vocab_size,
            n_features=dataset.n_features,
            pooling=pooling,
            output=output,
            seed=seed,
            dtype=dtype,
        )


LETTERS = [*"abcdefgh"]

TOKENS = {
    "reverse": LETTERS,
    "pointer": [*LETTERS, *(f"@{i}" for i in range(16))],
    "recall": [f"{key}={letter}" for key in range(128) for letter in LETTERS]
    + [f"{key}?" for key in range(128)],
}
"""Names of token ids in generated tasks whose classes are letters."""


def _recipe(name: str, row: Mapping[str, Any]) -> Recipe:
    """Return the recipe of a row of the table."""
    defaults = TABLE["usual"]
    return Recipe(
        name=name,
        summary=row["summary"],
        splits=row.get("splits", defaults["splits"]),
        config=defaults["config"] | row.get("config", {}),
        pooling=row["pooling"],
        training=defaults["training"] | row.get("training", {}),
        tokens=TOKENS.get(name),
        classes=LETTERS if name in TOKENS else None,
    )


RECIPES = {name: _recipe(name, row) for name, row in TABLE["tasks"].items()}
"""By name."""

OPTIONS_OF: dict[str, dict[str, Any]] = TABLE["files"]
"""Options of `npformer train` for data that come with the package, by name."""


def usual_options(task: str, mixers: Sequence[str]) -> dict[str, Any]:
    """Return the options that fit a file of the package, or generated pairs, and some mixers."""
    is_embedded = Path(task).parent == Path(str(importlib.resources.files(data)))
    name = Path(task).name.partition(".")[0] if is_embedded else "generated" * is_generated(task)
    options = dict(OPTIONS_OF.get(name, {}))
    if {*mixers} != {"attention"} and options.get("positions") == "rotary":
        del options["positions"]  # only attention turns queries and keys
    return options
