"""Defaults of all estimators: settings of their models and trainings that hold up on several sets.

A kind is what a model reads: "text", the same by "pretrained" weights of others or by those of a
filler ("tuned"), "series" of feature vectors, "tokens", "columns" (series whose steps may be the
columns of a table); or what it does, "writer", "translator" and "filler".
"""

import importlib.resources
import math
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.optim import NORMS_AND_BIASES, schedule_for
from npformer.training.settings import OF_ADAM

TABLE = tomllib.loads(
    (importlib.resources.files("npformer.tasks.estimators") / "defaults.toml").read_text("utf-8")
)

ENCODERS: dict[str, dict[str, Any]] = TABLE["encoders"]
"""Settings of `EncoderConfig`."""

DROPOUT = 0.1
"""For texts to write and pairs that are seen often, because there are few."""

FEW_TOKENS, FEW_PAIRS = 500_000, 20_000

VOCABULARY: dict[str, Any] = {"vocab_size": 30_000}

FILLER_IDS = 8_000
"""A filler guesses among all ids, and learns little of a rare one."""

MAX_LEN = 256
"""How many tokens of a text are read at most; attention's time grows with their square."""

NGRAMS = 4
"""Letters in the parts of words that follow the words of short texts."""

SHORT = 30
"""The most words of a text, on average, for such parts. Longer texts say what they mean in several
words, and attention's time grows with the square of the length."""

REPEATED = 50
"""Words of a column are tokens if they occur this often on average: few different ones then."""

ENSEMBLES = {"text": (2, 3000), "pretrained": (1, 0), "tuned": (1, 0), "series": (3, 1000)}
"""How many models are trained on fewer samples than this: they cost little time."""

VERY_FEW = 400
"""Texts. With fewer, all are needed to learn from, and smaller batches give more steps."""

STEPS_OF_VERY_FEW = 1200
"""In a training on such texts. After more they are known by heart, and no new text gains by it."""

HELD_OUT, ENOUGH = 0.1, 300
"""The largest share of texts to fit temperatures on, and how many texts suffice for them: three
numbers are fitted, and held-out texts are not learned from. Each member has its own."""

HOLDS_OUT = {"text": 100}
"""From how many texts on; those that a pretrained model is tuned on are all needed up to 400."""

SEEN = {
    "text": 25_000,
    "writer": 5_000_000,
    "translator": 300_000,
    "filler": 200_000,
    "tuned": 15_000,
}
"""How many texts, tokens or pairs training sees, repeats included: some minutes on two cores."""

ONE_BATCH = 64
"""Up to this many arrays are one batch, in float64 and without dropout: only the initial weights
are left to chance, and a sample of weight 2 is the same as two samples."""

SMALLEST, LARGEST = 32, 256
"""Arrays in a step."""

MANY = {"text": ONE_BATCH, "tokens": 2000, "columns": 2000}
"""Samples to hold some of them out, so that they decide when to stop. A few are a worse judge than
the training loss, and training misses them. For texts, needless epochs cost more than that."""

N_STEPS, FEWEST, MOST = 4000, 10, 100
"""In a training on arrays, roughly; and its fewest and most epochs."""

BOUNDS = {"text": (15, MOST), "tuned": (3, 20)}
"""Fewest and most epochs for some kinds. What is pretrained needs few, and forgets in many."""

STEPS_OF_FEW_TEXTS, MOST_OF_FEW_TEXTS = 1000, 60
"""Fewest steps, and most epochs for them, in a training that may stop early."""


def ngrams(texts: Sequence[str]) -> int:
    """Return the length of parts of words for some texts; 0 if the texts are not short."""
    n_words = sum(len(text.split()) for text in texts)
    return NGRAMS if n_words <= SHORT * len(texts) else 0


