"""A tiny folder in Hugging Face's layout, written without transformers."""

import numpy as np

import npformer as nf
from npformer.interop import ARCHITECTURES, save_pretrained
from npformer.interop.tokenizers import read_tokenizer

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "cat",
    "dog",
    "sat",
    "ran",
    "on",
    "mat",
    "and",
    "a",
    "##s",
    "##ly",
    "quick",
    ".",
    ",",
    "?",
]
TEXTS = ["The cat sat on the mat.", "A quick dog ran, quickly.", "Dogs?", "the zebra"]
SIZES = {"d_model": 8, "n_layers": 2, "n_heads": 2, "d_ff": 12, "max_len": 16}


def config_of(kind, **changes):
    architecture = ARCHITECTURES[kind]
    settings = SIZES | dict(architecture.fixed)
    if "n_token_types" in architecture.settings:
        settings["n_token_types"] = 2
    return nf.EncoderConfig(**settings | changes)


def vocabulary(folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", "utf-8")
    return read_tokenizer(folder)


def random_model(kind, pooling=None, dtype="float64", **changes):
    """Return a TextEncoder, or a classifier, with random values for every parameter."""
    config = config_of(kind, **changes)
    if pooling is None:
        pooler = "pool.dense" in ARCHITECTURES[kind].layers
        model = nf.TextEncoder(config, len(WORDS), pooler=pooler, dtype=dtype)
    else:
        model = nf.SequenceClassifier(
            config, 3, vocab_size=len(WORDS), pooling=pooling, dtype=dtype
        )
    rng = np.random.default_rng(0)
    for name, value in model.parameters().items():
        value[...] = rng.normal(float(name.endswith("gamma")), 0.3, value.shape)
    return model


def tiny(folder, kind="bert", *, pooling=None, tokenizer=True, **changes):
    """Write a folder of a family, and return the model in it."""
    model = random_model(kind, pooling, **changes)
    library_tokenizer = None
    if tokenizer:
        library_tokenizer = vocabulary(folder.with_name(f"{folder.name}-vocabulary"))
    save_pretrained(model, folder, architecture=kind, tokenizer=library_tokenizer)
    return model
