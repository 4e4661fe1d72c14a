"""What "auto" stands for, by the kind of the inputs and the number n of samples to train on."""

from dataclasses import asdict
from typing import Any

import numpy as np

from npformer.models import EncoderConfig
from npformer.models.config import RATES
from npformer.pipelines import text_defaults
from npformer.pipelines.fitting_mixers import usual_pooling

AUTO = "auto"

ONE_BATCH = 64
"""Up to so many samples are one batch, in float64 and without dropout: nothing but the initial
weights is left to chance, and a sample of weight 2 is the same as two samples."""

SMALLEST, LARGEST = 32, 256  # samples in a step
STEPS = 4000  # of a training, about
FEWEST, MOST = 10, 100  # epochs
ENOUGH = 2000  # samples, to hold some of them out
STEPS_OF_FEW_TEXTS, MOST_OF_FEW_TEXTS = 1000, 60  # at least so many steps, in so many epochs

ENCODERS: dict[str, dict[str, Any]] = {
    "tokens": {
        "d_model": 64,
        "n_layers": 2,
        "n_heads": 4,
        "d_ff": 128,
        "dropout": 0.1,
        "norm": "pre",
        "positions": "sinusoidal",  # how far apart two tokens are is soon learned
    },
    "series": {
        "d_model": 64,
        "n_layers": 2,
        "n_heads": 4,
        "d_ff": 128,
        "dropout": 0.1,
        "norm": "post",
        "positions": "learned",  # a column of a table is not next to another
    },
    "text": text_defaults.CONFIG,
}


def many(n: int) -> int:
    """Return n, but not a number of samples that would be one batch: more are to come."""
    return max(n, ONE_BATCH + 1)


def encoder_for(kind: str, n: int) -> dict[str, Any]:
    """Return the settings of an encoder, and its dtype."""
    settings = {**asdict(EncoderConfig()), **ENCODERS[kind], "dtype": "float32"}
    if n > ONE_BATCH:
        return settings
    return {**settings, **dict.fromkeys(RATES, 0.0), "dtype": "float64"}


def pooling_for(kind: str, same_length: bool, config: EncoderConfig) -> str:
    """Return "flatten" for series of one length, where a place has a meaning; else what fits."""
    return "flatten" if kind == "series" and same_length else usual_pooling(config)


def holds_out(kind: str, n: int) -> bool:
    """Return whether some samples decide when to stop.

    A few are a worse judge than the training loss, and are missed in the training. For texts
    another epoch costs more than they do.
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
    """Return the power of two next to sqrt(n), from 32 to 256; few samples are one batch."""
    if n <= ONE_BATCH:
        return n
    return int(np.clip(2 ** round(np.log2(n) / 2), SMALLEST, LARGEST))


def epochs_for(n: int, batch_size: int) -> int:
    """Return how many epochs make `STEPS` steps, but from 10 to 100."""
    return int(np.clip(round(STEPS / -(-n // batch_size)), FEWEST, MOST))
