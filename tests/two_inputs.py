"""Layers with two inputs, right ones, for tests."""

import numpy as np

import npformer as nf
from npformer import functional as F
from npformer.core import generators
from npformer.layers import Embedding, Linear


class Bilinear(nf.TwoInputLayer):
    """y_ij = a_i W b_j^T: (batch, n, d) and (batch, m, e) to (batch, n, m)."""

    def __init__(self, d, e, *, seed=0, dtype="float64"):
        W = np.random.default_rng(seed).normal(size=(d, e)).astype(dtype)
        self.weight = nf.Parameter(W)

    def forward(self, a, b, context):
        W = self.weight.value
        return (a @ W) @ b.swapaxes(-1, -2), (a, W, b)

    def backward(self, dy, cache, gradients):
        a, W, b = cache
        rows = dy @ b  # [batch, n, e]
        gradients.add(self.weight, np.einsum("bnd,bne->de", a, rows))
        return rows @ W.T, dy.swapaxes(-1, -2) @ (a @ W)


class CrossAttention(nf.TwoInputLayer):
    """Each token of x takes from the tokens of a memory; at x's own padding y is 0."""

    def __init__(self, d, d_memory, *, seed=0, dtype="float64"):
        rng = generators.from_seed(seed)
        self.query = Linear(d, d, seed=rng, dtype=dtype)
        self.key = Linear(d_memory, d, seed=rng, dtype=dtype)
        self.value = Linear(d_memory, d, seed=rng, dtype=dtype)

    def forward(self, x, memory, context):
        q, q_cache = self.query.forward(x, context)
        k, k_cache = self.key.forward(memory, context.for_memory())
        v, v_cache = self.value.forward(memory, context.for_memory())
        key_mask = None if context.memory_mask is None else context.memory_mask[:, None, :]
        y, cache = F.scaled_dot_product_attention(q, k, v, key_mask)
        is_token = 1.0 if context.mask is None else context.mask[..., None]
        return y * is_token, (q_cache, k_cache, v_cache, cache, is_token)

    def backward(self, dy, cache, gradients):
        q_cache, k_cache, v_cache, cache, is_token = cache
        dq, dk, dv = F.scaled_dot_product_attention_backward(dy * is_token, cache)
        dmemory = self.value.backward(dv, v_cache, gradients)
        dmemory = dmemory + self.key.backward(dk, k_cache, gradients)
        return self.query.backward(dq, q_cache, gradients), dmemory


class WordsToVectors(nf.TwoInputLayer):
    """Token ids, which have no gradient, and the vectors that they are compared with."""

    def __init__(self, vocab_size, d, *, dtype="float64"):
        self.embed = Embedding(vocab_size, d, seed=0, dtype=dtype)
        self.compare = Bilinear(d, d, seed=1, dtype=dtype)

    def forward(self, ids, vectors, context):
        embedded, embed_cache = self.embed.forward(ids, context)
        y, cache = self.compare.forward(embedded, vectors, context)
        return y, (embed_cache, cache)

    def backward(self, dy, cache, gradients):
        embed_cache, cache = cache
        dembedded, dvectors = self.compare.backward(dy, cache, gradients)
        self.embed.backward(dembedded, embed_cache, gradients)
        return None, dvectors


class Twice(nf.TwoInputLayer):
    """One layer of two inputs applied twice, to the same memory: its gradient is a sum."""

    def __init__(self, layer):
        self.layer = layer

    def forward(self, a, b, context):
        between, first = self.layer.forward(a, b, context)
        y, second = self.layer.forward(between, b, context)
        return y, (first, second)

    def backward(self, dy, cache, gradients):
        first, second = cache
        dbetween, db = self.layer.backward(dy, second, gradients)
        da, more = self.layer.backward(dbetween, first, gradients)
        return da, db + more
