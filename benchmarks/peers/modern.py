"""PyTorch's side of `modern`: ModernBERT's and Llama's parts, with npformer's weights."""

import itertools

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from benchmarks import workloads
from benchmarks.peers import shared


class Attention(nn.Module):
    """Rotary positions, grouped queries, a window, and PyTorch's fused attention."""

    def __init__(self, config, window, theta):
        super().__init__()
        d, n, d_head = config.d_model, config.n_heads, config.d_model // config.n_heads
        self.n, self.kv, self.causal = n, config.n_kv_heads or n, config.causal
        self.query = nn.Linear(d, d, bias=False)
        self.key, self.value = (nn.Linear(d, self.kv * d_head, bias=False) for _ in range(2))
        self.output = nn.Linear(d, d, bias=False)
        at = torch.arange(config.max_len, dtype=torch.float64)
        rates = theta ** (-torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)
        angles = torch.outer(at, rates).repeat(1, 2)
        self.register_buffer("cosine", angles.cos().float())
        self.register_buffer("sine", angles.sin().float())
        near = None if window is None else (at[:, None] - at).abs() <= window // 2
        self.register_buffer("near", near)

    def turned(self, x):
        """Turn halves of each head, as Hugging Face's models do."""
        a, b = x.chunk(2, -1)
        length = x.shape[-2]
        return x * self.cosine[:length] + torch.cat((-b, a), -1) * self.sine[:length]

    def forward(self, x):
        """(batch, length, d_model) -> the same shape."""
        query = self.turned(shared.heads(self.query(x), self.n))
        key = self.turned(shared.heads(self.key(x), self.kv))
        value = shared.heads(self.value(x), self.kv)
        y = F.scaled_dot_product_attention(
            query,
            key,
            value,
            self.near,
            is_causal=self.causal,
            enable_gqa=self.kv != self.n,
        )
        return self.output(shared.merged(y))


class Gated(nn.Module):
    """GEGLU or SwiGLU without biases."""

    def __init__(self, config):
        super().__init__()
        self.gate, self.up = (nn.Linear(config.d_model, config.d_ff, bias=False) for _ in range(2))
        self.down = nn.Linear(config.d_ff, config.d_model, bias=False)
        self.activation = {"gelu": F.gelu, "silu": F.silu}[config.activation]

    def forward(self, x):
        """(..., d_model) -> the same shape."""
        return self.down(self.activation(self.gate(x)) * self.up(x))


class Classifier(nn.Module):
    """Embedding, pre-norm blocks, final norm, mean, linear map."""

    def __init__(self, config):
        super().__init__()
        d, kind = config.d_model, nn.RMSNorm if config.norm_kind == "rms" else nn.LayerNorm
        options = {"eps": config.norm_eps} | ({} if kind is nn.RMSNorm else {"bias": False})
        self.tokens = nn.Embedding(workloads.VOCABULARY, d)
        self.norm = kind(d, **options) if config.embedding_norm else nn.Identity()
        self.blocks = nn.ModuleList()
        for i in range(config.n_layers):
            settings = config.mixer_settings(i)
            first = i == 0 and config.embedding_norm
            block = {
                "mixer_norm": nn.Identity() if first else kind(d, **options),
                "mixer": Attention(config, settings.window, settings.rope_theta),
                "feed_forward_norm": kind(d, **options),
                "feed_forward": Gated(config),
            }
            self.blocks.append(nn.ModuleDict(block))
        self.final_norm = kind(d, **options)
        self.classify = nn.Linear(d, workloads.CLASSES)

    def forward(self, ids):
        """Return the logits of token ids (batch, length)."""
        x = self.norm(self.tokens(ids))
        for block in self.blocks:
            x = x + block["mixer"](block["mixer_norm"](x))
            x = x + block["feed_forward"](block["feed_forward_norm"](x))
        return self.classify(self.final_norm(x).mean(dim=1))


class Peer(shared.Device):
    """The model, Adam, and its steps."""

    def __init__(self, workload, config):
        super().__init__()
        self.model = Classifier(config)
        self.adam = torch.optim.Adam(self.model.parameters(), workloads.LEARNING_RATE, fused=True)
        pairs = [tuple(map(torch.from_numpy, pair)) for pair in workloads.batches(workload)]
        self.first, self.batches = pairs[0][0], itertools.cycle(pairs)

    def load(self, named):
        """Take npformer's weights."""
        renamed = {"gamma": "weight"}
        for name, array in named.items():
            *path, last = name.replace("embed.", "").replace("encoder.", "").split(".")
            parameter = self.model.get_parameter(".".join([*path, renamed.get(last, last)]))
            linear = array.ndim == 2 and path[-1] != "tokens"
            shared.copy(parameter, np.ascontiguousarray(array.T if linear else array))

    def logits(self):
        """Return the logits of the first batch."""
        with torch.no_grad():
            return {"eager": self.model(self.first).numpy()}

    def train(self):
        """Run one training step."""
        x, y = next(self.batches)
        self.adam.zero_grad()
        F.cross_entropy(self.model(x), y).backward()
        self.adam.step()

    def turn(self, n):
        """Return the seconds per step, over n steps."""
        return self.timed(self.train, n)
