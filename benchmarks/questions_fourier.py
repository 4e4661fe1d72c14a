"""What Fourier mixing is sensitive to: one setting at a time, on two real data sets."""

from typing import Any

import npformer as nf
from benchmarks.results_files import markdown
from benchmarks.scaled_fourier import ScaledFourier

SEEDS = (0, 1)
MIXERS = ("attention", "fourier")

CONFIG: dict[str, Any] = {
    "d_model": 64,
    "n_layers": 2,
    "n_heads": 4,
    "d_ff": 128,
    "dropout": 0.1,
    "norm": "post",
    "positions": "sinusoidal",
    "padding": "per_length",
    "scale_embeddings": False,
    "pooling": "mean",
}
TRAINING = {"lr": 1e-3, "schedule": "cosine", "warmup": 0.1, "clip_norm": 1.0}
OF_TASK = {
    "vowels": {"epochs": 30, "batch_size": 16},
    "sentences": {"epochs": 6, "batch_size": 32, "lr": 3e-3, "token_dropout": 0.3},
}

CHANGES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "`norm='pre'`": {"norm": "pre"},
    "`positions='none'`": {"positions": "none"},
    "`positions='learned'`": {"positions": "learned"},
    "`embedding_norm=True`": {"embedding_norm": True},
    "`scale_embeddings=True`": {"scale_embeddings": True},
    "features not scaled": {"scale": False},
    "divided by sqrt(L d / 2)": {"mixer": "scaled_fourier"},
    "`padding='zero'`": {"padding": "zero"},
    "`pooling='first'`": {"pooling": "first"},
    "`n_layers=1`": {"n_layers": 1},
    "`n_layers=1, pooling='first'`": {"n_layers": 1, "pooling": "first"},
    "`d_model=16`": {"d_model": 16},
    "`initializer='normal(std=0.02)'`": {"initializer": "normal(std=0.02)"},
    "`dropout=0.0`": {"dropout": 0.0},
    "`lr=3e-4`": {"lr": 3e-4},
    "`lr=1e-2`": {"lr": 1e-2},
}
"""In each, all other settings are as above."""

ONLY = {
    "scale_embeddings": "sentences",  # for vectors, the first layer determines the size
    "scale": "vowels",
}
OF_FOURIER = ("mixer", "padding")  # attention skips padding, and averages


def accuracy(task, mixer, changes, seed):
    """Return the test accuracy of a classifier with some settings changed."""
    if "scaled_fourier" not in nf.MIXERS:
        nf.MIXERS.register("scaled_fourier", ScaledFourier)
    config, arguments, training = {}, {"seed": seed, "members": 1}, {}
    if task == "sentences":
        arguments["ngrams"] = 0  # whole words
    chosen = {**CONFIG, **TRAINING, **OF_TASK[task], "mixer": mixer, **changes}
    for name, value in chosen.items():
        if name in nf.EncoderConfig.__dataclass_fields__:
            config[name] = value
        elif name in ("pooling", "scale"):
            arguments[name] = value
        else:
            training[name] = value
    kind, load = {
        "vowels": (nf.SeriesClassifier, nf.data.vowels),
        "sentences": (nf.TextClassifier, nf.data.sentences),
    }[task]
    data = load()
    classifier = kind(config, **arguments)
    classifier.fit(*data.train, validation=None, workers=1, progress=False, **training)
    return classifier.evaluate(*data.test).accuracy


def settings(task, say):
    """Return the test accuracies of both mixers on a task, with each of the changes."""
    found = []
    for name, changes in CHANGES.items():
        if any(ONLY.get(setting, task) != task for setting in changes):
            continue
        for mixer in MIXERS:
            if mixer != "fourier" and any(setting in OF_FOURIER for setting in changes):
                continue
            scores = [accuracy(task, mixer, changes, seed) for seed in SEEDS]
            found.append({"task": task, "change": name, "mixer": mixer, "accuracy": scores})
            say(found[-1])
    return found


def settings_table(found):
    """Return a row for each change, and a column for each mixer on each task."""
    columns = [(task, mixer) for task in OF_TASK for mixer in MIXERS]
    means = {
        (f["task"], f["mixer"], f["change"]): sum(f["accuracy"]) / len(f["accuracy"]) for f in found
    }
    rows = []
    for change in CHANGES:
        cells = [means.get((*column, change)) for column in columns]
        rows.append((change, *("" if c is None else f"{c:.3f}" for c in cells)))
    spans = []
    for column in columns:
        of_column = [m for key, m in means.items() if key[:2] == column and "lr" not in key[2]]
        spans.append(f"{max(of_column) - min(of_column):.3f}")
    rows.append(("best minus worst, learning rates aside", *spans))
    first = f"test accuracy, mean of seeds {' and '.join(map(str, SEEDS))}"
    return markdown((first, *(f"{task}, {mixer}" for task, mixer in columns)), rows)
