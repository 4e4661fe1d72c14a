"""What `TextClassifier` does if nothing is said: settings that hold up on several sets of texts."""

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
"""Most tokens of a text that are read; attention's time grows with the square."""

NGRAMS = 4
"""Letters of the parts of words that follow the words of short texts."""

SHORT = 30
"""Most words of a text, on average, for such parts. Longer texts say what they mean in several
words, and attention's time grows with the square of the length."""

FEW = 3000
"""Up to so many texts, a second model costs little time."""

VERY_FEW = 400

HELD_OUT = 0.1
"""Most of the texts, to fit temperatures on. The members of an ensemble hold out others."""

ENOUGH = 300
"""Texts for that: three numbers are fitted, and each text held out is one less to learn from."""

PASSES = 25_000
"""How many texts a training sees at least, each as often as any other."""


def ngrams(texts: Sequence[str]) -> int:
    """Return the size of parts of words for some texts; 0 if the texts would become long."""
    n_words = sum(len(text.split()) for text in texts)
    return NGRAMS if n_words <= SHORT * len(texts) else 0


def members(n_texts: int) -> int:
    """Return how many models are trained, whose probabilities are averaged."""
    return 2 if n_texts < FEW else 1


def calibration(n_texts: int) -> float:
    """Return the share that is held out to fit the temperature on; few texts are all needed."""
    return min(HELD_OUT, ENOUGH / n_texts) if n_texts >= VERY_FEW else 0.0


def epochs(n_texts: int) -> int:
    """Return how often all texts are seen: the fewer there are, the more often.

    Embeddings begin small, and a word that is seldom seen needs many steps to say something.
    """
    return min(max(15, math.ceil(PASSES / n_texts)), 100)


def training(n_texts: int) -> dict[str, Any]:
    """Return the arguments of `npformer.fit` for so many texts, and warmup as a share."""
    return {
        "epochs": epochs(n_texts),
        "batch_size": 32 if n_texts >= VERY_FEW else 8,  # smaller ones make more steps
        "lr": 1e-3,
        "schedule": "cosine",
        "warmup": 0.1,
        "clip_norm": 1.0,
    }
