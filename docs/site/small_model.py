"""Train the small model that runs in a page: ``python -m docs.site.small_model``.

It is a language model of the plays that come with the package, trained by the package's own
`TextWriter` in a few minutes on two cores. The command writes ``docs/live/small_model.js``, a
script with settings, vocabulary and weights, and the measurements in ``docs/your_sentence.md``. The
same seed gives the same file on the same kind of processor.

A weight matrix is stored as whole numbers of 8 bits, with a scale for each row::

    scale_i = max_j |W_ij| / 127          q_ij = round(W_ij / scale_i)          W_ij ~ scale_i q_ij

so that no weight is off by more than half a scale. Vectors, which are few, are stored in float32.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import npformer as nf
from npformer.cli.embedded import EMBEDDED, embedded_file
from npformer.data.text_file import read_text
from npformer.data.tokenizers import SpellingTokenizer
from npformer.tasks.estimators.ngrams import ORDERS, ngram_loss
from npformer.tasks.estimators.text_writer import windows
from npformer.training.storage.models import rebuildable

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docs" / "live" / "small_model.js"
PAGE = ROOT / "docs" / "your_sentence.md"
DATA = "shakespeare"
VARIABLE = "globalThis.npformerSmallModel"
BEGIN, END = (
    "<!-- begin small model: `python -m docs.site.small_model` -->",
    "<!-- end small model -->",
)

CONFIG = {
    "d_model": 128,
    "n_layers": 3,
    "n_heads": 4,
    "d_ff": 384,
    "max_len": 64,
    "dropout": 0.1,
    "norm": "pre",
    "positions": "learned",
    "scale_embeddings": False,
    "causal": True,
}
TOKENIZER = {"tokenizer": "word", "vocab_size": 1000}
TRAINING = {"epochs": 6, "batch_size": 32, "lr": 3e-3, "workers": 2}
SEED = 0
N_WINDOWS = 200
"""How many windows of unseen text tell what heads look at."""
SHARE_TRAINED = 0.9
"""The rest of the plays, their end, is not trained on: it measures the model."""


def settings() -> dict[str, Any]:
    """Return all that the file depends on, as plain values."""
    digest = hashlib.sha256(embedded_file(DATA).read_bytes()).hexdigest()
    return {
        "data": DATA,
        "licence": EMBEDDED[DATA].licence,
        "sha256": digest,
        "trained": SHARE_TRAINED,
        "config": CONFIG,
        "tokenizer": TOKENIZER,
        "training": TRAINING,
        "seed": SEED,
    }


def split_plays() -> tuple[str, str]:
    """Return the text to train on, and the text to measure with."""
    text = read_text(embedded_file(DATA))
    cut = round(SHARE_TRAINED * len(text))
    return text[:cut], text[cut:]


def train() -> nf.TextWriter:
    """Train the model."""
    text, _ = split_plays()
    config = nf.EncoderConfig(**CONFIG)
    writer = nf.TextWriter(config, **TOKENIZER, seed=SEED)
    return writer.fit(text, **TRAINING)


# Storing ----------------------------------------------------------------------------------------


def pack(array: np.ndarray, dtype: str) -> str:
    """Return the base64 of an array's little-endian bytes."""
    return base64.b64encode(np.ascontiguousarray(array, dtype).tobytes()).decode()


def unpack(text: str, dtype: str) -> np.ndarray:
    """Return the array, (n,), of `pack`, in float64."""
    return np.frombuffer(base64.b64decode(text), dtype).astype("float64")


def quantize_tensor(value: np.ndarray) -> dict[str, Any]:
    """Return a vector in float32, or a matrix in 8 bits with a scale for each row."""
    shape = list(value.shape)
    if value.ndim == 1:
        return {"shape": shape, "data": pack(value, "<f4")}
    scales = (np.abs(value).max(axis=1) / 127.0).astype("float32")
    scales[scales == 0.0] = 1.0  # a row of zeros
    quantized = np.rint(value / scales[:, None]).clip(-127, 127)
    return {"shape": shape, "scales": pack(scales, "<f4"), "data": pack(quantized, "i1")}


def read_tensor(stored: Mapping[str, Any]) -> np.ndarray:
    """Return a stored tensor in float64."""
    if "scales" not in stored:
        return unpack(stored["data"], "<f4")
    quantized = unpack(stored["data"], "i1").reshape(stored["shape"])
    return quantized * unpack(stored["scales"], "<f4")[:, None]


def description_of(writer: nf.TextWriter) -> dict[str, Any]:
    """Return the model as plain values, without its measurements."""
    description = rebuildable(writer.model)
    config = description["config"]
    config["mixer"] = list(writer.model.config.mixers())
    parameters = writer.model.named_parameters()
    return {
        "settings": settings(),
        "config": config,
        "arguments": description["arguments"],
        "tokenizer": writer.tokenizer_.to_dict(),
        "tensors": {name: quantize_tensor(p.value) for name, p in parameters.items()},
    }


def read(path: Path = FILE) -> dict[str, Any]:
    """Return the description in a file."""
    text = path.read_text("utf-8")
    return json.loads(text.removeprefix(f"{VARIABLE} = ").removesuffix(";\n"))


