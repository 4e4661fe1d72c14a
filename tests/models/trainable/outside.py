"""Models as a user writes them, and data for them."""

import numpy as np

import npformer as nf
from npformer import functional as F
from npformer.data import sharded
from npformer.layers import Embedding, Linear, MeanPooling
from npformer.models.losses import MeanSquaredError, SoftmaxCrossEntropy

LENGTH, FEATURES, WORDS = 6, 3, 7


def config(**changes):
    sizes = {"d_model": 8, "n_layers": 1, "n_heads": 2, "d_ff": 12, "max_len": LENGTH}
    return nf.EncoderConfig(**(sizes | changes))


class Chain(nf.Model):
    def forward(self, x, context):
        caches = []
        for layer in self.chain():
            x, cache = layer.forward(x, context)
            caches.append(cache)
        return x, caches

    def backward(self, dy, caches, gradients):
        for layer, cache in zip(reversed(self.chain()), reversed(caches), strict=True):
            dy = layer.backward(dy, cache, gradients)
        return dy


class Regressor(Chain):
    """Two numbers for a sequence of vectors."""

    loss = MeanSquaredError()
    n_classes = 2

    def __init__(self, seed=0, **changes):
        rng = np.random.default_rng(seed)
        self.read = Linear(FEATURES, 8, seed=rng, dtype="float64")
        self.encoder = nf.Encoder(config(**changes), seed=rng, dtype="float64")
        self.pool = MeanPooling()
        self.answer = Linear(8, 2, seed=rng, dtype="float64")
        self.flatten()

    def chain(self):
        return [self.read, self.encoder, self.pool, self.answer]


class NextToken(Chain):
    """The logits of the token that follows each token."""

    loss = SoftmaxCrossEntropy()
    n_classes = WORDS
    targets_of = 0

    def __init__(self, seed=0, **changes):
        rng = np.random.default_rng(seed)
        self.embed = Embedding(WORDS, 8, seed=rng, dtype="float64")
        self.encoder = nf.Encoder(config(causal=True, **changes), seed=rng, dtype="float64")
        self.answer = Linear(8, WORDS, seed=rng, dtype="float64")
        self.flatten()

    def chain(self):
        return [self.embed, self.encoder, self.answer]


class Similarity(nf.Model):
    """One number for two sequences: the inner product of what an encoder makes of each."""

    loss = MeanSquaredError()
    n_inputs = 2
    n_classes = 1

    def __init__(self, seed=0, **changes):
        rng = np.random.default_rng(seed)
        self.read = Linear(FEATURES, 8, seed=rng, dtype="float64")
        self.encoder = nf.Encoder(config(**changes), seed=rng, dtype="float64")
        self.flatten()

    def forward(self, a, b, context):
        one, one_cache = self.side(a, context)
        other, other_cache = self.side(b, context.for_memory())
        return (one * other).sum(axis=1, keepdims=True), (one, other, one_cache, other_cache)

    def backward(self, dy, cache, gradients):
        one, other, one_cache, other_cache = cache
        da = self.side_backward(dy * other, one_cache, gradients)
        return da, self.side_backward(dy * one, other_cache, gradients)

    def side(self, x, context):
        x, read_cache = self.read.forward(x, context)
        x, encoder_cache = self.encoder.forward(x, context)
        pooled, pool_cache = F.mean_pooling(x, context.mask)
        return pooled, (read_cache, encoder_cache, pool_cache)

    def side_backward(self, dpooled, cache, gradients):
        read_cache, encoder_cache, pool_cache = cache
        dx = F.mean_pooling_backward(dpooled, pool_cache)
        dx = self.encoder.backward(dx, encoder_cache, gradients)
        return self.read.backward(dx, read_cache, gradients)


class Tagger(nf.Model):
    """A class for each word of a sentence, which depends on a series, too."""

    loss = SoftmaxCrossEntropy()
    n_inputs = 2
    n_classes = 3
    targets_of = 1

    def __init__(self, seed=0, **changes):
        rng = np.random.default_rng(seed)
        self.read = Linear(FEATURES, 8, seed=rng, dtype="float64")
        self.pool = MeanPooling()
        self.embed = Embedding(WORDS, 8, scale=True, seed=rng, dtype="float64")
        self.encoder = nf.Encoder(config(**changes), seed=rng, dtype="float64")
        self.answer = Linear(8, 3, seed=rng, dtype="float64")
        self.flatten()

    def forward(self, series, ids, context):
        u, read_cache = self.read.forward(series, context)
        u, pool_cache = self.pool.forward(u, context)
        words = context.for_memory()
        v, embed_cache = self.embed.forward(ids, words)
        v, encoder_cache = self.encoder.forward(v + u[:, None, :], words)
        y, answer_cache = self.answer.forward(v, words)
        return y, (read_cache, pool_cache, embed_cache, encoder_cache, answer_cache)

    def backward(self, dy, cache, gradients):
        read_cache, pool_cache, embed_cache, encoder_cache, answer_cache = cache
        dv = self.answer.backward(dy, answer_cache, gradients)
        dv = self.encoder.backward(dv, encoder_cache, gradients)
        self.embed.backward(dv, embed_cache, gradients)
        du = self.pool.backward(dv.sum(axis=1), pool_cache, gradients)
        return self.read.backward(du, read_cache, gradients), None


MODELS = {"regressor": Regressor, "next token": NextToken, "similarity": Similarity}
MODELS["tagger"] = Tagger


def masks(rng, n, length=LENGTH):
    return np.arange(length) < rng.integers(1, length + 1, n)[:, None]


def data_of(name, n=20, seed=0):
    rng = np.random.default_rng(seed)
    mask = masks(rng, n)
    if name == "next token":
        ids = (rng.integers(0, WORDS, (n, 1)) + np.arange(LENGTH + 1)) % WORDS  # they count
        return ids[:, :-1], ids[:, 1:], mask
    x = rng.normal(size=(n, LENGTH, FEATURES))
    mean = (x * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
    if name == "regressor":
        return x, mean[:, :2].copy(), mask
    if name == "tagger":
        ids = rng.integers(0, WORDS, (n, LENGTH - 1))
        return (x, ids), (ids + (mean[:, :1] > 0.0)) % 3, (mask, masks(rng, n, LENGTH - 1))
    other = rng.normal(size=(n, LENGTH - 1, FEATURES))
    of_other = masks(rng, n, LENGTH - 1)
    return (x, other), mean[:, :1] * 3.0, (mask, of_other)


def as_files(folder, data, parts=0):

    def store(array, name):
        if isinstance(array, tuple):
            return tuple(store(entry, f"{name}-{i}") for i, entry in enumerate(array))
        if array is None:
            return None
        for k, shard in enumerate(np.array_split(array, parts or 1)):
            np.save(folder / f"{name}.{k}.npy", shard)
        if parts:
            return sharded(str(folder / f"{name}.*.npy"))
        return np.load(folder / f"{name}.0.npy", mmap_mode="r")

    return store(tuple(data), "data")
