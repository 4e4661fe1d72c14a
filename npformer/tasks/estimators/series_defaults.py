"""Defaults of `SeriesClassifier`."""

from typing import Any

CONFIG: dict[str, Any] = {
    "d_model": 64,
    "n_layers": 2,
    "n_heads": 4,
    "d_ff": 128,
    "dropout": 0.1,
    "padding": "per_length",
}


def members(n_series: int) -> int:
    """Return how many models are trained; their probabilities are averaged."""
    return 3 if n_series < 1000 else 1


def training(n_series: int) -> dict[str, Any]:
    """Return the arguments of `npformer.fit` for `n_series`, with warmup as a share."""
    return {
        "epochs": 60,
        "batch_size": 16,
        "lr": 1e-3,
        "schedule": "cosine",
        "warmup": 0.1,
        "clip_norm": 1.0,
    }
