"""PyTorch's side of `embedding`: transformers' encoder, used as sentence-transformers uses it."""

from pathlib import Path

import numpy as np
import torch
from tokenizers import BertWordPieceTokenizer
from transformers import BertConfig, BertModel, BertTokenizerFast


def encoder(folder, texts, d_model, n_layers, n_heads, d_ff):
    """Write a folder with an encoder of random weights; return transformers' model of it."""
    made = BertWordPieceTokenizer()
    made.train_from_iterator(texts, vocab_size=8000)
    made.save_model(str(folder))
    BertTokenizerFast(str(Path(folder) / "vocab.txt")).save_pretrained(folder)
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


def embedder(model, tokenizer):
    """Return the function from texts to vectors."""

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
