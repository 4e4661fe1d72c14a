"""Sentences as vectors: a pretrained encoder's `embed`, compared with the same in PyTorch.

The weights are random, in the sizes of all-MiniLM-L6-v2 and BERT base; the time does not depend on
them. The peer does what sentence-transformers does: texts sorted by length, 32 at a time, padded to
the longest, the mean of the tokens. Both use the same tokenizer.
"""

import statistics
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

from benchmarks.results_files import write
from benchmarks.timing import ratio
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
    import torch

    found = {}
    texts = [text for part in (data.sentences(seed=0).train,) for text in part[0]][:256]
    for name, sizes in SIZES.items():
        with tempfile.TemporaryDirectory() as folder:
            peer = _peer(Path(folder), *sizes)
            ours = from_pretrained(folder)
            theirs = _embedder(peer, ours.tokenizer)
            np.testing.assert_allclose(ours.embed(texts), theirs(texts), atol=1e-5)
            for n in COUNTS:
                found[f"{name}, {n}"] = _in_turn(ours.embed, theirs, texts[:n])
                print(name, n, found[f"{name}, {n}"], flush=True)
    write(
        "embedding",
        found,
        _table(found),
        torch=torch.__version__,
        transformers=version("transformers"),
    )


def _in_turn(ours, theirs, texts):
    """Call both in turn; return medians in milliseconds, and their ratio."""
    taken = {"npformer": [], "PyTorch": []}
    for k in range(ROUNDS + 2):
        for side, call in (("npformer", ours), ("PyTorch", theirs)):
            began = time.perf_counter()
            call(texts)
            if k >= 2:
                taken[side].append(time.perf_counter() - began)
    medians = {side: round(1e3 * statistics.median(s), 2) for side, s in taken.items()}
    return medians | {"ratio": ratio(*taken.values())["of_medians"]}


def _peer(folder, d_model, n_layers, n_heads, d_ff):
    """Write a folder with an encoder of random weights; return transformers' model of it."""
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    made = BertWordPieceTokenizer()
    made.train_from_iterator(data.sentences(seed=0).train[0], vocab_size=8000)
    made.save_model(str(folder))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = BertConfig(
        vocab_size=made.get_vocab_size(),
        hidden_size=d_model,
        num_hidden_layers=n_layers,
        num_attention_heads=n_heads,
        intermediate_size=d_ff,
    )
    model = BertModel(config).eval()
    model.save_pretrained(folder)
    return model


def _embedder(model, tokenizer):
    """Return the peer's function from texts to vectors."""
    import torch

    @torch.inference_mode()
    def embed(texts, batch_size=32):
        ids, mask = tokenizer.encode(texts, 512)
        lengths = mask.sum(axis=1)
        order, rows = np.argsort(-lengths, kind="stable"), []
        for start in range(0, len(texts), batch_size):
            some = order[start : start + batch_size]
            longest = lengths[some].max()
            x = torch.from_numpy(ids[some, :longest].astype("int64"))
            keep = torch.from_numpy(mask[some, :longest])
            hidden = model(x, attention_mask=keep.long()).last_hidden_state
            keep = keep[..., None].to(hidden.dtype)
            rows.append(((hidden * keep).sum(1) / keep.sum(1)).numpy())
        return np.concatenate(rows)[np.argsort(order, kind="stable")]

    return embed


def _table(found):
    """Return a table in Markdown."""
    lines = ["| encoder | sentences | npformer, ms | PyTorch, ms | npformer / PyTorch |"]
    lines.append("|---|---:|---:|---:|---:|")
    for name, each in found.items():
        encoder, n = name.rsplit(", ", 1)
        lines.append(
            f"| {encoder} | {n} | {each['npformer']} | {each['PyTorch']} | {each['ratio']:.2f} |"
        )
    return "\n".join(lines)