def tokenizer_for(texts: Sequence[str]) -> str:
    """Return "word" for texts of a few words that recur again and again, else "char"."""
    words = [word for text in texts for word in text.split()]
    has_words = len(words) >= 2 * len(texts)
    return "word" if has_words and len(words) >= REPEATED * len(set(words)) else "char"


def members(kind: str, n: int) -> int:
    """Return how many models are trained on n samples; their probabilities are averaged."""
    many, few = ENSEMBLES[kind]
    return many if n < few else 1


def calibration(kind: str, n: int) -> float:
    """Return the share of n samples to hold out for the temperature; 0 for none."""
    enough = kind != "series" and n >= HOLDS_OUT.get(kind, VERY_FEW)
    return min(HELD_OUT, ENOUGH / n) if enough else 0.0


def training(kind: str, n: int) -> dict[str, Any]:
    """Return arguments of `npformer.fit` for n samples (tokens of a text to write), with warmup.

    Embeddings start small, and a rare word needs many steps to have an effect: the fewer texts
    there are, the more often they are seen.
    """
    settings: dict[str, Any] = dict(TABLE["trainings"][kind])
    if "no_decay" in settings:
        settings["no_decay"] = NORMS_AND_BIASES
    if kind in ("tokens", "columns"):
        settings["batch_size"] = batch_size_for(n)
    elif kind in SEEN:
        fewest, most = BOUNDS.get(kind, (1, MOST))
        settings["epochs"] = min(max(fewest, math.ceil(SEEN[kind] / n)), most)
        few = 32 if n >= VERY_FEW else 8
        if kind == "text" and n < VERY_FEW:
            settings["epochs"] = min(settings["epochs"], STEPS_OF_VERY_FEW * few // n)
        sizes = {"text": few, "tuned": few, "translator": 64 if n > 640 else 8}
        settings["batch_size"] = sizes.get(kind, 32)
    return settings


def settings_with_stop(kind: str, n: int, batch_size: int) -> dict[str, Any]:
    """Return the same for a training that may stop early, and for arrays in batches of a size."""
    settings = {"weight_decay": 0.0, **training(kind, n)}
    if kind != "text":
        return {**settings, "epochs": epochs_for(n, batch_size)}
    if n >= VERY_FEW:  # as many epochs as a `TextClassifier` takes
        return settings
    few = -(-STEPS_OF_FEW_TEXTS // -(-n // settings["batch_size"]))
    return {**settings, "epochs": max(settings["epochs"], min(MOST_OF_FEW_TEXTS, few))}


def batch_size_for(n: int) -> int:
    """Return the power of two nearest to sqrt(n), from 32 to 256; few arrays are one batch."""
    if n <= ONE_BATCH:
        return n
    return int(np.clip(2 ** round(np.log2(n) / 2), SMALLEST, LARGEST))


def epochs_for(n: int, batch_size: int) -> int:
    """Return how many epochs make about `N_STEPS` steps, from 10 to 100."""
    return int(np.clip(round(N_STEPS / -(-n // batch_size)), FEWEST, MOST))


def fit_arguments(settings: Mapping[str, Any], n_samples: int) -> dict[str, Any]:
    """Return arguments of `npformer.fit`.

    A schedule given by name is as long as the training; ``warmup``, a share of all steps, is for
    the schedule and is not passed to `fit`. With an optimizer, Adam's settings are left out.
    """
    arguments = dict(settings)
    epochs = checks.positive("epochs", arguments.get("epochs", 10))
    batch_size = checks.positive("batch_size", arguments.get("batch_size", 32))
    steps = epochs * -(-n_samples // (batch_size * arguments.get("accumulate", 1)))
    warmup = arguments.pop("warmup", 0.0)
    checks.rate("warmup", warmup)
    if arguments.get("optimizer") is not None:
        return {n: v for n, v in arguments.items() if n not in OF_ADAM}
    if isinstance(arguments.get("schedule"), str):
        arguments["schedule"] = schedule_for(arguments["schedule"], steps, int(warmup * steps))
    return arguments
