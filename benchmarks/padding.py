"""Texts of different lengths: batches by length, compared with full padding and with PyTorch."""

import json
import statistics
import subprocess
import sys
import time

import numpy as np

import npformer as nf
from benchmarks.results_files import ROOT, write
from npformer.core import Padding, cores
from npformer.core.inputs import Sequences
from npformer.data.lengths import shuffled_by_length

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


def epoch_of_pytorch(size):
    """Return the seconds of an epoch of nn.TransformerEncoder on the same batches by length."""
    import torch
    from torch import nn

    sizes = SIZES[size]
    torch.manual_seed(0)
    torch.set_num_threads(cores())
    layer = nn.TransformerEncoderLayer(
        sizes["d_model"],
        sizes["n_heads"],
        sizes["d_ff"],
        dropout=0.0,
        activation="gelu",
        batch_first=True,
    )
    encoder = nn.TransformerEncoder(layer, sizes["n_layers"], enable_nested_tensor=False)
    table, head = nn.Embedding(VOCABULARY, sizes["d_model"]), nn.Linear(sizes["d_model"], 2)
    positions = torch.randn(LONGEST, sizes["d_model"])
    parameters = [p for part in (encoder, table, head) for p in part.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    x, y, mask = questions()
    lengths = Sequences(x, Padding(mask)).lengths()
    for epoch in range(2):
        order = shuffled_by_length(lengths, BATCH, np.random.default_rng(epoch))
        began = time.perf_counter()
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            longest = lengths[rows].max()
            ids, keep = (torch.from_numpy(a[rows, :longest]) for a in (x, mask))
            hidden = encoder(table(ids) + positions[:longest], src_key_padding_mask=~keep)
            kept = keep[..., None].to(hidden.dtype)
            logits = head((hidden * kept).sum(1) / kept.sum(1))
            loss = nn.functional.cross_entropy(logits, torch.from_numpy(y[rows]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return time.perf_counter() - began


def run():
    """Measure in turn, round by round, each in its own process."""
    candidates = [(*case, way) for case in CASES for way in ("by_length", "shuffled")]
    candidates += [("PyTorch", size, "by_length") for size in SIZES]
    candidates.sort(key=lambda each: list(SIZES).index(each[1]))  # next to those of their size
    seconds = {each: [] for each in candidates}
    for _ in range(ROUNDS):
        for each in candidates:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.padding", *each],
                cwd=ROOT,
                check=True,
                capture_output=True,
                text=True,
            )
            seconds[each].append(json.loads(done.stdout.splitlines()[-1]))
        print({" ".join(each): round(taken[-1], 2) for each, taken in seconds.items()}, flush=True)

    def ratio(one, other):
        return statistics.median(a / b for a, b in zip(seconds[one], seconds[other], strict=True))

    lines = ["| d_model, layers | mixer | all the padding / by length | by length / PyTorch |"]
    lines.append("|---|---|---:|---:|")
    figures = {}
    for mixer, size in CASES:
        ours = (mixer, size, "by_length")
        figures[f"{mixer}, {size}"] = gain = ratio((mixer, size, "shuffled"), ours)
        beside = ""
        if mixer == "attention":
            figures[f"{mixer} / PyTorch, {size}"] = share = ratio(ours, ("PyTorch", *ours[1:]))
            beside = f"{share:.2f}"
        sizes = f"{SIZES[size]['d_model']}, {SIZES[size]['n_layers']}"
        lines.append(f"| {sizes} | `{mixer}` | {gain:.2f} | {beside} |")
    _, _, mask = questions()
    lines.append(
        "\nTime of an epoch of `fit` with all the padding, divided by its time with batches by "
        "length; and that, divided by the time of PyTorch's `nn.TransformerEncoder` on the same "
        f"batches by length. {len(mask)} texts of {mask.sum(axis=1).min()} to {LONGEST} words, "
        f"{mask.sum() / len(mask):.1f} on average, so that {mask.size / mask.sum():.2f} is the "
        f"most that cutting all padding could gain in layers that see each token alone; batches of "
        f"{BATCH}, {VOCABULARY} words, medians of {ROUNDS} rounds in turn."
    )
    write("padding", figures, "\n".join(lines))


if __name__ == "__main__":
    name, size, way = sys.argv[1:]
    print(epoch_of_pytorch(size) if name == "PyTorch" else epoch_of_npformer(name, size, way))
