"""Sentences as vectors: a pretrained encoder's `embed`, compared with the same in PyTorch.

The weights are random, in the sizes of all-MiniLM-L6-v2 and BERT base; the time does not depend on
them. The peer does what sentence-transformers does: texts sorted by length, 32 at a time, padded to
the longest, the mean of the tokens. Both use the same tokenizer.
"""

import tempfile
from functools import partial
from importlib.metadata import version

import numpy as np

from benchmarks.results_files import markdown, write
from benchmarks.timing import interleave, ratio, summary, timed
from npformer import data
from npformer.interop import from_pretrained

SIZES = {
    "all-MiniLM-L6-v2": (384, 6, 12, 1536),
    "BERT base": (768, 12, 12, 3072),
}
"""d_model, layers, heads and width of the feed-forward network."""

COUNTS = (1, 256)
ROUNDS = 21


def run():
    """Measure, and write the table."""
    from benchmarks.peers.embedding import embedder, encoder

    found, everything = {}, data.sentences(seed=0).train[0]
    for name, sizes in SIZES.items():
        with tempfile.TemporaryDirectory() as folder:
            peer = encoder(folder, everything, *sizes)
            ours = from_pretrained(folder)
            theirs = embedder(peer, ours.tokenizer)
            texts = everything[:256]
            np.testing.assert_allclose(ours.embed(texts), theirs(texts), atol=1e-5)
            for n in COUNTS:
                found[f"{name}, {n}"] = in_turn(ours.embed, theirs, texts[:n])
                print(name, n, found[f"{name}, {n}"], flush=True)
    write(
        "embedding",
        found,
        table(found),
        torch=version("torch"),
        transformers=version("transformers"),
    )


def in_turn(ours, theirs, texts):
    """Call both in turn; return medians in milliseconds, and their ratio."""
    sides = {"npformer": ours, "PyTorch": theirs}
    turns = {name: partial(timed, partial(embed, texts)) for name, embed in sides.items()}
    taken = interleave(turns, 0.0, least=ROUNDS, warm_up=2)
    medians = {side: summary(seconds)["median"] for side, seconds in taken.items()}
    return medians | {"ratio": ratio(*taken.values())["of_medians"]}


def table(found):
    """Return a row for each encoder and number of sentences."""
    heads = "encoder", "sentences", "npformer, ms", "PyTorch, ms", "npformer / PyTorch"
    rows = [
        (*name.rsplit(", ", 1), each["npformer"], each["PyTorch"], f"{each['ratio']:.2f}")
        for name, each in found.items()
    ]
    return markdown(heads, rows)
