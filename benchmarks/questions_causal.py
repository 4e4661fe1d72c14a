"""Can a Fourier transform be used in a GPT? Two tasks in which a token sees only earlier ones."""

import math
from pathlib import Path

import numpy as np

import npformer as nf
from benchmarks.causal_mixers import CausalConvolution, CausalFourier
from benchmarks.questions_training import EPOCHS, SMALL, fitted
from benchmarks.results_files import markdown

nf.MIXERS.register("causal_fourier", CausalFourier)
nf.MIXERS.register("causal_convolution", CausalConvolution)

MODELS = {
    "identity": {"mixer": "identity"},
    "fourier": {"mixer": "fourier"},
    "causal_fourier": {"mixer": "causal_fourier"},
    "causal_fourier(unitary=True)": {"mixer": "causal_fourier(unitary=True)"},
    "causal_convolution": {"mixer": "causal_convolution"},
    "causal attention": {"mixer": "attention", "causal": True},
}
WINDOW, TRAIN, TEXT_EPOCHS = 32, 16_000, 2
TESTED, PREFIXES = 256, (10, 17, 24, 31)


def text():
    """Return windows of the package's source, and for each character the one that follows it."""
    files = sorted(Path(nf.__file__).parent.rglob("*.py"))
    parts = {
        "train": "".join(f.read_text("utf-8") for k, f in enumerate(files) if k % 10),
        "test": "".join(f.read_text("utf-8") for f in files[::10]),
    }
    characters = sorted(set(parts["train"]))
    number = {c: k for k, c in enumerate(characters)}
    ids = {name: np.array([number[c] for c in part if c in number]) for name, part in parts.items()}
    begin = np.random.default_rng(0).integers(len(ids["train"]) - WINDOW, size=TRAIN)
    train = ids["train"][begin[:, None] + np.arange(WINDOW + 1)]
    n = (len(ids["test"]) - 1) // WINDOW
    test = ids["test"][np.arange(n)[:, None] * WINDOW + np.arange(WINDOW + 1)]
    return characters, (train[:, :-1], train[:, 1:]), (test[:, :-1], test[:, 1:])


def causal(name, say):
    """Return accuracies of recall, and of the next character with and without the text to come."""
    settings = MODELS[name]
    found = {"model": name, **_recall(settings), **_next_character(settings)}
    say(found)
    return [found]


def _recall(settings):
    dataset = nf.data.recall(seed=0, train=24_000)
    model = nf.SequenceClassifier(
        nf.EncoderConfig(**SMALL, activation="relu", max_len=dataset.length, **settings),
        dataset.n_classes,
        vocab_size=dataset.vocab_size,
        pooling="none",
        seed=0,
    )
    fitted(model, dataset, 0, epochs=EPOCHS)
    return {"recall": nf.evaluate(model, dataset.test).accuracy}


class _Text:
    def __init__(self, train):
        self.train = train


def _next_character(settings):
    characters, train, test = text()
    model = nf.SequenceClassifier(
        nf.EncoderConfig(**SMALL, max_len=WINDOW, **settings),
        len(characters),
        vocab_size=len(characters),
        pooling="none",
        seed=0,
    )
    fitted(model, _Text(train), 0, epochs=TEXT_EPOCHS)
    whole = nf.evaluate(model, test)
    x, y = (part[:TESTED] for part in test)
    # One character at a time: the text to come is not there.
    logits = {n: model(x[:, :n])[:, -1] for n in PREFIXES}
    alone = np.mean([logits[n].argmax(axis=-1) == y[:, n - 1] for n in PREFIXES])
    # The same places, in windows that hold the text to come.
    together = model(x)
    seen = np.mean([together[:, n - 1].argmax(axis=-1) == y[:, n - 1] for n in PREFIXES])
    apart = max(float(np.abs(logits[n] - together[:, n - 1]).max()) for n in PREFIXES)
    return {
        "whole": whole.accuracy,
        "bits": whole.loss / math.log(2),
        "seen": float(seen),
        "alone": float(alone),
        "apart": apart,
    }


def causal_table(found):
    """Return a row for each model."""
    columns = {
        "recall": "{recall:.3f}",
        "next character, window at once": "{whole:.3f}",
        "bits a character": "{bits:.2f}",
        "next character, earlier ones alone": "{alone:.3f}",
        "largest change of a logit": "{apart:.1e}",
    }
    rows = [(each["model"], *(c.format(**each) for c in columns.values())) for each in found]
    return markdown(("model", *columns), rows)
