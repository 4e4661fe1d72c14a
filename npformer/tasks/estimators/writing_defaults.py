"""Defaults of `TextWriter` and `TextTranslator`."""

import math
from collections.abc import Sequence
from typing import Any

from npformer.optim import NORMS_AND_BIASES

WRITER: dict[str, Any] = {
    "d_model": 128,
    "n_layers": 4,
    "n_heads": 4,
    "d_ff": 512,
    "max_len": 64,
    "norm": "pre",
    "positions": "learned",
    "scale_embeddings": False,
    "causal": True,
}

TRANSLATOR: dict[str, Any] = {
    "d_model": 128,
    "n_layers": 2,
    "n_heads": 4,
    "d_ff": 256,
    "norm": "pre",
    "positions": "learned",  # as small as the embeddings at first: sums are learned much faster
    "scale_embeddings": False,
}

DROPOUT = 0.1
"""For texts and pairs that are seen often, because there are few."""

FEW_TOKENS, FEW_PAIRS = 500_000, 20_000

TOKENS, PAIRS = 5_000_000, 300_000
"""How many of them training sees, repeats included: some minutes on two cores."""

STEPS: dict[str, Any] = {
    "lr": 1e-3,
    "schedule": "cosine(final=0.1)",
    "warmup": 0.05,
    "weight_decay": 0.1,
    "no_decay": NORMS_AND_BIASES,
    "clip_norm": 1.0,
    "metric": "loss",
}

REPEATED = 50
"""Words of a column are tokens if they occur this often on average: few different ones then."""


def writer_training(n_tokens: int) -> dict[str, Any]:
    """Return arguments of `npformer.fit` for a text of `n_tokens`, with warmup as a share."""
    return {**STEPS, "epochs": epochs(TOKENS, n_tokens), "batch_size": 32}


def translator_training(n_pairs: int) -> dict[str, Any]:
    """Return the same for `n_pairs`."""
    return {**STEPS, "epochs": epochs(PAIRS, n_pairs), "batch_size": 64 if n_pairs > 640 else 8}


def epochs(seen: int, n: int) -> int:
    """Return how often each of `n` is seen, if training sees `seen` in all."""
    return min(max(1, math.ceil(seen / n)), 100)


def tokenizer_of_column(texts: Sequence[str]) -> str:
    """Return "word" for texts of a few words that recur again and again, else "char"."""
    words = [word for text in texts for word in text.split()]
    several = len(words) >= 2 * len(texts)
    return "word" if several and len(words) >= REPEATED * len(set(words)) else "char"
