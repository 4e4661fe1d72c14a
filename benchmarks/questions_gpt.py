"""Mixers in a GPT: replacements for attention, and a Fourier transform that looks ahead or not."""

import gzip
import math
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np

import npformer as nf
from benchmarks.causal_mixers import CausalConvolution, CausalFourier
from benchmarks.questions_time import relative
from benchmarks.questions_training import EPOCHS, SMALL, fitted
from benchmarks.results_files import markdown
from npformer.tasks.estimators.ngrams import ngram_loss
from npformer.tasks.sources.recipes import RECIPES

MODELS = (
    "identity",
    "dense_synthesizer",
    "gated_convolution",
    "state_space",
    "attention,gated_convolution",
    "attention,state_space",
    "attention",
)
TASKS = ("recall", "pointer", "parity")
WIDTH, LENGTH, LONG = 128, 64, 512
TOKENS = 1_000_000
NEW, VOCAB = 64, 65


def gpt(name, say):
    """Return the results of a mixer, or of one for each layer, on tasks and on a text."""
    mixer = tuple(name.split(",")) if "," in name else name
    accuracies = {task: _accuracy(task, mixer) for task in TASKS}
    figures = {"model": name, **accuracies, **_loss_on_plays(mixer)}
    say(figures)
    return [figures]


def _accuracy(task, mixer):
    recipe = RECIPES[task]
    dataset = nf.data.recall(seed=0, train=24_000) if task == "recall" else recipe.load("", 0)
    model = recipe.model(dataset, 0, mixer=mixer, causal=True)
    fitted(model, dataset, 0, epochs=EPOCHS)
    return nf.evaluate(model, dataset.test).accuracy


def plays():
    """Return the plays that come with the package: the training part, and the last tenth."""
    place = resources.files("npformer.data").joinpath("shakespeare.txt.gz")
    text = gzip.decompress(place.read_bytes()).decode()
    cut = len(text) * 9 // 10
    return text[:cut], text[cut:]


def _loss_on_plays(mixer):
    """Return the loss on the plays."""
    train, test = plays()
    writer = nf.TextWriter(_sizes(mixer), seed=0)
    writer.fit(train[:TOKENS], epochs=1, workers=1, progress=False)
    return {"nats": writer.evaluate(test).nats}


def _sizes(mixer):
    return {
        "d_model": WIDTH,
        "n_layers": 4,
        "max_len": LENGTH,
        "mixer": mixer * 2 if isinstance(mixer, tuple) else mixer,
    }


def gpt_table(found):
    """Return a row for each model."""
    train, test = plays()
    counted = ngram_loss(train[:TOKENS], test, 5)
    rows = [
        (_named(each), *(f"{each[figure]:.3f}" for figure in (*TASKS, "nats"))) for each in found
    ]
    rows.append(("n-grams of order 5", "", "", "", f"{counted:.3f}"))
    return markdown(("mixer", *TASKS, "plays, nats a character"), rows)


def _named(entry):
    return entry["model"].replace(",", ", ")


# What they cost -----------------------------------------------------------------------------------


def costs(say):
    """Return times of a step and of a token, relative to attention's, and bytes of a state."""
    models = {}
    for name in MODELS:
        config = nf.EncoderConfig(
            **_sizes(tuple(name.split(",")) if "," in name else name), norm="pre", causal=True
        )
        models[name] = nf.LanguageModel(replace(config, max_len=LONG), VOCAB, seed=0)
    steps = {name: _step(model) for name, model in models.items()}
    tokens = {name: _tokens(model) for name, model in models.items()}
    of_steps, of_tokens = (relative(each, lambda _: "attention", 20.0) for each in (steps, tokens))
    found = []
    for name, model in models.items():
        state = [model.state_bytes(length) for length in (LENGTH, LONG)]
        found.append(
            {"model": name, "step": of_steps[name], "token": of_tokens[name], "bytes": state}
        )
        say(found[-1])
    return found


def _step(model):
    adam = nf.Adam(model.parameters(), lr=1e-4)
    x, y = np.random.default_rng(0).integers(VOCAB, size=(2, 32, LENGTH))

    def step():
        adam.step(model.loss_and_gradients(x, y, workers=1)[1])

    return step


def _tokens(model):
    return lambda: model.generate(np.zeros(1, dtype=int), NEW, temperature=0)


