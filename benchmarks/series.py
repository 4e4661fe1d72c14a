"""Labels of series: untuned SeriesClassifier with each mixer, compared with simple models."""

import numpy as np

import npformer as nf
from benchmarks.results_files import write
from npformer.tasks.estimators import baselines

MIXERS = ("attention", "dense_synthesizer", "fourier", "identity")
SEEDS = (0, 1, 2, 3, 4)


def run():
    data = nf.data.vowels()
    (series, train), (others, test) = data.train, data.test
    classes = sorted(set(train))
    y_train, y_test = np.searchsorted(classes, train), np.searchsorted(classes, test)
    figures = {"majority class": [baselines.majority(classes, y_train, y_test).accuracy]}
    linear = baselines.linear(classes, (series, y_train), (others, y_test))
    if linear is None:
        raise SystemExit("install scikit-learn: the comparison needs its logistic regression")
    figures["logistic regression, padded with 0"] = [linear.accuracy]
    for mixer in MIXERS:
        name = f"SeriesClassifier, {mixer}"
        figures[name] = []
        for seed in SEEDS:
            found = nf.SeriesClassifier({"mixer": mixer}, seed=seed)
            found.fit(series, train, workers=1, progress=False)
            figures[name].append(found.evaluate(others, test).accuracy)
            print(f"{name}, seed {seed}: {figures[name][-1]:.3f}", flush=True)
    write("series", figures, table(figures))


def table(figures):
    """Return a row for each model: mean, worst and best test accuracy."""
    lines = [
        f"| vowels, test accuracy, {len(SEEDS)} seeds | mean | worst | best |",
        "|---|---:|---:|---:|",
    ]
    for name, found in figures.items():
        cells = np.mean(found), min(found), max(found)
        lines.append(f"| {name} | {' | '.join(f'{cell:.3f}' for cell in cells)} |")
    return "\n".join(lines)
