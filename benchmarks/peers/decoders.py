"""PyTorch's side of models that write: the same models, with a cache written out by hand.

As in npformer, dropout follows the embeddings and the sublayers, and a post-norm stack has no
norm at its end: whatever else torch.nn.Transformer has is removed.
"""

# ruff: noqa: D102 (`forward` is PyTorch's)

import copy
import math
import time
import warnings

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.peers import shared
from benchmarks.peers.shared import dropout, fill, fill_norm, heads, merged, sinusoids
from benchmarks.timing import quick


def later(length):
    """Return which pairs are hidden: True where the key comes later."""
    return torch.ones(length, length, dtype=torch.bool).triu(1)


def padding(ids):
    """Return where there is padding, or None: without a mask PyTorch is faster."""
    found = ids == 0
    return found if found.any() else None


class Translator(nn.Module):
    """torch.nn.Transformer between embeddings and a linear map, or one table for all three."""

    def __init__(self, sizes, max_len, vocabs, *, norm="post", tied=False, rate=0.0, scaled=False):
        super().__init__()
        d_model, n_layers, n_heads, d_ff = sizes
        self.body = nn.Transformer(
            d_model=d_model,
            nhead=n_heads,
            num_encoder_layers=n_layers,
            num_decoder_layers=n_layers,
            dim_feedforward=d_ff,
            dropout=0.0,
            batch_first=True,
            norm_first=norm == "pre",
        )
        if norm == "post":
            self.body.encoder.norm = self.body.decoder.norm = None
        for layer in (*self.body.encoder.layers, *self.body.decoder.layers):
            for name in ("dropout1", "dropout2", "dropout3"):
                if hasattr(layer, name):
                    setattr(layer, name, dropout(rate))
        self.source, self.target = (nn.Embedding(size, d_model) for size in vocabs)
        self.dropout = dropout(rate)
        self.register_buffer("positions", sinusoids(max_len, d_model))
        self.scale = math.sqrt(d_model) if scaled else 1.0
        self.tied = tied
        if tied:
            self.target = self.source
        else:
            self.output = nn.Linear(d_model, vocabs[1])

    def load(self, named):
        """Copy npformer's weights."""
        for name in ("source",) if self.tied else ("source", "target"):
            shared.copy(getattr(self, name).weight, named[f"{name}.tokens.weight"])
        for side in ("encoder", "decoder"):
            stack = getattr(self.body, side)
            for i, layer in enumerate(stack.layers):
                shared.fill_layer(layer, named, f"{side}.blocks.{i}.")
            if stack.norm is not None:
                fill_norm(stack.norm, named, f"{side}.final_norm")
        if not self.tied:
            fill(self.output, named, "output")

    def embedded(self, table, ids):
        x = table(ids) * self.scale + self.positions[: ids.shape[1]]
        return self.dropout(x)

    def logits(self, y):
        return y @ self.source.weight.T if self.tied else self.output(y)

    def forward(self, source, target):
        of_source, of_target = padding(source), padding(target)
        y = self.body(
            self.embedded(self.source, source),
            self.embedded(self.target, target),
            tgt_mask=later(target.shape[1]),
            tgt_is_causal=True,
            src_key_padding_mask=of_source,
            tgt_key_padding_mask=of_target,
            memory_key_padding_mask=of_source,
        )
        return self.logits(y)

    def loss(self, source, target):
        """Return the mean cross-entropy of next tokens, without padding."""
        logits = self(source, target[:, :-1])
        wanted = target[:, 1:]
        return F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=0)

    @torch.inference_mode()
    def greedy(self, source, n):
        """Return n tokens after the begin token, 1."""
        of_source = padding(source)
        memory = self.body.encoder(
            self.embedded(self.source, source), src_key_padding_mask=of_source
        )
        target = torch.ones(len(source), 1, dtype=torch.long)
        for _ in range(n):
            y = self.body.decoder(
                self.embedded(self.target, target),
                memory,
                tgt_mask=later(target.shape[1]),
                memory_key_padding_mask=of_source,
            )
            best = self.logits(y[:, -1]).argmax(dim=-1, keepdim=True)
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
        return (heads(part, self.n_heads) for part in x.chunk(3, dim=-1))

    def rest(self, x, y):
        x = x + self.out(merged(y))
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

    def __init__(self, sizes, max_len, vocab, *, learned=False):
        super().__init__()
        d_model, n_layers, n_heads, d_ff = sizes
        self.sizes = n_heads, max_len, d_model // n_heads
        self.table = nn.Embedding(vocab, d_model)
        positions = sinusoids(max_len, d_model)
        self.positions = nn.Parameter(positions, requires_grad=learned)
        self.blocks = nn.ModuleList(Block(d_model, n_heads, d_ff) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)

    def load(self, named):
        """Copy npformer's weights."""
        shared.copy(self.table.weight, named["embed.tokens.weight"])
        shared.copy(self.positions, named["embed.positions.table"])
        for i, block in enumerate(self.blocks):
            prefix = f"encoder.blocks.{i}."
            fill(block.qkv, named, *shared.projections(f"{prefix}mixer."))
            fill(block.out, named, f"{prefix}mixer.output")
            fill(block.expand, named, f"{prefix}feed_forward.expand")
            fill(block.contract, named, f"{prefix}feed_forward.contract")
            fill_norm(block.norm1, named, f"{prefix}mixer_norm")
            fill_norm(block.norm2, named, f"{prefix}feed_forward_norm")
        fill_norm(self.norm, named, "encoder.final_norm")

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
        """Return n tokens after prompts of one length, with preallocated keys and values."""
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


