"""Times for the questions: layers that mix tokens in three ways, and a map in two layouts."""

import statistics
from functools import partial
from importlib.util import find_spec

import numpy as np

import npformer as nf
from benchmarks.results_files import markdown
from benchmarks.timing import interleave, significant, timed

# A training step with each mixer ------------------------------------------------------------------

TOKENS, LENGTHS = 2048, (64, 256, 1024)
SIZES = {"d_model": 128, "n_layers": 2, "n_heads": 4, "d_ff": 512}
MIXERS = ("identity", "fourier", "attention")


def relative(steps, base, seconds):
    """Return how long each step takes, in turn, relative to the one that `base` names for it."""
    turns = {name: partial(timed, step) for name, step in steps.items()}
    taken = interleave(turns, seconds=seconds, least=5, most=15)
    medians = {name: statistics.median(each) for name, each in taken.items()}
    return {name: significant(medians[name] / medians[base(name)]) for name in medians}


def steps(say):
    """Return how long a step takes with each mixer, relative to `identity`."""
    found = []
    for length in LENGTHS:
        ways = {mixer: _step(mixer, length) for mixer in MIXERS}
        found.append({"length": length, "relative": relative(ways, lambda _: "identity", 10.0)})
        say(found[-1])
    return found


def _step(mixer, length):
    config = nf.EncoderConfig(**SIZES, max_len=length, mixer=mixer)
    model = nf.SequenceClassifier(config, n_classes=10, vocab_size=1000, seed=0)
    optimizer = nf.Adam(model.parameters(), lr=1e-4)
    rng = np.random.default_rng(0)
    batch = TOKENS // length
    x, y = rng.integers(1000, size=(batch, length)), rng.integers(10, size=batch)

    def step():
        _, gradients = model.loss_and_gradients(x, y, workers=1)
        optimizer.step(gradients)

    return step


def steps_table(found):
    """Return a row for each length."""
    rows = [
        (f"{entry['length']} tokens", *(f"{entry['relative'][mixer]:.2f}" for mixer in MIXERS))
        for entry in found
    ]
    return markdown(("time of a training step / that of `identity`", *MIXERS), rows)


# Features last or first ---------------------------------------------------------------------------

BATCH, POSITIONS, WIDTH = 128, (8, 32, 128), 512


def layouts(say):
    """Return how long one map of a feed-forward network takes, relative to features last."""
    base = {"NumPy": "NumPy, features last", "PyTorch": "PyTorch, Linear"}
    found = []
    for length in POSITIONS:
        of = relative(_maps(length), lambda name: base[name.partition(",")[0]], 8.0)
        found.append({"length": length, "relative": of})
        say(found[-1])
    return found


def _maps(length):
    """Return the same map, width -> 4 width, of the same numbers, written in several ways."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((BATCH, length, WIDTH), dtype="float32")
    W = rng.standard_normal((WIDTH, 4 * WIDTH), dtype="float32") * WIDTH**-0.5
    x_first, W_first = np.ascontiguousarray(x.swapaxes(1, 2)), np.ascontiguousarray(W.T)

    def last():
        return (x.reshape(-1, WIDTH) @ W).reshape(BATCH, length, -1)

    def first():
        return W_first @ x_first

    def there_and_back():
        return np.ascontiguousarray(
            (W_first @ np.ascontiguousarray(x.swapaxes(1, 2))).swapaxes(1, 2)
        )

    for other in (first().swapaxes(1, 2), there_and_back()):
        np.testing.assert_allclose(other, last(), atol=1e-4)
    found = {
        "NumPy, features last": last,
        "NumPy, features first": first,
        "NumPy, features first, from and to last": there_and_back,
    }
    if find_spec("torch"):
        from benchmarks.peers.layouts import maps

        found |= maps(x, x_first, W)
    return found


def layouts_table(found):
    """Return a row for each way, and a column for each length."""
    heads = "time / features last", *(f"{entry['length']} positions" for entry in found)
    rows = [
        (name, *(f"{entry['relative'][name]:.2f}" for entry in found))
        for name in found[0]["relative"]
    ]
    return markdown(heads, rows)
