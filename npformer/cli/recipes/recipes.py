"""The tasks of `npformer train`: for each, data, a model and a training that fit together."""

from collections.abc import Callable, Mapping
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
    load: Callable[[str, int], Dataset]  # of a split and a seed
    splits: tuple[str, ...]  # ways to divide the data; the first is the main one
    config: Mapping[str, Any]  # arguments of `EncoderConfig`
    pooling: str
    training: Mapping[str, Any]  # arguments of `fit`; and warmup, a share of all steps

    def model(
        self,
        dataset: Dataset,
        seed: int = 0,
        dtype: str = "float32",
        *,
        pooling: str | None = None,
        output: str = "softmax",
        **changes: Any,
    ) -> SequenceClassifier:
        """Return an untrained model for data that `load` returned; `changes` are of its config."""
        return SequenceClassifier(
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


def _generated(
    name: str, summary: str, make: Callable[[int], Dataset], pooling: str, epochs: int = 10
) -> Recipe:
    return Recipe(
        name,
        summary,
        lambda split, seed: make(seed),
        splits=("generated",),
        config=SMALL | {"activation": "relu"},
        pooling=pooling,
        training=TRAINING | {"epochs": epochs},
    )


DIGITS = Recipe(
    "digits",
    "1797 handwritten digits, 8 rows of 8 pixels, 10 classes",
    lambda split, seed: data.digits(split),
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
        _generated("reverse", "say a sequence backwards", data.reverse, "none"),
        _generated("majority", "which of two symbols is more frequent?", data.majority, "mean"),
        _generated("recall", "look up the values of 8 keys", data.recall, "none", epochs=5),
        _generated("pointer", "which symbol does the last token point to?", data.pointer, "none"),
        _generated("parity", "is the number of ones among 12 bits odd?", data.parity, "mean"),
    )
}
"""By name; ``npformer train --help`` lists them."""
