"""PyTorch's side of `padding`: an encoder that is told of padding, in batches by length."""

import time

import numpy as np
import torch
from torch import nn

from npformer.core import Padding, cores
from npformer.core.inputs import Sequences
from npformer.data.lengths import shuffle_by_length


def epoch(sizes, vocabulary, texts, batch):
    """Return the seconds of a second epoch of nn.TransformerEncoder, with a mean of the tokens."""
    d_model, n_layers, n_heads, d_ff = sizes.values()
    torch.manual_seed(0)
    torch.set_num_threads(cores())
    layer = nn.TransformerEncoderLayer(
        d_model, n_heads, d_ff, dropout=0.0, activation="gelu", batch_first=True
    )
    encoder = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)
    table, head = nn.Embedding(vocabulary, d_model), nn.Linear(d_model, 2)
    x, y, mask = texts
    positions = torch.randn(x.shape[1], d_model)
    parameters = [p for part in (encoder, table, head) for p in part.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    lengths = Sequences(x, Padding(mask)).lengths()
    for number in range(2):
        order = shuffle_by_length(lengths, batch, np.random.default_rng(number))
        began = time.perf_counter()
        for start in range(0, len(order), batch):
            rows = order[start : start + batch]
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
