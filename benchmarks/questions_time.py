"""Times for the questions: layers that mix tokens in three ways, and a map in two layouts."""

import statistics
from functools import partial

import numpy as np

import npformer as nf
from benchmarks.timing import interleave, significant, timed

# A training step with each mixer ------------------------------------------------------------------

TOKENS, LENGTHS = 2048, (64, 256, 1024)
SIZES = {"d_model": 128, "n_layers": 2, "n_heads": 4, "d_ff": 512}
MIXERS = ("identity", "fourier", "attention")


def steps(say):
    """Return how long a step takes with each mixer, relative to `identity`."""
    found = []
    for length in LENGTHS:
        turns = {mixer: partial(timed, _step(mixer, length)) for mixer in MIXERS}
        taken = interleave(turns, seconds=10.0, least=5, most=15)
        medians = {mixer: statistics.median(seconds) for mixer, seconds in taken.items()}
        relative = {m: significant(medians[m] / medians["identity"]) for m in MIXERS}
        found.append({"length": length, "relative": relative})
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
    lines = [
        f"| time of a training step / that of `identity` | {' | '.join(MIXERS)} |",
        f"|---|{'---:|' * len(MIXERS)}",
    ]
    for entry in found:
        cells = [f"{entry['relative'][mixer]:.2f}" for mixer in MIXERS]
        lines.append(f"| {entry['length']} tokens | {' | '.join(cells)} |")
    return "\n".join(lines)


# Features last or first ---------------------------------------------------------------------------

BATCH, POSITIONS, WIDTH = 128, (8, 32, 128), 512


def layouts(say):
    """Return how long one map of a feed-forward network takes, relative to features last."""
    found = []
    for length in POSITIONS:
        turns = {name: partial(timed, step) for name, step in _maps(length).items()}
        taken = interleave(turns, seconds=8.0, least=5, most=15)
        base = {"NumPy": "NumPy, features last", "PyTorch": "PyTorch, Linear"}
        medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
        relative = {
            name: significant(medians[name] / medians[base[name.partition(",")[0]]])
            for name in medians
        }
        found.append({"length": length, "relative": relative})
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
    return found | _torch_maps(x, x_first, W_first)


def _torch_maps(x, x_first, W_first):
    try:
        import torch
    except ImportError:
        return {}
    torch.set_num_threads(1)
    x, x_first, W = (torch.from_numpy(array) for array in (x, x_first, W_first))
    kernel = W[:, :, None]

    def inference(step):
        def run():
            with torch.inference_mode():
                return step()

        return run

    conv = torch.nn.functional.conv1d
    return {
        "PyTorch, Linear": inference(lambda: torch.nn.functional.linear(x, W)),
        "PyTorch, Conv1d": inference(lambda: conv(x_first, kernel)),
        "PyTorch, Conv1d, from and to last": inference(
            lambda: conv(x.transpose(1, 2), kernel).transpose(1, 2).contiguous()
        ),
    }


def layouts_table(found):
    """Return a row for each way, and a column for each length."""
    heads = " | ".join(f"{entry['length']} positions" for entry in found)
    lines = [f"| time / features last | {heads} |", f"|---|{'---:|' * len(found)}"]
    for name in found[0]["relative"]:
        cells = [f"{entry['relative'][name]:.2f}" for entry in found]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)
