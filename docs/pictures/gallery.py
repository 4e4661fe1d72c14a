"""Gallery pictures for the examples that use only NumPy, and so draw nothing themselves."""

import importlib.util
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SIZE = 4.0, 2.8


def draw():
    """Train the model of each example, and return pictures of what it has learned to look at."""
    return {"gpt": gpt(), "translator": translator(), "encoder": encoder()}


def gpt():
    """Draw the attention weights of each character for the earlier ones."""
    example = _example("gpt_in_one_file")
    text = "to be, or not to be: that is the question. "
    w, characters = example.train(text * 40, steps=200)
    ids = np.array([[characters.index(each) for each in text[:20]]])
    _, (_, caches, *_) = example.forward(w, ids, 4)
    of_mixer, _ = caches[example.blocks_of(w)[-1]]
    weights = of_mixer[4][-1][0].mean(axis=0)
    letters = [each.replace(" ", "\u00b7") for each in text[:20]]
    return _heat(weights, letters, letters)


def translator():
    """Draw which digits the translator reads for each word."""
    example = _example("translator_by_hand")
    rng, number, h = np.random.default_rng(0), 40213, 4
    numbers = np.unique((10.0 ** rng.uniform(0.0, 6.0, 60_000)).astype(int))
    w = example.make_weights(rng, n_source=11, n_target=len(example.WORDS))
    example.train(w, rng.permutation(numbers[numbers != number]), h=h)
    source, target = example.pairs_of([number])
    memory, seen, _ = example.encode(w, source, h)
    _, (caches, _) = example.decode(w, target[:, :-1], memory, seen, h)
    [_, (_, _, (*_, heads_cache, _), _)], *_ = caches[example.blocks_of(w, "decoder")[-1]]
    words = [example.WORDS[word] for word in target[0, 1:]]
    return _heat(heads_cache[-1][0].mean(axis=0), words, list(str(number)))


def encoder():
    """Draw a digit, and the attention weights of its rows in the last block."""
    example = _example("whole_encoder")
    w = example.train()
    _, (x, labels) = example.digits()
    _, (_, caches, *_) = example.forward(w, x[:1], 4)
    of_mixer, _ = caches[example.blocks_of(w)[-1]]
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE)
    left.pcolormesh(x[0], cmap="gray_r")
    left.set_title(f"a {labels[0]}")
    right.pcolormesh(of_mixer[3][-1][0].mean(axis=0), ec="white", lw=0.5)
    right.set_title("attention weights")
    for axis in (left, right):
        axis.set(xticks=[], yticks=[], aspect="equal")
        axis.invert_yaxis()
        axis.spines[:].set_visible(False)
    return figure


def _heat(weights, rows, columns):
    figure, axis = plt.subplots(figsize=SIZE)
    axis.pcolormesh(weights, ec="white", lw=0.5)
    axis.set_xticks(np.arange(len(columns)) + 0.5, columns)
    axis.set_yticks(np.arange(len(rows)) + 0.5, rows)
    axis.invert_yaxis()
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    return figure


def _example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
