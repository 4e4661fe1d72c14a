"""Texts: untuned `TextClassifier`, compared with counting words and pairs of words."""

import argparse
import json
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

from benchmarks.results_files import RESULTS, markdown, write
from npformer.data.tables import read_table
from npformer.tasks.estimators import TextClassifier
from npformer.tasks.estimators.class_names import ClassNames
from npformer.tasks.estimators.scores import calibration_error, scores_of
from npformer.tasks.estimators.split import stratified_split

FILE = RESULTS / "texts.json"
SHARE = 0.2
PREDICTIONS = 9
MAJORITY, LOGISTIC, SVC = "majority", "TF-IDF + logistic", "TF-IDF + linear SVC"
USUAL, ALONE = "TextClassifier", "encoder alone"
NAMES = MAJORITY, LOGISTIC, SVC, ALONE, USUAL


def run(words):
    """Measure some files, and add them to those that were measured before."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks texts", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="a table: CSV, TSV, JSON lines")
    parser.add_argument("--text", default="text", metavar="COLUMN")
    parser.add_argument("--label", default="label", metavar="COLUMN")
    parser.add_argument("--splits", type=int, default=10, metavar="N")
    parser.add_argument("--alone", type=int, default=1, metavar="N", help=f"splits of '{ALONE}'")
    chosen = parser.parse_args(words)
    for file in chosen.files:
        texts, labels = different(file, chosen.text, chosen.label)
        found = {"texts": len(texts), "classes": len(set(labels))}
        found["words"] = int(np.median([len(text.split()) for text in texts]))
        found["runs"] = {name: [] for name in NAMES}
        answers = {name: [] for name in NAMES}
        for seed in range(chosen.splits):
            split, predict = parts(texts, labels, seed), {}
            for name in NAMES:
                if name == ALONE and seed >= chosen.alone:
                    continue
                figures, answer, predict[name] = scores(name, seed, *split)
                found["runs"][name].append(figures)
                answers[name].append(answer)
            if ALONE in predict:
                both = {name: predict[name] for name in (ALONE, USUAL)}
                for name, seconds in in_turn(both, split[2][0]).items():
                    found["runs"][name][-1]["seconds_to_predict"] = seconds
            print(f"\n{name_of_set(file)}, split {seed}", flush=True)
            found["calibration"] = {
                name: round(calibration_error(*np.concatenate(several, axis=1)), 4)
                for name, several in answers.items()
                if several and name != SVC
            }
            save(measured() | {name_of_set(file): found})
    if not chosen.files:
        save(measured())


def measured():
    """Return the contents of the results file."""
    return json.loads(FILE.read_text())["figures"] if FILE.is_file() else {}


def save(figures):
    """Write figures and their table."""
    write("texts", figures, table(figures), scikit_learn=version("scikit-learn"))


# One set ------------------------------------------------------------------------------------------


def name_of_set(file):
    """Return a file's name without its extensions."""
    return Path(file).name.partition(".")[0]


def different(file, text, label):
    """Return a table's texts and labels, without empty or repeated texts."""
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
        ([texts[i] for i in rows], y[rows]) for rows in stratified_split(y, SHARE, seed)
    )


def scores(name, seed, names, train, test):
    """Return the scores of one of `NAMES` on one core, (right, confidence), and what predicts."""
    began = time.process_time()
    predict = prepared(name, seed, names, train)
    trained = time.process_time()
    probabilities = predict(test[0])
    done = time.process_time()
    found = scores_of(names, test[1], probabilities)
    figures = {
        "accuracy": round(found.accuracy, 5),
        "macro_f1": round(found.macro_f1, 5),
        "loss": None if name == SVC else round(found.loss, 4),
        "seconds": round(trained - began, 1),
        "seconds_to_predict": round(done - trained, 2),
    }
    right = probabilities.argmax(axis=1) == test[1]
    return figures, np.stack([right, probabilities.max(axis=1)]), predict


def in_turn(predict, texts):
    """Return the median seconds that each of some functions, by name, takes for the texts."""
    times = {name: [] for name in predict}
    for _ in range(PREDICTIONS):
        for name, each in predict.items():
            began = time.process_time()
            each(texts)
            times[name].append(time.process_time() - began)
    return {name: round(float(np.median(seconds)), 2) for name, seconds in times.items()}


