"""Learning from texts before labels: six mixers, beside no pretraining and beside counting words.

Each mixer learns from texts without labels, and then from 25, 100 and 500 labels a class. A full
run takes two hours; the result of every job is saved in benchmarks/results/pretraining.partial.json
and `--resume` continues from there. Pretrained models are kept in --models.
"""

import argparse
import json
import time
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np

from benchmarks.cpu import fingerprint
from benchmarks.jobs import add_options, in_one_line, pending, wanted
from benchmarks.results_files import RESULTS, markdown, write
from benchmarks.scaled_fourier import ScaledFourier
from npformer import load, mixers, save
from npformer.data.tables import read_table
from npformer.tasks.estimators import TextClassifier, TextFiller
from npformer.tasks.estimators.defaults import ENCODERS

PARTIAL = RESULTS / "pretraining.partial.json"
N_LAYERS = ENCODERS["filler"]["n_layers"]
MIXERS = {
    "attention": "attention",
    "fourier": "fourier",
    "linear": "linear",
    "dense_synthesizer": "dense_synthesizer",
    "hybrid": mixers.hybrid(N_LAYERS, N_LAYERS // 2, "top"),
    "scaled_hybrid": (*["scaled_fourier"] * (N_LAYERS // 2), *["attention"] * (N_LAYERS // 2)),
}
if "scaled_fourier" not in mixers.MIXERS:
    mixers.MIXERS.register("scaled_fourier", ScaledFourier)
LABELS, SEEDS = (25, 100, 500), (0, 1, 2)
WAYS = "pretrained", "scratch"
LOGISTIC, SVC = "TF-IDF + logistic", "TF-IDF + linear SVC"
USUAL = "`TextClassifier`, without pretraining"
BOTH = "`TextClassifier(pretrained=...)`, attention with words and pairs beside it"
QUICK = {"texts": 300, "training": {"epochs": 1}, "labels": (5,), "seeds": (0,), "test": 50}
HELD_OUT = 500
"""Texts on which hidden words are guessed."""


class Data:
    """Texts without labels, and labelled ones to train on, by class, and to test."""

    def __init__(self, options):
        texts = list(dict.fromkeys(read_table(options.file).texts(options.text)))
        table = read_table(options.labels)
        rows = zip(*(table.texts(name) for name in ("text", "label", "part")), strict=True)
        rows = [row for row in rows if row[0].strip()]
        order = np.random.default_rng(0).permutation(len(texts))
        self.held_out = [texts[i] for i in order[:HELD_OUT]]
        self.texts = [texts[i] for i in order[HELD_OUT:]]
        self.test = [(text, label) for text, label, part in rows if part == "test"]
        self.classes = {}
        for text, label, part in rows:
            if part == "train":
                self.classes.setdefault(label, []).append(text)
        if options.quick:
            self.texts, self.held_out = self.texts[: QUICK["texts"]], self.held_out[:50]
            self.test = self.test[: QUICK["test"]]

    def few(self, n, seed):
        """Return n texts of each class, others for each seed as far as there are some."""
        chosen = [
            (texts[(seed * n + i) % len(texts)], label)
            for label, texts in sorted(self.classes.items())
            for i in range(n)
        ]
        return map(list, zip(*chosen, strict=True))


# Jobs ---------------------------------------------------------------------------------------------


def jobs(options):
    """Return {name: function} of all jobs; --only selects by words of their names."""
    found = {f"pretrain {name}": partial(pretrain, name, options) for name in MIXERS}
    numbers = QUICK["labels"] if options.quick else LABELS
    for n in numbers:
        for name in (LOGISTIC, SVC):
            short = name.rpartition(" ")[2]
            found[f"count {short} {n}"] = partial(several, count, name, n, options)
        found[f"usual {n}"] = partial(several, usual, None, n, options)
        found[f"whole {n}"] = partial(several, usual, "attention", n, options)
        for mixer in MIXERS:
            for way in WAYS:
                tuned = partial(tune, way)
                found[f"{way} {mixer} {n}"] = partial(several, tuned, mixer, n, options)
    return found


def file_of(mixer, options):
    return Path(options.models) / f"{mixer}{'-quick' * options.quick}.safetensors"


def pretrain(mixer, options, data):
    """Pretrain a mixer, keep the model, and return seconds and how well it guesses hidden words."""
    training = QUICK["training"] if options.quick else {}
    cpu, wall = time.process_time(), time.perf_counter()
    filler = TextFiller({"mixer": MIXERS[mixer]}).fit(data.texts, progress=False, **training)
    seconds = {"cpu_seconds": time.process_time() - cpu, "seconds": time.perf_counter() - wall}
    file_of(mixer, options).parent.mkdir(parents=True, exist_ok=True)
    save(filler, file_of(mixer, options))
    found = filler.evaluate(data.held_out).to_dict()
    parameters = filler.model.n_parameters()
    return {**found, **{k: round(v, 1) for k, v in seconds.items()}, "parameters": parameters}


def several(measure, name, n, options, data):
    """Return the accuracies of one way for all seeds, and its seconds for one."""
    seeds = QUICK["seeds"] if options.quick else SEEDS
    began, test = time.process_time(), list(map(list, zip(*data.test, strict=True)))
    found = [measure(name, *data.few(n, seed), seed, options, *test) for seed in seeds]
    seconds = round((time.process_time() - began) / len(seeds), 2)
    return {"accuracy": [round(each, 4) for each in found], "cpu_seconds": seconds}


def tune(way, mixer, texts, labels, seed, options, *test):
    """Train on few labels, from pretrained or from random weights; the rest is alike."""
    file = file_of(mixer, options)
    if not file.exists():
        raise FileNotFoundError(f"{file} is missing: run the job 'pretrain {mixer}' first")
    filler = load(file)
    if way == "pretrained":
        classifier = TextClassifier(pretrained=filler, wide=False, seed=seed)
    else:
        config = replace(filler.model.config, **ENCODERS["tuned"])
        classifier = TextClassifier(
            config, tokenizer=filler.tokenizer_, wide=False, members=1, seed=seed
        )
    return accuracy(classifier, texts, labels, options, *test, calibration=0.0)


def usual(mixer, texts, labels, seed, options, *test):
    """Train a `TextClassifier` as it comes, from what a mixer has learned or from nothing."""
    begin = None if mixer is None else file_of(mixer, options)
    return accuracy(TextClassifier(pretrained=begin, seed=seed), texts, labels, options, *test)


def accuracy(classifier, texts, labels, options, *test, **more):
    training = {**more, **(QUICK["training"] if options.quick else {})}
    return classifier.fit(texts, labels, progress=False, **training).score(*test)


def count(name, texts, labels, seed, options, *test):
    """Count words and pairs of words."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    model = LogisticRegression(C=10, max_iter=1000) if name == LOGISTIC else LinearSVC()
    words = TfidfVectorizer(ngram_range=(1, 2))
    return float(make_pipeline(words, model).fit(texts, labels).score(*test))


# The run ------------------------------------------------------------------------------------------


def run(arguments=()):
    parser = argparse.ArgumentParser(prog="python -m benchmarks pretraining", description=__doc__)
    parser.add_argument("file", metavar="FILE", help="a table of texts without labels")
    parser.add_argument("--text", default="text", metavar="COLUMN")
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="a table with text, label and part (train or test); default: FILE with _labels",
    )
    parser.add_argument("--models", default="runs/pretraining", metavar="DIR")
    add_options(parser)
    parser.add_argument("--quick", action="store_true", help="few texts; nothing is written")
    parser.add_argument("--write", action="store_true", help="write unfinished results too")
    parser.add_argument("--list", action="store_true", help="print the names of the jobs")
    options = parser.parse_args(arguments)
    options.labels = options.labels or options.file.replace("_texts", "_labels")
    everything = jobs(options)
    if options.list:
        print("\n".join(name for name in everything if wanted(name, options.only)))
        return
    measure_all(everything, options)


def measure_all(everything, options):
    """Run the jobs that are wanted and not done, and write the tables if all are."""
    done, data = {}, Data(options)
    if options.resume and PARTIAL.is_file():
        done = json.loads(PARTIAL.read_text())
    for name, measure in pending(everything, done, options):
        try:
            done[name] = measure(data) | {"source": fingerprint()}
        except FileNotFoundError as problem:
            print(f"{name}: {in_one_line(problem)}", flush=True)
            continue
        if not options.quick:
            RESULTS.mkdir(exist_ok=True)
            PARTIAL.write_text(json.dumps(done) + "\n")
        print(f"{name}: {in_short(done[name])}", flush=True)
    done = {name: done[name] for name in everything if name in done}
    if len(sources := {each["source"] for each in done.values()}) > 1:
        print(f"warning: npformer changed during the run, {len(sources)} versions")
    missing = [name for name in everything if name not in done]
    if options.quick or (missing and not options.write):
        print(f"\n{tables(done)}\n\nnot written: {len(missing)} jobs are missing")
        return
    text = tables(done) + (f"\n\nNot measured yet: {', '.join(missing)}." if missing else "")
    write("pretraining", done, text, scikit_learn=version("scikit-learn"))
    if not missing:
        PARTIAL.unlink()


def in_short(figures):
    shown = {k: v for k, v in figures.items() if k not in ("source", "tokens", "hidden")}
    words = {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in shown.items()}
    return ", ".join(f"{k} {v}" for k, v in words.items())


# Tables -------------------------------------------------------------------------------------------


def tables(done):
    """Return the table of mixers, that of counting, and what share of attention's each keeps."""
    numbers = sorted({int(name.split()[-1]) for name in done if name.startswith("count")})
    rows, others = [], []
    whole = done.get("pretrain attention")
    for mixer in MIXERS:
        if (found := done.get(f"pretrain {mixer}")) is None:
            continue
        seconds = f"{found['cpu_seconds']:.0f}"
        if whole:
            seconds += f" ({found['cpu_seconds'] / whole['cpu_seconds']:.2f})"
        cells = [cell(done.get(f"pretrained {mixer} {n}")) for n in numbers]
        from_scratch = [cell(done.get(f"scratch {mixer} {n}")) for n in numbers]
        both = [f"{a}, {b}" for a, b in zip(cells, from_scratch, strict=True)]
        hidden = f"{100 * found['accuracy']:.1f}"
        rows.append((f"`{mixer}`", seconds, hidden, *both, kept(done, mixer, numbers)))
    named = {"whole": BOTH, "usual": USUAL, "count logistic": LOGISTIC, "count SVC": SVC}
    for key, name in named.items():
        others.append((name, *(cell(done.get(f"{key} {n}")) for n in numbers)))
    labels = [f"{n} labels a class" for n in numbers]
    heads = (
        "mixer",
        "CPU seconds of pretraining (/ attention's)",
        "hidden words guessed, %",
        *(f"{each}: pretrained, from scratch" for each in labels),
        "share of attention's accuracy, pretrained, %",
    )
    return "\n\n".join([markdown(heads, rows), markdown(("", *labels), others), HOW])


HOW = (
    "Accuracy in %: mean and standard deviation over seeds, each with other texts to learn from as "
    "far as there are some, and all with the same 1,000 to test. Above are encoders alone; from "
    "scratch: the same encoder and tokenizer, without pretraining. A `TextClassifier` as it comes "
    "has a linear map of words and pairs beside the encoder. Counting is scikit-learn's "
    "`TfidfVectorizer(ngram_range=(1, 2))` with `LogisticRegression(C=10)` or `LinearSVC()`. "
    f"Hidden words are those of {HELD_OUT} texts that were not learned from."
)


def cell(figures):
    if figures is None:
        return ""
    accuracies = 100 * np.array(figures["accuracy"])
    return f"{accuracies.mean():.1f} ± {accuracies.std():.1f}"


def kept(done, mixer, numbers):
    """Return what share of attention's accuracy a mixer has, for each number of labels."""
    pairs = [[done.get(f"pretrained {m} {n}") for m in (mixer, "attention")] for n in numbers]
    shares = [
        f"{100 * np.mean(own['accuracy']) / np.mean(attention['accuracy']):.0f}"
        for own, attention in pairs
        if own and attention
    ]
    return ", ".join(shares)
