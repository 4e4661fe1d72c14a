"""Texts without tuning: `TextClassifier` as it is, against a bag of words and the largest class."""

import argparse
import json
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

from benchmarks.results_files import RESULTS, write
from npformer.data.tables import read_table
from npformer.pipelines import TextClassifier, baselines
from npformer.pipelines.class_names import ClassNames
from npformer.pipelines.split import stratified

FILE = RESULTS / "texts.json"
SHARE = 0.2
TF_IDF, MAJORITY = "TF-IDF + logistic", "majority"
BASELINES = {MAJORITY: baselines.majority, TF_IDF: baselines.tf_idf}


def run(words):
    """Measure some files, and write them beside those that were measured before."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks texts", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="a table: CSV, TSV, JSON lines")
    parser.add_argument("--text", default="text", metavar="COLUMN")
    parser.add_argument("--label", default="label", metavar="COLUMN")
    parser.add_argument("--mixer", nargs="+", default=["attention"], metavar="NAME")
    parser.add_argument("--splits", type=int, default=5, metavar="N")
    parser.add_argument("--members", type=int, metavar="N", help="models averaged, if not as usual")
    chosen = parser.parse_args(words)
    names = {mixer: name_of(mixer, chosen.members) for mixer in chosen.mixer}
    for file in chosen.files:
        texts, labels = different(file, chosen.text, chosen.label)
        before = measured().get(name_of_set(file), {})
        found = before | {"texts": len(texts), "classes": len(set(labels))}
        found["words"] = int(np.median([len(text.split()) for text in texts]))
        found["runs"] = dict(before.get("runs", {}))
        for name in (*BASELINES, *names.values()):
            found["runs"][name] = []
        for seed in range(chosen.splits):
            split = parts(texts, labels, seed)
            for name, baseline in BASELINES.items():
                found["runs"][name].append(baseline_scores(baseline, *split))
            for mixer, name in names.items():
                found["runs"][name].append(scores(mixer, chosen.members, seed, *split))
            last = {name: runs[-1]["accuracy"] for name, runs in found["runs"].items() if runs}
            print(f"{name_of_set(file)}, split {seed}: {last}", flush=True)
        save(measured() | {name_of_set(file): found})
    if not chosen.files:
        save(measured())


def measured():
    """Return what stands in the file of results."""
    return json.loads(FILE.read_text())["figures"] if FILE.is_file() else {}


def save(figures):
    """Write figures and their table."""
    text = "\n\n".join((table(figures), "\n".join(verdicts(figures)), HOW))
    write("texts", figures, text, scikit_learn=version("scikit-learn"))


# One set ------------------------------------------------------------------------------------------


def name_of_set(file):
    """Return a file's name without what says its kind."""
    return Path(file).name.partition(".")[0]


def name_of(mixer, members):
    """Return what a column is called."""
    return mixer if members is None else f"{mixer}, {members} members"


def different(file, text, label):
    """Return the texts and labels of a table without empty texts, each text once."""
    rows = read_table(file)
    first = {}
    for words, name in zip(rows.texts(text), rows.texts(label), strict=True):
        if words.strip():
            first.setdefault(words.strip(), name)
    return list(first), list(first.values())


def parts(texts, labels, seed):
    """Return the names of the classes, and (texts, class numbers) to train on and to test."""
    names = ClassNames.of(labels)
    y = names.numbers(labels)
    return names.names, *(
        ([texts[i] for i in rows], y[rows]) for rows in stratified(y, SHARE, seed)
    )


def baseline_scores(baseline, names, train, test):
    """Return what a baseline reaches."""
    own = (train[1], test[1]) if baseline is baselines.majority else (train, test)
    began = time.process_time()
    return figures_of(baseline(names, *own), time.process_time() - began)


def scores(mixer, members, seed, names, train, test):
    """Train with everything as usual but the mixer, on one core; return what it reaches."""
    own = {} if members is None else {"members": members}
    classifier = TextClassifier({"mixer": mixer}, seed=seed, **own)
    labels = [[names[i] for i in y] for _, y in (train, test)]
    began = time.process_time()
    classifier.fit(train[0], labels[0], workers=1, processes=False, progress=False)
    seconds = time.process_time() - began
    return figures_of(classifier.evaluate(test[0], labels[1]), seconds)


def figures_of(scores, seconds):
    return {
        "accuracy": round(scores.accuracy, 5),
        "macro_f1": round(scores.macro_f1, 5),
        "seconds": round(seconds, 1),
    }


# What the figures say -----------------------------------------------------------------------------

HOW = (
    "Accuracy in % (macro F1 behind it): mean and standard deviation of seeded, stratified splits "
    f"with {100 * SHARE:.0f} % to test, each text once. `TextClassifier` has no setting but the "
    "mixer; the validation part, if it takes one, is from the training part. The bag of words is "
    "scikit-learn's `TfidfVectorizer()` and `LogisticRegression(C=10)`. Seconds are those of one "
    "core for `fit`, all members of the ensemble together, with attention."
)


def columns(figures):
    """Return all that was measured, baselines first."""
    found = dict.fromkeys(BASELINES)
    for of_set in figures.values():
        found |= dict.fromkeys(of_set["runs"])
    return list(found)


def values(of_set, name, what="accuracy"):
    return np.array([run[what] for run in of_set["runs"].get(name, [])])


def table(figures):
    """Return a row for each set of texts."""
    names = columns(figures)
    lines = [
        f"| set | texts | classes | words in a text | {' | '.join(names)} | seconds |",
        f"|---|{'---:|' * (len(names) + 4)}",
    ]
    for key, of_set in figures.items():
        about = [key, f"{of_set['texts']:,}", of_set["classes"], of_set["words"]]
        found = [cell(of_set, name) for name in names]
        seconds = values(of_set, "attention", "seconds")
        last = f"{seconds.mean():.0f}" if len(seconds) else ""
        lines.append(f"| {' | '.join(map(str, (*about, *found, last)))} |")
    return "\n".join(lines)


def cell(of_set, name):
    accuracy = 100 * values(of_set, name)
    if len(accuracy) == 0:
        return ""
    f1 = 100 * values(of_set, name, "macro_f1").mean()
    return f"{accuracy.mean():.1f} ± {accuracy.std():.1f} ({f1:.1f})"


def verdicts(figures):
    """Return a line for each set: who is better than the bag of words, split by split."""
    lines = []
    for key, of_set in figures.items():
        told = []
        for name in of_set["runs"]:
            if name in BASELINES or len(values(of_set, name)) == 0:
                continue
            gain = 100 * (
                values(of_set, name) - values(of_set, TF_IDF)[: len(values(of_set, name))]
            )
            better = (gain > 0).sum()
            told.append(f"{name} {gain.mean():+.1f} ± {gain.std():.1f} ({better} of {len(gain)})")
        lines.append(
            f"- {key}: points above the bag of words (splits in which it is better): "
            f"{'; '.join(told)}."
        )
    return lines
