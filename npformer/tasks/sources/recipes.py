"""Named tasks: for each, data, a model and a training that fit together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npformer import data
from npformer.data import Dataset
from npformer.models import EncoderConfig
from npformer.training.trainable import SequenceClassifier


@dataclass(frozen=True)
class Recipe:
    """A task."""

    name: str
    summary: str
    make: Callable[[str, int, str], Dataset]  # of a split, a seed and a dtype
    splits: tuple[str, ...]  # ways to divide the data; the first is the main one
    config: Mapping[str, Any]  # arguments of `EncoderConfig`
    pooling: str
    training: Mapping[str, Any]  # arguments of `fit`; and warmup, a share of all steps
    tokens: Sequence[str] | None = None  # what ids are called, where they are not plain numbers
    classes: Sequence[str] | None = None

    def load(self, split: str, seed: int, dtype: str = "float32") -> Dataset:
        """Return the data of a split; `dtype` is that of feature vectors."""
        return self.make(split, seed, dtype)

    def model(
        self,
        dataset: Dataset,
        seed: int = 0,
        dtype: str = "float32",
        *,
        pooling: str | None = None,
        output: str = "softmax",
        kind: type[SequenceClassifier] = SequenceClassifier,
        **changes: Any,
    ) -> SequenceClassifier:
        """Return an untrained model for data that `load` returned; `changes` are of its config."""
        return kind(
            EncoderConfig(**{"max_len": dataset.length, **self.config, **changes}),
            dataset.n_classes,
            vocab_size=dataset.vocab_size,
            n_features=dataset.n_features,
            pooling=self.pooling if pooling is None else pooling,
            output=output,
            seed=seed,
            dtype=dtype,
        )


SMALL = {"d_model": 32, "n_layers": 2, "n_heads": 2, "d_ff": 128, "positions": "learned"}

TRAINING = {
    "epochs": 10,
    "batch_size": 64,
    "lr": 3e-3,
    "warmup": 0.1,
    "weight_decay": 0.0,
    "label_smoothing": 0.0,
    "clip_norm": 1.0,
}


LETTERS = [*"abcdefgh"]

TOKENS = {
    "reverse": LETTERS,
    "pointer": [*LETTERS, *(f"@{i}" for i in range(16))],
    "recall": [f"{key}={letter}" for key in range(128) for letter in LETTERS]
    + [f"{key}?" for key in range(128)],
}
"""Names of token ids in generated tasks whose classes are letters."""


def _generate(
    name: str, summary: str, make: Callable[[int], Dataset], pooling: str, epochs: int = 10
) -> Recipe:
    return Recipe(
        name,
        summary,
        lambda split, seed, dtype: make(seed),
        splits=("generated",),
        config=SMALL | {"activation": "relu"},
        pooling=pooling,
        training=TRAINING | {"epochs": epochs},
        tokens=TOKENS.get(name),
        classes=LETTERS if name in TOKENS else None,
    )


DIGITS = Recipe(
    "digits",
    "1797 handwritten digits, 8 rows of 8 pixels, 10 classes",
    lambda split, seed, dtype: data.digits(split, dtype),
    splits=data.SPLITS,
    config=SMALL | {"d_model": 64, "n_heads": 4, "dropout": 0.2},
    pooling="flatten",  # what a row of pixels means depends on where it is
    training=TRAINING
    | {"epochs": 40, "batch_size": 32, "lr": 1e-3, "warmup": 0.05}
    | {"weight_decay": 0.01, "label_smoothing": 0.1},
)

RECIPES = {
    recipe.name: recipe
    for recipe in (
        DIGITS,
        _generate("reverse", "say a sequence backwards", data.reverse, "none"),
        _generate("majority", "which of two symbols is more frequent?", data.majority, "mean"),
        _generate("recall", "look up the values of 8 keys", data.recall, "none", epochs=5),
        _generate("pointer", "which symbol does the last token point to?", data.pointer, "none"),
        _generate("parity", "is the number of ones among 12 bits odd?", data.parity, "mean"),
    )
}
"""By name; ``npformer train --help`` lists them."""
