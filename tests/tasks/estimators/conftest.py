"""Texts that are easy to tell apart, and a classifier that was trained on them."""

import numpy as np
import pytest

import npformer as nf

SIZES = {"d_model": 16, "n_heads": 2, "d_ff": 16, "n_layers": 1}
SIZES |= {"dropout": 0.0, "token_dropout": 0.0}
QUICK = {"validation": 0.1, "epochs": 6, "batch_size": 16, "lr": 0.01}
QUICK |= {"progress": False, "workers": 1}


def texts_and_labels(n=120, seed=0):
    """Return short texts about food or about weather."""
    rng = np.random.default_rng(seed)
    words = {"food": ["bread", "soup", "apple", "rice"], "weather": ["rain", "wind", "snow", "sun"]}
    labels = ["food", "weather"] * (n // 2)
    fill, texts = ["the", "a", "is"], []
    for label in labels:
        drawn = [*rng.choice(words[label], 2), *rng.choice(fill, rng.integers(1, 6))]
        texts.append(" ".join(drawn))
    return texts, labels


@pytest.fixture(scope="session")
def classifier():
    return nf.TextClassifier(SIZES, members=1, ngrams=0).fit(*texts_and_labels(), **QUICK)
