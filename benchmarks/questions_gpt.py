"""What takes the place of attention in a GPT: tasks, a text, times, and what has to be kept."""

import gzip
import time
from dataclasses import replace
from importlib import resources

import numpy as np

import npformer as nf
from benchmarks.questions_training import EPOCHS, fitted
from npformer.pipelines.ngrams import ngram_loss
from npformer.tools.recipes import RECIPES

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
NEW, TIMES = 64, 5


def gpt(name, say):
    """Return what a mixer, or one for each layer, makes of tasks and of a text."""
    mixer = tuple(name.split(",")) if "," in name else name
    found = {"model": name, **{task: _accuracy(task, mixer) for task in TASKS}, **_text(mixer)}
    say(found)
    return [found]


def _accuracy(task, mixer):
    recipe = RECIPES[task]
    dataset = nf.data.recall(seed=0, train=24_000) if task == "recall" else recipe.load("", 0)
    model = recipe.model(dataset, 0, mixer=mixer, causal=True)
    fitted(model, dataset, 0, epochs=EPOCHS)
    return nf.evaluate(model, dataset.test, processes=False).accuracy


def plays():
    """Return the plays that come with the package: what is trained on, and the last tenth."""
    place = resources.files("npformer.data").joinpath("shakespeare.txt.gz")
    text = gzip.decompress(place.read_bytes()).decode()
    cut = len(text) * 9 // 10
    return text[:cut], text[cut:]


def _text(mixer):
    """Return the loss of the plays, and the times of a step and of a token."""
    train, test = plays()
    config = {"mixer": mixer, "d_model": WIDTH, "max_len": LENGTH, **_layers(mixer)}
    writer = nf.TextWriter(config, seed=0)
    writer.fit(train[:TOKENS], epochs=1, workers=1, progress=False)
    times = []
    for _ in range(TIMES):
        began = time.perf_counter()
        writer.model.generate(np.zeros(1, dtype=int), NEW - 1, temperature=0)
        times.append((time.perf_counter() - began) / (NEW - 1))
    long = nf.LanguageModel(replace(writer.model.config, max_len=LONG), 5)
    return {
        "nats": writer.evaluate(test).nats,
        "step": sum(writer.history.seconds) / len(range(0, TOKENS, 32 * LENGTH)),
        "token": float(np.median(times)),
        "bytes": [writer.model.state_bytes(LENGTH), long.state_bytes(LONG)],
    }


def _layers(mixer):
    return {"n_layers": 4, "mixer": mixer * 2} if isinstance(mixer, tuple) else {"n_layers": 4}


def gpt_table(found):
    """Return a row for each model."""
    train, test = plays()
    counted = ngram_loss(train[:TOKENS], test, 5)
    lines = [
        "| mixer | recall | pointer | parity | plays, nats a character | ms a step | ms a token "
        f"| state of {LENGTH} tokens, KiB | of {LONG} |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for each in found:
        cells = [f"{each[task]:.3f}" for task in TASKS]
        cells += [f"{each['nats']:.3f}", f"{each['step'] * 1e3:.0f}", f"{each['token'] * 1e3:.2f}"]
        cells += [f"{size / 1024:.0f}" for size in each["bytes"]]
        lines.append(f"| {each['model'].replace(',', ', ')} | {' | '.join(cells)} |")
    lines.append(f"| n-grams of order 5 | | | | {counted:.3f} | | | | |")
    return "\n".join(lines)