def costs_table(found):
    """Return a row for each model."""
    rows = [
        (
            _named(each),
            f"{each['step']:.2f}",
            f"{each['token']:.2f}",
            *(f"{size / 1024:.0f}" for size in each["bytes"]),
        )
        for each in found
    ]
    heads = (
        "mixer",
        "a step / attention's",
        "a token / attention's",
        f"state of {LENGTH} tokens, KiB",
        f"of {LONG}",
    )
    return markdown(heads, rows)


# Can a Fourier transform be used in a GPT? --------------------------------------------------------

CAUSAL_MODELS = {
    "identity": {"mixer": "identity"},
    "fourier": {"mixer": "fourier"},
    "causal_fourier": {"mixer": "causal_fourier"},
    "causal_fourier(unitary=True)": {"mixer": "causal_fourier(unitary=True)"},
    "causal_convolution": {"mixer": "causal_convolution"},
    "causal attention": {"mixer": "attention", "causal": True},
}
TEXT_WINDOW, TEXT_WINDOWS, TEXT_EPOCHS = 32, 16_000, 2
TESTED, PREFIXES = 256, (10, 17, 24, 31)


def source_windows():
    """Return windows of the package's source, and for each character the one that follows it."""
    files = sorted(Path(nf.__file__).parent.rglob("*.py"))
    train_text = "".join(f.read_text("utf-8") for k, f in enumerate(files) if k % 10)
    test_text = "".join(f.read_text("utf-8") for f in files[::10])
    characters = sorted(set(train_text))
    number = {c: k for k, c in enumerate(characters)}
    train_ids = np.array([number[c] for c in train_text])
    test_ids = np.array([number[c] for c in test_text if c in number])
    starts = np.random.default_rng(0).integers(len(train_ids) - TEXT_WINDOW, size=TEXT_WINDOWS)
    train = train_ids[starts[:, None] + np.arange(TEXT_WINDOW + 1)]
    n = (len(test_ids) - 1) // TEXT_WINDOW
    test = test_ids[np.arange(n)[:, None] * TEXT_WINDOW + np.arange(TEXT_WINDOW + 1)]
    return characters, (train[:, :-1], train[:, 1:]), (test[:, :-1], test[:, 1:])


def causal(name, say):
    """Return accuracies of recall, and of the next character with and without the text to come."""
    if "causal_fourier" not in nf.MIXERS:
        nf.MIXERS.register("causal_fourier", CausalFourier)
        nf.MIXERS.register("causal_convolution", CausalConvolution)
    settings = CAUSAL_MODELS[name]
    figures = {"model": name, **_recall(settings), **_next_character(settings)}
    say(figures)
    return [figures]


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


class _TrainingPart:
    def __init__(self, train):
        self.train = train


def _next_character(settings):
    characters, train, test = source_windows()
    model = nf.SequenceClassifier(
        nf.EncoderConfig(**SMALL, max_len=TEXT_WINDOW, **settings),
        len(characters),
        vocab_size=len(characters),
        pooling="none",
        seed=0,
    )
    fitted(model, _TrainingPart(train), 0, epochs=TEXT_EPOCHS)
    evaluation = nf.evaluate(model, test)
    x, y = test[0][:TESTED], test[1][:TESTED]
    # One character at a time: the text to come is not there.
    logits = {n: model(x[:, :n])[:, -1] for n in PREFIXES}
    alone = np.mean([logits[n].argmax(axis=-1) == y[:, n - 1] for n in PREFIXES])
    # The same places, in windows that hold the text to come.
    together = model(x)
    with_text_to_come = np.mean(
        [together[:, n - 1].argmax(axis=-1) == y[:, n - 1] for n in PREFIXES]
    )
    apart = max(float(np.abs(logits[n] - together[:, n - 1]).max()) for n in PREFIXES)
    return {
        "whole": evaluation.accuracy,
        "bits": evaluation.loss / math.log(2),
        "seen": float(with_text_to_come),
        "alone": float(alone),
        "apart": apart,
    }


def causal_table(figures):
    """Return a row for each model."""
    columns = {
        "recall": "{recall:.3f}",
        "next character, window at once": "{whole:.3f}",
        "bits a character": "{bits:.2f}",
        "next character, earlier ones alone": "{alone:.3f}",
        "largest change of a logit": "{apart:.1e}",
    }
    rows = []
    for row in figures:
        rows.append((row["model"], *(cell.format(**row) for cell in columns.values())))
    return markdown(("model", *columns), rows)
