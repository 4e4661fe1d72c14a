"""Trains an estimator of each kind with each tokenizer, and prints a digest of each.

    python -m tests.tasks.estimators.one_seed BEGUN RESUMED

It begins the same trainings in the folder BEGUN, stops them after an epoch, and resumes those that
another process began in RESUMED.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

import npformer as nf

CONFIG = {"d_model": 4, "d_ff": 4, "n_heads": 2, "n_layers": 1, "dropout": 0.1}
SETTINGS = {"epochs": 2, "batch_size": 8, "progress": False}
TEXTS = [
    f"{one} {other}s {verb}ing"
    for one in ("the", "a", "no", "some")
    for other in ("cat", "dog", "star")
    for verb in ("sit", "fall", "run")
]
LABELS = ["with t" if "t" in text[:-3] else "without" for text in TEXTS]
SERIES = [np.sin(np.arange(4.0 + i % 3) * i).reshape(-1, 1) for i in range(len(TEXTS))]


class Stop(nf.Callback):
    """Interrupts a training after its first epoch."""

    def after_epoch(self, state):
        raise KeyboardInterrupt


def estimators():
    """Yield untrained estimators with the data that each is fitted to, by name."""
    for name in ("word", "wordpiece", "bpe"):
        sizes = {"tokenizer": name, "vocab_size": 320}
        yield f"classifier, {name}", nf.TextClassifier(CONFIG, **sizes, members=2), (TEXTS, LABELS)
        yield f"filler, {name}", nf.TextFiller(CONFIG, **sizes), (TEXTS,)
    for name in ("char", "word", "bpe"):
        sizes = {"tokenizer": name, "vocab_size": 320}
        writer = nf.TextWriter({**CONFIG, "max_len": 8, "causal": True}, **sizes)
        yield f"writer, {name}", writer, (" ".join(TEXTS),)
        translator = nf.TextTranslator(CONFIG, **sizes)
        yield f"translator, {name}", translator, (TEXTS, [text[::-1] for text in TEXTS])
    yield "series", nf.SeriesClassifier(CONFIG, members=1), (SERIES, LABELS)


def digest(estimator):
    """Return a digest of what turns samples into arrays, and of all weights."""
    sha256 = hashlib.sha256(json.dumps(estimator.preparation()).encode())
    for model in estimator.models_:
        for name, parameter in model.named_parameters().items():
            sha256.update(name.encode())
            sha256.update(parameter.value.tobytes())
    return sha256.hexdigest()


def settings_of(name, folder):
    """Return arguments of `fit` for an estimator."""
    return {
        **SETTINGS,
        "validation": 0.2,
        "checkpoint": folder / name,
        "resume": True,
        "on_interrupt": "return",
    }


def main(begun, resumed):
    """Print what a process trains as a whole, and what it resumes."""
    digests = {}
    for name, estimator, data in estimators():
        estimator.fit(*data, **settings_of(name, begun), callbacks=[Stop()])
    for name, estimator, data in estimators():
        digests[name] = digest(estimator.fit(*data, validation=0.2, **SETTINGS))
    for name, estimator, data in estimators() if resumed.exists() else ():
        digests[f"{name}, resumed"] = digest(estimator.fit(*data, **settings_of(name, resumed)))
    print(json.dumps(digests))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
