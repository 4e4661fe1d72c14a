"""Untuned EncoderClassifier, compared with scikit-learn's classifiers, on small data sets."""

import time
import warnings

import numpy as np
import sklearn
from npformer.sklearn import EncoderClassifier
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from benchmarks.results_files import markdown, write

SEEDS = (0, 1)


def columns(name):
    """Return a table from scikit-learn, and the preprocessing that a linear model needs."""
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return x, y, StandardScaler()


def digits():
    """Return images (1797, 8, 8): series of eight rows."""
    images, y = datasets.load_digits(return_X_y=True)
    x = images.reshape(-1, 8, 8)
    return x, y, make_pipeline(FunctionTransformer(_flat), StandardScaler())


def _flat(x):
    return x.reshape(len(x), -1)


def order(n):
    """Return ids (n, 8) and labels: which of two marks comes first, among other tokens?"""
    rng = np.random.default_rng(0)
    x, y = rng.integers(2, 30, (n, 8)), rng.integers(0, 2, n)
    places = np.sort(np.argsort(rng.random((n, 8)), axis=1)[:, :2], axis=1)
    rows = np.arange(n)
    x[rows, places[:, 0]], x[rows, places[:, 1]] = y, 1 - y
    return x, y, OneHotEncoder(handle_unknown="ignore")


def topics(n):
    """Return texts of 10 to 60 words in five topics that share their words, drawn by Zipf."""
    rng = np.random.default_rng(0)
    n_words, n_topics = 3000, 5
    usual = 1.0 / np.arange(1, n_words + 1)
    of_topic = [usual * rng.choice([0.2, 1.0, 4.0], n_words, p=[0.25, 0.5, 0.25]) for _ in range(5)]
    y = rng.integers(0, n_topics, n)
    words = np.array([f"w{i}" for i in range(n_words)])
    texts = [
        " ".join(rng.choice(words, rng.integers(10, 61), p=of_topic[k] / of_topic[k].sum()))
        for k in y
    ]
    return texts, y, TfidfVectorizer()


# name: (data, how many of them to train on, seeds)
SETS = {
    "breast_cancer, table of 30 columns": (lambda: columns("breast_cancer"), 427, SEEDS),
    "wine, table of 13 columns": (lambda: columns("wine"), 133, SEEDS),
    "digits, series of 8 rows": (digits, 1347, SEEDS),
    "digits, series of 8 rows, few": (digits, 500, SEEDS),
    "texts in five topics, generated": (lambda: topics(1500), 500, SEEDS),
    "order of two tokens, generated": (lambda: order(1500), 500, SEEDS),
    "order of two tokens, generated, many": (lambda: order(55_000), 50_000, SEEDS[:1]),
}


def measure(name):
    """Return accuracy and CPU seconds of each classifier, one value for each seed."""
    load, n_train, seeds = SETS[name]
    x, y, prepare = load()
    found = {"logistic": [], "mlp": [], "encoder": []}
    for seed in seeds:
        train, test, y_train, y_test = train_test_split(
            x, y, train_size=n_train, test_size=min(len(y) - n_train, 5000), random_state=seed
        )
        classifiers = {
            "logistic": make_pipeline(prepare, LogisticRegression(max_iter=1000)),
            "mlp": make_pipeline(prepare, MLPClassifier(random_state=seed)),
            "encoder": EncoderClassifier(random_state=seed),
        }
        for which, classifier in classifiers.items():
            began = time.process_time()
            classifier.fit(train, y_train)
            seconds = time.process_time() - began
            accuracy = classifier.score(test, y_test)
            found[which].append({"accuracy": accuracy, "seconds": seconds})
        found["encoder"][-1]["epochs"] = classifier.n_iter_
        print(name, seed, {which: found[which][-1] for which in found}, flush=True)
    return {"set": name, "n_train": n_train, "seeds": list(seeds), **found}


def run():
    """Measure on all sets, and write the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of MLPClassifier
        figures = [measure(name) for name in SETS]
    write("sklearn", figures, table(figures), scikit_learn=sklearn.__version__)


def table(figures):
    """Return a row for each set."""
    names = "logistic", "mlp", "encoder"

    def mean(found, name, what):
        return np.mean([each[what] for each in found[name]])

    rows = [
        (
            f"{found['set']}: {found['n_train']:,}",
            *(f"{mean(found, name, 'accuracy'):.3f}" for name in names),
            f"{mean(found, 'encoder', 'epochs'):.0f}, {mean(found, 'encoder', 'seconds'):.1f}",
        )
        for found in figures
    ]
    heads = (
        "data, and samples to train on",
        "logistic regression",
        "`MLPClassifier`",
        "`EncoderClassifier`",
        "its epochs, CPU seconds",
    )
    return (
        f"{markdown(heads, rows)}\n\n"
        "Accuracy on other samples, the mean over two seeds of the split and of the training, "
        "one seed for the largest set. All three as they come; logistic regression and the MLP "
        "get scaled columns, one-hot token ids, and TF-IDF of texts; the encoder gets the data "
        "themselves."
    )