def prepared(name, seed, names, train):
    """Train, and return a function of texts that returns probabilities (of the SVC: 0 or 1)."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    texts, y = train
    if name == MAJORITY:
        shares = np.bincount(y, minlength=len(names)) / len(y)
        return lambda test: np.tile(shares, (len(test), 1))
    if name in (USUAL, ALONE):
        labels = [names[i] for i in y]
        if name == USUAL:
            classifier = TextClassifier(seed=seed)
            classifier.fit(texts, labels, workers=1, progress=False)
        else:
            classifier = TextClassifier(seed=seed, wide=False)
            classifier.fit(texts, labels, workers=1, progress=False, calibration=0.0)
        return classifier.predict_probabilities
    words = TfidfVectorizer(ngram_range=(1, 2))
    x = words.fit_transform(texts)
    if name == LOGISTIC:
        model = LogisticRegression(C=10, max_iter=1000).fit(x, y)
        return lambda test: model.predict_proba(words.transform(test))
    model = LinearSVC().fit(x, y)
    return lambda test: np.eye(len(names))[model.predict(words.transform(test))]


# What the figures say -----------------------------------------------------------------------------

HOW = (
    "Accuracy in % (macro F1 behind it): mean and standard deviation of seeded, stratified splits "
    f"with {100 * SHARE:.0f} % to test, each text once. `TextClassifier` has no setting. Counting "
    "is scikit-learn's `TfidfVectorizer(ngram_range=(1, 2))` with `LogisticRegression(C=10)` or "
    f"`LinearSVC()`. The {ALONE} is `TextClassifier(wide=False)` without a temperature, on the "
    "first split or splits only: beside it stands `TextClassifier` on the same ones. Losses are in "
    "nats. The calibration error is that of ten bins of equal count, the predictions of all splits "
    f"pooled. Seconds are those of one core; to predict, the median of {PREDICTIONS} in turn."
)


def values(of_set, name, what="accuracy"):
    return np.array([run[what] for run in of_set["runs"].get(name, [])], dtype="float64")


def table(figures):
    """Return tables of accuracies, and of losses, calibration errors and seconds; verdicts."""
    everywhere, heard = (MAJORITY, LOGISTIC, SVC, USUAL), (MAJORITY, LOGISTIC, ALONE, USUAL)
    first, second = [], []
    for key, of_set in figures.items():
        first.append(
            (
                key,
                f"{of_set['texts']:,}",
                of_set["classes"],
                of_set["words"],
                len(values(of_set, USUAL)),
                *(cell(of_set, name) for name in everywhere),
                beside_alone(of_set),
            )
        )
        losses = [f"{values(of_set, name, 'loss').mean():.3f}" for name in heard]
        errors = [f"{of_set['calibration'][name]:.3f}" for name in heard[1:]]
        second.append((key, *losses, *errors, *times(of_set)))
    heads = (
        "set",
        "texts",
        "classes",
        "words in a text",
        "splits",
        *everywhere,
        f"{ALONE}, {USUAL} there",
    )
    others = (
        "set",
        *(f"loss, {name}" for name in heard),
        *(f"calibration error, {name}" for name in heard[1:]),
        f"seconds to train, divided by {ALONE}'s",
        f"seconds to predict, divided by {ALONE}'s",
    )
    parts = (
        markdown(heads, first),
        markdown(others, second),
        "\n".join(verdicts(figures)),
        HOW,
    )
    return "\n\n".join(parts)


def times(of_set):
    """Return seconds of training and of predicting, and their ratios to the encoder alone's."""
    for what in ("seconds", "seconds_to_predict"):
        alone = values(of_set, ALONE, what)
        ours = values(of_set, USUAL, what)[: len(alone)]
        yield f"{ours.mean():.1f} ({ours.mean() / alone.mean():.2f})"


def beside_alone(of_set):
    """Return the accuracies of the encoder alone, and of both parts in the same splits."""
    alone = values(of_set, ALONE)
    return f"{100 * alone.mean():.1f}, {100 * values(of_set, USUAL)[: len(alone)].mean():.1f}"


def cell(of_set, name):
    accuracy = 100 * values(of_set, name)
    f1 = 100 * values(of_set, name, "macro_f1").mean()
    return f"{accuracy.mean():.1f} ± {accuracy.std():.1f} ({f1:.1f})"


def verdicts(figures):
    """Return a line for each set: the gain over the better way of counting, split by split."""
    lines = []
    for key, of_set in figures.items():
        better = max((LOGISTIC, SVC), key=lambda name: values(of_set, name).mean())
        gain = 100 * (values(of_set, USUAL) - values(of_set, better))
        where = "ahead of" if gain.mean() >= 0.0 else "behind"
        lines.append(
            f"- {key}: `TextClassifier` is {abs(gain.mean()):.1f} ± {gain.std():.1f} points "
            f"{where} {better}, the better way of counting, and right more often in "
            f"{(gain > 0).sum()} of {len(gain)} splits."
        )
    return lines
