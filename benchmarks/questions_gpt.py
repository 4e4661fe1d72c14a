"""Replacements for attention in a GPT: tasks, a text, times, and the size of states."""

import gzip
from dataclasses import replace
from importlib import resources

import numpy as np

import npformer as nf
from benchmarks.questions_time import relative
from benchmarks.questions_training import EPOCHS, fitted
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
    found = {"model": name, **{task: _accuracy(task, mixer) for task in TASKS}, **_text(mixer)}
    say(found)
    return [found]


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


def _text(mixer):
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
