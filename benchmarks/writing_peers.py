"""PyTorch's side of `writing`: the same models, with a cache written out by hand."""

# ruff: noqa: D102 (`forward` is PyTorch's)

import math

import torch
from torch import nn
from torch.nn import functional as F


def sinusoids(length, d_model):
    """Return the table of positions of Vaswani et al. (2017)."""
    at = torch.arange(length)[:, None] * torch.exp(
        torch.arange(0, d_model, 2) * (-math.log(1e4) / d_model)
    )
    return torch.stack([torch.sin(at), torch.cos(at)], dim=-1).flatten(1)


def later(length):
    """Return which pairs may not be seen: True where the key comes later."""
    return torch.ones(length, length, dtype=torch.bool).triu(1)


class Translator(nn.Module):
    """torch.nn.Transformer between embeddings and a linear map."""

    def __init__(self, d_model, n_layers, n_heads, d_ff, max_len, vocab, norm="post"):
        super().__init__()
        sizes = d_model, n_heads, n_layers, n_layers, d_ff
        self.body = nn.Transformer(*sizes, dropout=0.0, batch_first=True, norm_first=norm == "pre")
        self.source, self.target = nn.Embedding(vocab, d_model), nn.Embedding(vocab, d_model)
        self.register_buffer("positions", sinusoids(max_len, d_model))
        self.output = nn.Linear(d_model, vocab)

    def forward(self, source, target):
        s = self.source(source) + self.positions[: source.shape[1]]
        t = self.target(target) + self.positions[: target.shape[1]]
        of_source = source == 0
        return self.output(
            self.body(
                *(s, t),
                tgt_mask=later(target.shape[1]),
                tgt_is_causal=True,
                src_key_padding_mask=of_source,
                tgt_key_padding_mask=target == 0,
                memory_key_padding_mask=of_source,
            )
        )

    def loss(self, source, target):
        """Return the mean cross-entropy of what follows, without padding."""
        logits = self(source, target[:, :-1])
        wanted = target[:, 1:]
        return F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=0)

    @torch.inference_mode()
    def greedy(self, source, n):
        """Return n tokens behind the beginning, 1."""
        of_source = source == 0
        s = self.source(source) + self.positions[: source.shape[1]]
        memory = self.body.encoder(s, src_key_padding_mask=of_source)
        target = torch.ones(len(source), 1, dtype=torch.long)
        for _ in range(n):
            t = self.target(target) + self.positions[: target.shape[1]]
            y = self.body.decoder(
                *(t, memory),
                tgt_mask=later(target.shape[1]),
                memory_key_padding_mask=of_source,
            )
            best = self.output(y[:, -1]).argmax(dim=-1, keepdim=True)
            target = torch.cat([target, best], dim=1)
        return target[:, 1:]


class Block(nn.Module):
    """A pre-norm block of GPT-2, whole or with a cache of keys and values."""

    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.n_heads = n_heads
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.expand, self.contract = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def heads(self, x):
        """(batch, length, 3 d_model) -> three of (batch, heads, length, d_head)."""
        return (
            part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for part in x.chunk(3, dim=-1)
        )

    def rest(self, x, y):
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.contract(F.gelu(self.expand(self.norm2(x))))

    def forward(self, x):
        q, k, v = self.heads(self.qkv(self.norm1(x)))
        return self.rest(x, F.scaled_dot_product_attention(q, k, v, is_causal=True))

    def step(self, x, cache, at):
        """Return y for one token, whose key and value go into the cache."""
        q, k, v = self.heads(self.qkv(self.norm1(x)))
        cache[0][:, :, at : at + 1], cache[1][:, :, at : at + 1] = k, v
        seen = (part[:, :, : at + 1] for part in cache)
        return self.rest(x, F.scaled_dot_product_attention(q, *seen))


class GPT(nn.Module):
    """Pre-norm blocks with a final norm, and an output tied to the embedding."""

    def __init__(self, d_model, n_layers, n_heads, d_ff, max_len, vocab):
        super().__init__()
        self.sizes = n_heads, max_len, d_model // n_heads
        self.table = nn.Embedding(vocab, d_model)
        self.register_buffer("positions", sinusoids(max_len, d_model))
        self.blocks = nn.ModuleList(Block(d_model, n_heads, d_ff) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)

    def forward(self, ids):
        x = self.table(ids) + self.positions[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.table.weight.T

    def loss(self, x, y):
        """Return the mean cross-entropy of next tokens."""
        return F.cross_entropy(self(x).flatten(0, 1), y.flatten())

    @torch.inference_mode()
    def greedy(self, ids, n):
        """Return n tokens behind prompts of one length, with preallocated keys and values."""
        n_heads, max_len, d_head = self.sizes
        shape = len(ids), n_heads, max_len, d_head
        caches = [(torch.empty(shape), torch.empty(shape)) for _ in self.blocks]
        x = self.table(ids) + self.positions[: ids.shape[1]]
        for block, cache in zip(self.blocks, caches, strict=True):
            q, k, v = block.heads(block.qkv(block.norm1(x)))
            cache[0][:, :, : ids.shape[1]], cache[1][:, :, : ids.shape[1]] = k, v
            x = block.rest(x, F.scaled_dot_product_attention(q, k, v, is_causal=True))
        found = []
        for at in range(ids.shape[1], ids.shape[1] + n):
            best = (self.norm(x[:, -1:]) @ self.table.weight.T).argmax(dim=-1)
            found.append(best)
            if len(found) == n:
                break
            x = self.table(best) + self.positions[at]
            for block, cache in zip(self.blocks, caches, strict=True):
                x = block.step(x, cache, at)
        return torch.cat(found, dim=1)