def load_stored_model(
    description: Mapping[str, Any], dtype: str = "float64"
) -> tuple[nf.LanguageModel, SpellingTokenizer]:
    """Return the model with the weights as they are stored, and its tokenizer."""
    config = nf.EncoderConfig(**{**description["config"], "dropout": 0.0})
    arguments = {**description["arguments"], "dtype": dtype}
    model = nf.LanguageModel(config, **arguments)
    for name, parameter in model.named_parameters().items():
        parameter.value[...] = read_tensor(description["tensors"][name])
    return model, SpellingTokenizer.from_dict(description["tokenizer"])


# Measuring --------------------------------------------------------------------------------------


def nats_per_character(model: nf.LanguageModel, tokenizer: SpellingTokenizer, text: str) -> float:
    """Return the mean of -log p over the characters of a text, which follow its first token."""
    ids = np.array(tokenizer.ids(text))
    evaluation = nf.evaluate(model, windows(ids, model.config.max_len))
    characters = len(text) - len(tokenizer.decode(ids[:1].tolist()))
    return evaluation.loss * evaluation.labels / characters


def farthest(model: nf.LanguageModel, tensors: Mapping[str, Any]) -> float:
    """Return how far a stored weight is off, as a share of the largest one of its array."""
    shares = []
    for name, parameter in model.named_parameters().items():
        off = np.abs(read_tensor(tensors[name]) - parameter.value).max()
        shares.append(off / np.abs(parameter.value).max())
    return float(max(shares))


def shares_of_heads(
    model: nf.LanguageModel, tokenizer: SpellingTokenizer, text: str
) -> list[list[dict[str, float]]]:
    """Return, for each layer and head, the mean weights that tokens give to some others."""
    ids, _ = windows(np.array(tokenizer.ids(text)), model.config.max_len)
    ids = ids[:N_WINDOWS]
    is_break = ids == tokenizer.ids("\n")[0]
    layers = []
    for explanation in nf.explain(model, ids):
        heads = []
        for weights in np.moveaxis(explanation.matrices, 1, 0):  # [windows, tokens, tokens]
            weights_of_breaks = (weights * is_break[:, None, :]).sum(axis=2)
            shares = {
                "itself": np.diagonal(weights, 0, 1, 2).mean(),
                "the token before": np.diagonal(weights, -1, 1, 2).mean(),
                "line breaks": weights_of_breaks.mean(),
            }
            heads.append({name: round(float(share), 3) for name, share in shares.items()})
        layers.append(heads)
    return layers


def measure(writer: nf.TextWriter, description: Mapping[str, Any]) -> dict[str, Any]:
    """Return losses on unseen plays, in nats a character, and how far off stored weights are."""
    text, unseen = split_plays()
    stored, tokenizer = load_stored_model(description, dtype="float32")
    counts = [ngram_loss(text, unseen, order) for order in ORDERS]
    return {
        "parameters": writer.model.n_parameters(),
        "trained": round(nats_per_character(writer.model, tokenizer, unseen), 4),
        "stored": round(nats_per_character(stored, tokenizer, unseen), 4),
        "farthest": round(farthest(writer.model, description["tensors"]), 5),
        "counts": round(min(counts), 4),
        "heads": shares_of_heads(stored, tokenizer, unseen),
    }


HEADS_TITLE = f"""
### What the heads look at

The mean of their weights over {N_WINDOWS} windows of the plays that the model has not seen:
"""


def table(description: Mapping[str, Any], size: int) -> str:
    """Return what the page says of the model."""
    measured = description["measured"]
    made_by = description["settings"]
    config = description["config"]
    layers = f"{config['n_layers']} layers of {config['n_heads']} heads"
    widths = f"{config['d_model']} features, {config['d_ff']} in a feed-forward network"
    data = f"the first {made_by['trained']:.0%} of `npformer data {made_by['data']}`"
    epochs = f"{made_by['training']['epochs']} epochs"
    facts = {
        "the file": f"{size / 1e6:.2f} MB: each weight in 8 bits, in base64",
        "parameters": f"{measured['parameters']:,}",
        "the model": f"{layers}, {widths}, {config['max_len']} tokens at most",
        "trained on": f"{data} ({made_by['licence']}), {epochs}",
        "loss on the rest, nats a character": f"{measured['trained']:.3f} as trained",
        "the same with weights of 8 bits": f"{measured['stored']:.3f}",
        "the best of counting": f"{measured['counts']:.3f}",
        "farthest that a weight is off": f"{measured['farthest']:.2%} of the largest of its array",
    }
    lines = ["| | |", "|---|---|"]
    lines += [f"| {name} | {fact} |" for name, fact in facts.items()]
    return "\n".join([*lines, HEADS_TITLE, *head_lines(measured["heads"])])


def head_lines(layers: list[list[dict[str, float]]]) -> list[str]:
    """Return a table of what each head looks at, on average."""
    names = list(layers[0][0])
    lines = [f"| head | {' | '.join(names)} |", "|---|" + "---:|" * len(names)]
    for layer, heads in enumerate(layers, start=1):
        for head, shares in enumerate(heads, start=1):
            values = " | ".join(f"{shares[name]:.2f}" for name in names)
            lines.append(f"| {layer}.{head} | {values} |")
    return lines


def write(description: Mapping[str, Any], path: Path = FILE) -> int:
    """Write the script, and return its size in bytes."""
    values = json.dumps(description, ensure_ascii=False, separators=(",", ":"))
    path.write_text(f"{VARIABLE} = {values};\n", "utf-8")
    return path.stat().st_size


def build(writer: nf.TextWriter) -> None:
    """Write the script and the page's table."""
    description = description_of(writer)
    description["measured"] = measure(writer, description)
    size = write(description)
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table(description, size)}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    build(train())
