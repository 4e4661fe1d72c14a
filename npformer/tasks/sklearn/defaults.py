"""What "auto" stands for, given the kind of the inputs and the number n of training samples."""

from dataclasses import asdict
from typing import Any

import numpy as np

from npformer.models import EncoderConfig
from npformer.models.config import RATES
from npformer.tasks.estimators import text_defaults
from npformer.tasks.estimators.fitting_mixers import usual_pooling

AUTO = "auto"

ONE_BATCH = 64
"""Up to this many samples are one batch, in float64 and without dropout: only the initial weights
are left to chance, and a sample of weight 2 is the same as two samples."""

SMALLEST, LARGEST = 32, 256  # samples in a step
STEPS = 4000  # in a training, roughly
FEWEST, MOST = 10, 100  # epochs
ENOUGH = 2000  # samples to hold some of them out
STEPS_OF_FEW_TEXTS, MOST_OF_FEW_TEXTS = 1000, 60  # fewest steps, and most epochs for them

ENCODERS: dict[str, dict[str, Any]] = {
    "tokens": {
        "d_model": 64,
        "n_layers": 2,
        "n_heads": 4,
        "d_ff": 128,
        "dropout": 0.1,
        "norm": "pre",
        "positions": "sinusoidal",  # distances between tokens are learned quickly
    },
    "series": {
        "d_model": 64,
        "n_layers": 2,
        "n_heads": 4,
        "d_ff": 128,
        "dropout": 0.1,
        "norm": "post",
        "positions": "learned",  # columns of a table have no neighbours
    },
    "text": text_defaults.CONFIG,
}


def many(n: int) -> int:
    """Return n, but always more than one batch: more samples are to come."""
    return max(n, ONE_BATCH + 1)


def encoder_for(kind: str, n: int) -> dict[str, Any]:
    """Return the settings of an encoder, and its dtype."""
    settings = {**asdict(EncoderConfig()), **ENCODERS[kind], "dtype": "float32"}
    if n > ONE_BATCH:
        return settings
    return {**settings, **dict.fromkeys(RATES, 0.0), "dtype": "float64"}


def pooling_for(kind: str, same_length: bool, config: EncoderConfig) -> str:
    """Return "flatten" for series of one length, whose places have a meaning; else the usual."""
    return "flatten" if kind == "series" and same_length else usual_pooling(config)


def holds_out(kind: str, n: int) -> bool:
    """Return whether some samples decide when to stop.

    A few are a worse judge than the training loss, and training misses them. For texts, needless
    epochs cost more than that.
    """
    return n >= (ONE_BATCH if kind == "text" else ENOUGH)


def training_for(kind: str, n: int) -> dict[str, Any]:
    """Return batch_size, max_iter (None: by `epochs_for`), learning_rate and weight_decay."""
    if kind != "text":
        settings = {"batch_size": batch_size_for(n), "max_iter": None}
        return settings | {"learning_rate": 1e-3, "weight_decay": 0.01}
    usual = text_defaults.training(n)
    steps = -(-n // usual["batch_size"])
    return {
        "batch_size": usual["batch_size"],
        "max_iter": max(usual["epochs"], min(MOST_OF_FEW_TEXTS, -(-STEPS_OF_FEW_TEXTS // steps))),
        "learning_rate": usual["lr"],
        "weight_decay": usual.get("weight_decay", 0.0),
    }


def batch_size_for(n: int) -> int:
    """Return the power of two nearest to sqrt(n), from 32 to 256; few samples are one batch."""
    if n <= ONE_BATCH:
        return n
    return int(np.clip(2 ** round(np.log2(n) / 2), SMALLEST, LARGEST))


def epochs_for(n: int, batch_size: int) -> int:
    """Return how many epochs make about `STEPS` steps, from 10 to 100."""
    return int(np.clip(round(STEPS / -(-n // batch_size)), FEWEST, MOST))
