"""Defaults of `TextClassifier`: settings that hold up on several sets of texts."""

import math
from collections.abc import Sequence
from typing import Any

from npformer.optim import NORMS_AND_BIASES

VOCABULARY: dict[str, Any] = {"vocab_size": 30_000}

CONFIG: dict[str, Any] = {
    "d_model": 64,
    "n_layers": 1,
    "n_heads": 4,
    "d_ff": 128,
    "dropout": 0.3,
    "token_dropout": 0.3,
    "scale_embeddings": False,
    "padding": "per_length",
}

FINE_TUNING: dict[str, Any] = {
    "epochs": 3,
    "batch_size": 16,
    "lr": 5e-5,
    "schedule": "linear",
    "warmup": 0.1,
    "weight_decay": 0.01,
    "no_decay": NORMS_AND_BIASES,
    "clip_norm": 1.0,
}
"""For pretrained weights, as Devlin et al. (2019, appendix A.3) fine-tune BERT."""

MAX_LEN = 256
"""How many tokens of a text are read at most; attention's time grows with their square."""

NGRAMS = 4
"""Letters in the parts of words that follow the words of short texts."""

SHORT = 30
"""The most words of a text, on average, for such parts. Longer texts say what they mean in several
words, and attention's time grows with the square of the length."""

FEW = 3000
"""With fewer texts than this, a second model costs little time."""

VERY_FEW = 400

HELD_OUT = 0.1
"""The largest share of texts to fit temperatures on. Each member of an ensemble has its own."""

ENOUGH = 300
"""This many texts suffice: three numbers are fitted, and held-out texts are not learned from."""

PASSES = 25_000
"""How many texts training sees at least, repeats included; each is seen equally often."""


def ngrams(texts: Sequence[str]) -> int:
    """Return the length of parts of words for some texts; 0 if the texts are not short."""
    n_words = sum(len(text.split()) for text in texts)
    return NGRAMS if n_words <= SHORT * len(texts) else 0


def members(n_texts: int) -> int:
    """Return how many models are trained; their probabilities are averaged."""
    return 2 if n_texts < FEW else 1


def calibration(n_texts: int) -> float:
    """Return the share to hold out for the temperature; 0 if all texts are needed to learn from."""
    return min(HELD_OUT, ENOUGH / n_texts) if n_texts >= VERY_FEW else 0.0


def epochs(n_texts: int) -> int:
    """Return how often all texts are seen: the fewer there are, the more often.

    Embeddings start small, and a rare word needs many steps to have an effect.
    """
    return min(max(15, math.ceil(PASSES / n_texts)), 100)


def training(n_texts: int) -> dict[str, Any]:
    """Return the arguments of `npformer.fit` for `n_texts`, with warmup as a share."""
    return {
        "epochs": epochs(n_texts),
        "batch_size": 32 if n_texts >= VERY_FEW else 8,  # smaller batches give more steps
        "lr": 1e-3,
        "schedule": "cosine",
        "warmup": 0.1,
        "clip_norm": 1.0,
    }
