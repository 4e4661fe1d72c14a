"""Tasks that train at one word: data, model and training that fit together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from npformer import data
from npformer.classifier import SequenceClassifier
from npformer.data import Dataset
from npformer.models import EncoderConfig


@dataclass(frozen=True)
class Recipe:
    """What `npformer train TASK` does.

    Attributes
    ----------
    name : str
    summary : str
        One line.
    load : callable
        (split, seed) -> Dataset.
    splits : tuple of str
        Ways to part the data into training and test; the first is the main one.
    config : mapping
        Fields of `EncoderConfig` that differ from its defaults.
    pooling : str
        As in `SequenceClassifier`.
    training : mapping
        epochs, batch_size, lr, warmup (a share of all steps), weight_decay, label_smoothing,
        clip_norm.
    """

    name: str
    summary: str
    load: Callable[[str, int], Dataset]
    splits: tuple[str, ...] = ("generated",)
    config: Mapping[str, Any] = field(default_factory=dict)
    pooling: str = "mean"
    training: Mapping[str, Any] = field(default_factory=dict)

    def model(
        self, dataset: Dataset, seed: int = 0, dtype: str = "float32", **changes: Any
    ) -> SequenceClassifier:
        """Return an untrained model for this task.

        Parameters
        ----------
        dataset : Dataset
            From `load`.
        seed : int
        dtype : {"float32", "float64"}
        **changes
            Fields of `EncoderConfig` to set otherwise; and ``pooling`` and ``output``.
        """
        arguments = {"pooling": self.pooling}
        arguments |= {name: changes.pop(name) for name in ("pooling", "output") if name in changes}
        config = EncoderConfig(**{"max_len": dataset.length, **self.config, **changes})
        return SequenceClassifier(
            config,
            dataset.n_classes,
            vocab_size=dataset.vocab_size,
            n_features=dataset.n_features,
            seed=seed,
            dtype=dtype,
            **arguments,
        )


_SMALL = {
    "d_model": 32,
    "n_layers": 2,
    "n_heads": 2,
    "d_ff": 128,
    "activation": "relu",
    "positions": "learned",
}
_STEPS_2500 = {
    "epochs": 10,
    "batch_size": 64,
    "lr": 3e-3,
    "warmup": 0.1,
    "weight_decay": 0.0,
    "label_smoothing": 0.0,
    "clip_norm": 1.0,
}


def _generated(
    name: str, summary: str, make: Callable[..., Dataset], pooling: str, **training: Any
) -> Recipe:
    return Recipe(
        name,
        summary,
        lambda split, seed: make(seed),
        config=_SMALL,
        pooling=pooling,
        training={**_STEPS_2500, **training},
    )


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "digits",
            "1797 handwritten digits, 8 rows of 8 pixels, 10 classes",
            lambda split, seed: data.digits(split),
            splits=data.SPLITS,
            config={
                "d_model": 64,
                "n_layers": 2,
                "n_heads": 4,
                "d_ff": 128,
                "dropout": 0.2,
                "positions": "learned",
            },
            pooling="flatten",  # a row of pixels means what it means by its place
            training={
                "epochs": 40,
                "batch_size": 32,
                "lr": 1e-3,
                "warmup": 0.05,
                "weight_decay": 0.01,
                "label_smoothing": 0.1,
                "clip_norm": 1.0,
            },
        ),
        _generated("reverse", "say a sequence backwards", data.reverse, "none"),
        _generated("majority", "which of two symbols is more frequent?", data.majority, "mean"),
        _generated("recall", "look up the values of 8 keys", data.recall, "none", epochs=5),
        _generated(
            "pointer", "which symbol stands where the last token points?", data.pointer, "none"
        ),
        _generated("parity", "is the number of ones among 12 bits odd?", data.parity, "mean"),
    )
}
"""What ``npformer train`` takes."""