def optimizer_of(model, training, adam):
    """Return AdamW as in GPT-2: norms and biases have no weight decay."""
    weights = [each for each in model.parameters() if each.requires_grad]
    decay = training.weight_decay
    groups = [
        {"params": [each for each in weights if each.ndim > 1], "weight_decay": decay},
        {"params": [each for each in weights if each.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=training.lr, betas=training.betas, **shared.OPTIONS[adam])


class Theirs(shared.Device):
    """PyTorch's model of a training, and its steps."""

    def __init__(self, training, threads):
        super().__init__()
        torch.set_num_threads(threads)
        # It concerns only prediction.
        warnings.filterwarnings("ignore", "enable_nested_tensor is True")
        self.training = training
        self.model = globals()[training.peer](**training.shape())
        self.adam = "fused"

    def load(self, weights):
        """Copy npformer's weights."""
        self.model.load(weights)
        self.step = self.steps_of(self.model, self.adam)

    def steps_of(self, model, adam):
        """Return a function that trains a model on the next batch and returns the loss."""
        of = self.training
        model.train()
        optimizer, batches, done = optimizer_of(model, of, adam), of.batches(), 0
        weights = [each for each in model.parameters() if each.requires_grad]

        def step():
            nonlocal done
            done += 1
            for group in optimizer.param_groups:
                group["lr"] = of.lr * of.factor(done)
            optimizer.zero_grad()
            loss = model.loss(*map(torch.from_numpy, next(batches)))
            loss.backward()
            if of.clip is not None:
                nn.utils.clip_grad_norm_(weights, of.clip)
            optimizer.step()
            return loss.detach()

        return step

    def choose(self):
        """Choose the faster of PyTorch's two ways to compute Adam, and return its name."""
        tried = {
            adam: quick(self.steps_of(copy.deepcopy(self.model), adam))
            for adam in ("fused", "foreach")
        }
        self.adam = min(tried, key=tried.get)
        self.step = self.steps_of(self.model, self.adam)
        return self.adam

    def losses(self, n):
        """Run n training steps and return their losses."""
        return [self.step().item() for _ in range(n)]

    def turn(self, n):
        """Return the seconds per step, over n steps after an untimed one."""
        return self.timed(self.step, n)

    def seconds(self, n):
        """Run exactly n steps, and return the seconds per step."""
        began = time.perf_counter()
        self.losses(n)
        return (time.perf_counter() - began) / n

    @torch.inference_mode()
    def loss(self, x, y, at_once=256):
        """Return the mean loss of some samples at evaluation."""
        self.model.eval()
        parts = [slice(i, i + at_once) for i in range(0, len(x), at_once)]
        x, y = torch.from_numpy(x), torch.from_numpy(y)
        sums = [self.model.loss(x[some], y[some]).double() * len(x[some]) for some in parts]
        self.model.train()
        return float(sum(sums)) / len(x)

    def written(self, source, n):
        """Return the targets of up to n tokens that the model writes, even beyond their end."""
        self.model.eval()
        found = self.model.greedy(torch.from_numpy(source), n).tolist()
        self.model.train()
        return found
