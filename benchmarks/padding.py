"""Texts of different lengths: batches by length, compared with full padding and with PyTorch."""

import statistics
import sys

import numpy as np

import npformer as nf
from benchmarks.remote import printed
from benchmarks.results_files import markdown, write

BATCH, STEPS, LONGEST, VOCABULARY = 32, 120, 30, 5000
SIZES = {
    "small": {"d_model": 128, "n_layers": 2, "n_heads": 4, "d_ff": 512},
    "larger": {"d_model": 256, "n_layers": 4, "n_heads": 8, "d_ff": 1024},
}
"""Costs that do not depend on length, such as Adam's update, weigh more in the small model."""

CASES = (
    ("attention", "small"),
    ("dense_synthesizer", "small"),
    ("fourier", "small"),
    ("attention", "larger"),
)
ROUNDS = 5


def questions():
    """Return ids, labels and a mask of texts of 3 to 30 words, most of them short."""
    rng = np.random.default_rng(0)
    n = BATCH * STEPS
    lengths = np.clip(3 + rng.gamma(2.5, 3.5, size=n).astype(int), 3, LONGEST)
    mask = np.arange(LONGEST) < lengths[:, None]
    x = np.where(mask, rng.integers(1, VOCABULARY, size=(n, LONGEST)), 0)
    return x, rng.integers(0, 2, size=n), mask


def epoch_of_npformer(mixer, size, batches):
    """Return the seconds of a model's second epoch of `fit`."""
    config = nf.EncoderConfig(**SIZES[size], max_len=LONGEST, mixer=mixer, padding="per_length")
    model = nf.SequenceClassifier(config, 2, vocab_size=VOCABULARY, seed=0)
    history = nf.fit(
        model, questions(), epochs=2, batch_size=BATCH, batches=batches, progress=False
    )
    return history.seconds[1]


def run():
    """Measure in turn, round by round, each in its own process."""
    candidates = [(*case, way) for case in CASES for way in ("by_length", "shuffled")]
    candidates += [("PyTorch", size, "by_length") for size in SIZES]
    candidates.sort(key=lambda each: list(SIZES).index(each[1]))  # next to those of their size
    seconds = {each: [] for each in candidates}
    for _ in range(ROUNDS):
        for each in candidates:
            seconds[each].append(printed("benchmarks.padding", *each))
        print({" ".join(each): round(taken[-1], 2) for each, taken in seconds.items()}, flush=True)

    def ratio(one, other):
        return statistics.median(a / b for a, b in zip(seconds[one], seconds[other], strict=True))

    figures, rows = {}, []
    for mixer, size in CASES:
        ours = (mixer, size, "by_length")
        figures[f"{mixer}, {size}"] = gain = ratio((mixer, size, "shuffled"), ours)
        beside = ""
        if mixer == "attention":
            figures[f"{mixer} / PyTorch, {size}"] = share = ratio(ours, ("PyTorch", *ours[1:]))
            beside = f"{share:.2f}"
        sizes = f"{SIZES[size]['d_model']}, {SIZES[size]['n_layers']}"
        rows.append((sizes, f"`{mixer}`", f"{gain:.2f}", beside))
    heads = "d_model, layers", "mixer", "all the padding / by length", "by length / PyTorch"
    _, _, mask = questions()
    about = (
        "Time of an epoch of `fit` with all the padding, divided by its time with batches by "
        "length; and that, divided by the time of PyTorch's `nn.TransformerEncoder` on the same "
        f"batches by length. {len(mask)} texts of {mask.sum(axis=1).min()} to {LONGEST} words, "
        f"{mask.sum() / len(mask):.1f} on average, so that {mask.size / mask.sum():.2f} is the "
        f"most that cutting all padding could gain in layers that see each token alone; batches of "
        f"{BATCH}, {VOCABULARY} words, medians of {ROUNDS} rounds in turn."
    )
    write("padding", figures, f"{markdown(heads, rows, left=2)}\n\n{about}")


def epoch(name, size, way):
    """Return the seconds of an epoch of one of the candidates."""
    if name != "PyTorch":
        return epoch_of_npformer(name, size, way)
    from benchmarks.peers.padding import epoch

    return epoch(SIZES[size], VOCABULARY, questions(), BATCH)


if __name__ == "__main__":
    print(epoch(*sys.argv[1:]))
