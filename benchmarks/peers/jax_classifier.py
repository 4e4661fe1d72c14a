"""JAX's side: the same models, compiled by XLA, with optax's Adam."""

# ruff: noqa: D102 (the methods are those of `peers.classifiers.Peer`)

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks import workloads
from benchmarks.timing import timed

EPS = 1e-5
ACTIVATIONS = {"gelu": lambda x: jax.nn.gelu(x, approximate=False), "relu": jax.nn.relu}


def linear(x, w, name):
    return x @ w[f"{name}.weight"] + w[f"{name}.bias"]


def layer_norm(x, w, name):
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + EPS)
    return scaled * w[f"{name}.gamma"] + w[f"{name}.beta"]


def dropout(x, rate, key):
    if key is None or not rate:
        return x
    kept = jax.random.bernoulli(key, 1.0 - rate, x.shape)
    return jnp.where(kept, x / (1.0 - rate), 0.0)


def by_head(x, n):
    return x.reshape(*x.shape[:-1], n, -1)


def attention(x, w, prefix, n_heads):
    parts = (
        by_head(linear(x, w, f"{prefix}{name}"), n_heads) for name in ("query", "key", "value")
    )
    y = jax.nn.dot_product_attention(*parts)
    return linear(y.reshape(x.shape), w, f"{prefix}output")


def dense_synthesizer(x, w, prefix, n_heads):
    hidden = by_head(jax.nn.relu(x @ w[f"{prefix}W1"] + w[f"{prefix}b1"]), n_heads)
    scores = jnp.einsum("blhf,hfk->bhlk", hidden, w[f"{prefix}W2"]) + w[f"{prefix}b2"][:, None]
    value = by_head(linear(x, w, f"{prefix}value"), n_heads)
    y = jnp.einsum("bhlk,bkhf->blhf", jax.nn.softmax(scores, axis=-1), value)
    return linear(y.reshape(x.shape), w, f"{prefix}output")


def fourier(x, w, prefix, n_heads):
    return jnp.fft.fft2(x).real


MIXERS = {"attention": attention, "dense_synthesizer": dense_synthesizer, "fourier": fourier}


def logits_of(case, w, ids, key=None):
    """Return the logits of a batch; with a key, in training."""
    size = case.workload
    keys = iter([None] * 99 if key is None else jax.random.split(key, 1 + 2 * size.layers))
    x = math.sqrt(size.d_model) * w["embed.tokens.weight"][ids] + sinusoids(*ids.shape[1:], w)
    x = dropout(x, case.dropout, next(keys))
    for i in range(size.layers):
        prefix = f"encoder.blocks.{i}."
        mixed = MIXERS[case.mixer](x, w, f"{prefix}mixer.", size.heads)
        rate = 0.0 if case.mixer == "fourier" else case.dropout
        x = layer_norm(x + dropout(mixed, rate, next(keys)), w, f"{prefix}mixer_norm")
        hidden = ACTIVATIONS[case.activation](linear(x, w, f"{prefix}feed_forward.expand"))
        y = linear(hidden, w, f"{prefix}feed_forward.contract")
        x = layer_norm(x + dropout(y, case.dropout, next(keys)), w, f"{prefix}feed_forward_norm")
    return linear(x.mean(1), w, "classify")


def sinusoids(length, w):
    """Return the table of positions of Vaswani et al. (2017)."""
    d_model = w["embed.tokens.weight"].shape[1]
    even = np.arange(0, d_model, 2)
    angle = np.arange(length)[:, None] / 10000.0 ** (even / d_model)
    return jnp.asarray(
        np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(length, d_model), "f"
    )


class Peer:
    """JAX's model of a case with given weights, and its steps."""

    def __init__(self, case):
        self.case = case
        self.batches = itertools.cycle(
            [tuple(map(jnp.asarray, batch)) for batch in workloads.batches(case.workload)]
        )

    def load(self, weights):
        self.weights = {name: jnp.asarray(array) for name, array in weights.items()}
        self.adam = optax.adam(workloads.LEARNING_RATE)
        self.state, self.key = self.adam.init(self.weights), jax.random.key(0)
        self.first = self.weights

        def loss_of(w, ids, labels, key):
            logits = logits_of(self.case, w, ids, key)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        def train(w, state, key, ids, labels):
            key, drawn = jax.random.split(key)
            loss, gradients = jax.value_and_grad(loss_of)(w, ids, labels, drawn)
            updates, state = self.adam.update(gradients, state)
            return optax.apply_updates(w, updates), state, key, loss

        self.train = jax.jit(train, donate_argnums=(1,))

    def choose(self):
        """There is one way."""

    def logits(self):
        ids = jnp.asarray(workloads.batches(self.case.workload)[0][0])
        return {"JAX": np.asarray(jax.jit(logits_of, static_argnums=0)(self.case, self.first, ids))}

    def step(self):
        ids, labels = next(self.batches)
        self.weights, self.state, self.key, loss = self.train(
            self.weights, self.state, self.key, ids, labels
        )
        return loss.block_until_ready()

    def losses(self, who, n):
        return [float(self.step()) for _ in range(n)]

    def turn(self, who, n):
        return timed(self.step, n)
