"""A small tokenizer like that of Llama 2, by SentencePiece, and a model."""

import json

import pytest

import npformer as nf
from npformer.interop import save_pretrained
from tests.needs import NEEDS

tokenizers = pytest.importorskip("tokenizers", reason=NEEDS["tokenizers"])

WORDS = ["\u2581To", "\u2581be", "\u2581or", "\u2581not", "\u2581", *"Tobernt"]
MERGES = [("\u2581", "T"), ("\u2581T", "o"), ("\u2581", "b"), ("\u2581b", "e"), ("\u2581", "o")]
MERGES += [("\u2581o", "r"), ("\u2581", "n"), ("\u2581n", "o"), ("\u2581no", "t")]
SPECIAL = "<unk>", "<s>", "</s>"
PADDED = 320
"""The ids of the model: the last ones have no token."""


def llama_tokenizer(begins=True, prefix="normalizer"):
    """Return the tokenizer; `prefix` is "normalizer", or when Metaspace puts a space first."""
    names = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *WORDS]
    names += [word for pair in MERGES if (word := "".join(pair)) not in WORDS]
    model = tokenizers.models.BPE(
        {name: id for id, name in enumerate(names)},
        MERGES,
        unk_token="<unk>",
        fuse_unk=True,
        byte_fallback=True,
    )
    library = tokenizers.Tokenizer(model)
    library.add_special_tokens([*SPECIAL])
    if prefix == "normalizer":
        steps = [
            tokenizers.normalizers.Prepend("\u2581"),
            tokenizers.normalizers.Replace(" ", "\u2581"),
        ]
        library.normalizer = tokenizers.normalizers.Sequence(steps)
    else:
        library.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(
            prepend_scheme=prefix, split=False
        )
    decoders = tokenizers.decoders
    library.decoder = decoders.Sequence(
        [
            decoders.Replace("\u2581", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    if begins:
        library.post_processor = tokenizers.processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)]
        )
    return library


def state_of(folder, library, **settings):
    """Write a tokenizer and its settings into a folder of Llama."""
    folder.mkdir(exist_ok=True)
    library.save(str(folder / "tokenizer.json"))
    stated = {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(stated | settings), "utf-8")


def llama_folder(folder, **settings):
    """Write a folder of Llama 2's kind, whose model has more ids than its tokenizer."""
    config = nf.EncoderConfig(
        d_model=8, n_layers=1, n_heads=2, d_ff=12, max_len=40, norm="pre", norm_kind="rms",
        positions="rotary", ffn="gated", activation="silu", bias=False, causal=True, n_kv_heads=1,
        scale_embeddings=False,
    )  # fmt: skip
    model = nf.LanguageModel(config, PADDED, tied=False)
    save_pretrained(model, folder)
    state_of(folder, llama_tokenizer(), **settings)
    return folder
