"""Kernels beside the pairs of `npformer.functional` that they replace: cases, and how to run them.

The same cases serve the kernels for the CPU and those for a GPU.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.engine import EngineContext

SEED = 5
"""Of the generator that draws dropout's masks."""


@dataclass(frozen=True, eq=False)
class Case:
    """One kernel on some inputs.

    Attributes
    ----------
    name : str
        Of the kernel.
    arrays : tuple of float64 array
        The kernel has a gradient for each, in this order.
    others : tuple
        Its other arguments.
    training : bool
        Whether dropout drops.
    """

    name: str
    arrays: tuple[Any, ...]
    others: tuple[Any, ...] = ()
    mask: Any = None
    training: bool = False

    def context(self, **options: Any) -> EngineContext:
        """Return a context for one call; its generator is a new one each time."""
        generator = np.random.default_rng(SEED) if self.training else None
        return EngineContext(training=self.training, generator=generator, mask=self.mask, **options)


def forward(case, arrays, context, kernels):
    """Return y and cache of the case's kernel."""
    kernel, _ = kernels[case.name]
    if case.name == "embedding":
        return kernel(*case.others, *arrays, context=context)
    if case.name == "dropout":
        return kernel(*arrays, *case.others, context.generator, context=context)
    return kernel(*arrays, *case.others, context=context)


def backward(case, dy, cache, kernels):
    """Return the kernel's gradients, in a tuple."""
    return to_tuple(kernels[case.name][1](dy, cache))


def to_tuple(result):
    return result if isinstance(result, tuple) else (result,)


def gradient_for(y):
    """Return a gradient of y without any regularity that could hide a mistake."""
    return np.random.default_rng(99).normal(size=y.shape).astype(y.dtype)


def expected(case, dtype="float64", dy=None):
    """Return y and the gradients by functional pairs, in float64, of numbers rounded to `dtype`."""
    y, pull = _run_pairs(case, dtype)
    dy = gradient_for(y) if dy is None else dy
    return (y, *pull(dy.astype(dtype).astype("float64")))


@cache
def _run_pairs(case, dtype):
    arrays = tuple(a.astype(dtype).astype("float64") for a in case.arrays)
    return REFERENCES[case.name](arrays, case.others, case.context())


# The pairs that a kernel replaces ----------------------------------------------------------------
def _reference_of_pair(name):
    forward, backward = getattr(F, name), getattr(F, f"{name}_backward")

    def reference(arrays, settings, context):
        y, cache = forward(*arrays, *settings)
        return y, lambda dy: to_tuple(backward(dy, cache))

    return reference


def _embedding(arrays, ids, context):
    y, cache = F.embedding(*ids, *arrays)
    return y, lambda dy: (F.embedding_backward(dy, cache),)


def _dropout(arrays, settings, context):
    y, cache = F.dropout(*arrays, *settings, context.generator)
    return y, lambda dy: (F.dropout_backward(dy, cache),)


def _residual_norm(arrays, settings, context):
    x, y, gamma, beta = arrays
    eps, rate = settings
    dropped, dropout_cache = F.dropout(y, rate, context.generator)
    z, norm_cache = F.layer_norm(x + dropped, gamma, beta, eps)

    def pull(dz):
        dsum, *dmap = F.layer_norm_backward(dz, norm_cache)
        return dsum, F.dropout_backward(dsum, dropout_cache), *dmap

    return z, pull


ACTIVATIONS = {
    "relu": (F.relu, F.relu_backward, {}),
    "gelu": (F.gelu, F.gelu_backward, {}),
    "gelu_tanh": (F.gelu, F.gelu_backward, {"approximate": "tanh"}),
    "silu": (F.silu, F.silu_backward, {}),
    "tanh": (F.tanh, F.tanh_backward, {}),
}
"""Pairs and options, by the names of kernels."""


def _feed_forward(arrays, settings, context):
    x, W1, b1, W2, b2 = arrays
    activate, activate_backward, options = ACTIVATIONS[settings[0]]
    before, expand_cache = F.linear(x, W1, b1)
    hidden, activation_cache = activate(before, **options)
    y, contract_cache = F.linear(hidden, W2, b2)

    def pull(dy):
        dhidden, dW2, db2 = F.linear_backward(dy, contract_cache)
        dbefore = activate_backward(dhidden, activation_cache)
        return *F.linear_backward(dbefore, expand_cache), dW2, db2

    return y, pull


def _gated_feed_forward(arrays, settings, context):
    x, W_gate, b_gate, W_up, b_up, W_down, b_down = arrays
    activate, activate_backward, options = ACTIVATIONS[settings[0]]
    before, gate_cache = F.linear(x, W_gate, b_gate)
    gate, activation_cache = activate(before, **options)
    up, up_cache = F.linear(x, W_up, b_up)
    y, down_cache = F.linear(gate * up, W_down, b_down)

    def pull(dy):
        dhidden, *ddown = F.linear_backward(dy, down_cache)
        dbefore = activate_backward(dhidden * up, activation_cache)
        dx, *dgate = F.linear_backward(dbefore, gate_cache)
        dx_up, *dup = F.linear_backward(dhidden * gate, up_cache)
        return dx + dx_up, *dgate, *dup, *ddown

    return y, pull


def _mask_for_heads(mask):
    return None if mask is None else mask[:, None, None, :]


def _attention_heads(arrays, settings, context):
    x, *maps = arrays
    n_heads, causal, _, theta, window, kv_heads = (*settings, None, None, None)[:6]
    projected = [F.linear(x, maps[i], maps[i + 1]) for i in (0, 2, 4)]
    kv_heads = kv_heads or n_heads
    sizes = n_heads, kv_heads, kv_heads
    by_head = [F.split_heads(y, n) for (y, _), n in zip(projected, sizes, strict=True)]
    rotary_caches = []
    if theta:
        rotated = [F.rotary(by_head[i], np.arange(x.shape[1]), theta) for i in (0, 1)]
        rotary_caches = [cache for _, cache in rotated]
        by_head[:2] = [y for y, _ in rotated]
    repeated = [F.repeat_heads(by_head[i], n_heads // kv_heads) for i in (1, 2)]
    by_head[1:] = [y for y, _ in repeated]
    mask = _mask_for_heads(context.mask)
    heads, cache = F.scaled_dot_product_attention(*by_head, mask, causal, window=window)

    def pull(dy):
        dheads = [*F.scaled_dot_product_attention_backward(F.split_heads(dy, n_heads), cache)]
        for i, (_, times) in enumerate(repeated):
            dheads[i + 1] = F.repeat_heads_backward(dheads[i + 1], times)
        for i, rotary_cache in enumerate(rotary_caches):
            dheads[i] = F.rotary_backward(dheads[i], rotary_cache)
        dx, gradients = 0.0, []
        for dhead, (_, linear_cache) in zip(dheads, projected, strict=True):
            dx_part, *dmap = F.linear_backward(F.merge_heads(dhead), linear_cache)
            dx = dx + dx_part
            gradients += dmap
        return dx, *gradients

    return F.merge_heads(heads), pull


def _dense_heads(arrays, settings, context):
    x, W1, b1, W2, b2, W_value, b_value = arrays
    (causal,) = settings
    value, value_cache = F.linear(x, W_value, b_value)
    heads, cache = F.dense_synthesizer(
        x, F.split_heads(value, len(W2)), W1, b1, W2, b2, _mask_for_heads(context.mask), causal
    )

    def pull(dy):
        dx, dvalue, *dmaps = F.dense_synthesizer_backward(F.split_heads(dy, len(W2)), cache)
        dx_value, *dvalue_map = F.linear_backward(F.merge_heads(dvalue), value_cache)
        return dx + dx_value, *dmaps, *dvalue_map

    return F.merge_heads(heads), pull


REFERENCES = {
    "attention_heads": _attention_heads,
    "dense_heads": _dense_heads,
    "dropout": _dropout,
    "embedding": _embedding,
    "feed_forward": _feed_forward,
    "fourier_mixing": _reference_of_pair("fourier_mixing"),
    "gated_feed_forward": _gated_feed_forward,
    "layer_norm": _reference_of_pair("layer_norm"),
    "rms_norm": _reference_of_pair("rms_norm"),
    "linear": _reference_of_pair("linear"),
    "residual_norm": _residual_norm,
    "softmax_cross_entropy": _reference_of_pair("softmax_cross_entropy"),
}


# Inputs -------------------------------------------------------------------------------------------
def normals(*shapes, seed=0):
    """Draw a standard normal array of each shape."""
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape) for shape in shapes)


def linear(shape=(5, 7, 64), d_out=3, bias=True):
    d_in = shape[-1]
    x, W, b = normals(shape, (d_in, d_out), (d_out,))
    return Case("linear", (x, W / d_in**0.5, b) if bias else (x, W / d_in**0.5))


def layer_norm(shape=(5, 7, 64), eps=1e-5, mean=0.0):
    x, gamma, beta = normals(shape, shape[-1:], shape[-1:])
    return Case("layer_norm", (mean + x, 1.0 + 0.5 * gamma, beta), (eps,))


def residual_norm(shape=(5, 7, 64), rate=0.3, training=True):
    x, y, gamma, beta = normals(shape, shape, shape[-1:], shape[-1:])
    return Case("residual_norm", (x, y, 1.0 + 0.5 * gamma, beta), (1e-5, rate), training=training)


def feed_forward(shape=(5, 7, 64), d_ff=67, activation="gelu", scale=1.0):
    d = shape[-1]
    x, W1, b1, W2, b2 = normals(shape, (d, d_ff), (d_ff,), (d_ff, d), (d,))
    arrays = scale * x, W1 / d**0.5, b1, W2 / d_ff**0.5, b2
    return Case("feed_forward", arrays, (activation,))


def rms_norm(shape=(5, 7, 64), eps=1e-5):
    x, gamma = normals(shape, shape[-1:])
    return Case("rms_norm", (x, 1.0 + 0.5 * gamma), (eps,))


def gated_feed_forward(shape=(5, 7, 64), d_ff=67, activation="silu"):
    d = shape[-1]
    x, *maps = normals(shape, *2 * [(d, d_ff), (d_ff,)], (d_ff, d), (d,))
    maps = [a / len(a) ** 0.5 if a.ndim > 1 else a for a in maps]
    return Case("gated_feed_forward", (x, *maps), (activation,))


def fourier_mixing(shape=(5, 7, 64)):
    return Case("fourier_mixing", normals(shape))


def embedding(shape=(5, 7), vocab_size=11, d=64, dtype="int64"):
    ids = np.random.default_rng(1).integers(0, vocab_size, shape).astype(dtype)
    return Case("embedding", normals((vocab_size, d)), (ids,))


def dropout(shape=(5, 7, 64), rate=0.3):
    return Case("dropout", normals(shape), (rate,), training=True)


def cross_entropy(shape=(5, 7, 64), smoothing=0.0):
    """Every third label is none."""
    labels = np.random.default_rng(1).integers(0, shape[-1], shape[:-1])
    labels.flat[1::3] = F.NO_LABEL
    return Case("softmax_cross_entropy", (5.0 * normals(shape)[0],), (labels, smoothing))


MASKS = ("none", "padded", "in front", "one token", "nothing", "all")


def mask_of(kind, batch, length):
    """Return a mask of a kind: where the padding lies."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, length + 1, batch)
    lengths[0] = length  # a whole sequence, and if there is another, one that is all padding
    lengths[1:2] = 0
    if kind == "none":
        return None
    if kind == "padded":
        return np.arange(length) < lengths[:, None]
    if kind == "in front":  # the first queries of a causal mixer then see nothing
        return np.arange(length)[::-1] < lengths[:, None]
    if kind == "one token":
        return np.arange(length) == rng.integers(0, length, batch)[:, None]
    return np.full((batch, length), kind == "all")


@cache
def attention_heads(
    batch=3,
    length=13,
    n_heads=2,
    d_head=8,
    mask="none",
    causal=False,
    store=None,
    scale=1.0,
    **more,
):
    """The scores grow with the square of `scale`; more: theta, window and kv_heads."""
    d, of_kv = n_heads * d_head, d_head * (more.get("kv_heads") or n_heads)
    maps = [(d, d), (d,), *2 * [(d, of_kv), (of_kv,)]]
    x, *maps = normals((batch, length, d), *maps)
    for i in (0, 2, 4):
        maps[i] = maps[i] / d**0.5
    for i in range(4):
        maps[i] = maps[i] * scale
    settings = (
        n_heads,
        causal,
        store,
        *map(more.get, ("theta", "window", "kv_heads") if more else ()),
    )
    return Case("attention_heads", (x, *maps), settings, mask_of(mask, batch, length))


@cache
def dense_heads(
    batch=3, length=13, n_heads=2, d_head=8, max_len=17, mask="none", causal=False, bias=1.0
):
    """`bias` is the size of the scores' bias."""
    d = n_heads * d_head
    x, W1, b1, W2, b2, W_value, b_value = normals(
        (batch, length, d),
        (d, d),
        (d,),
        (n_heads, d_head, max_len),
        (n_heads, max_len),
        (d, d),
        (d,),
    )
    arrays = x, W1 / d**0.5, b1, W2 / d_head**0.5, bias * b2, W_value / d**0.5, b_value
    return Case("dense_heads", arrays, (causal,), mask_of(mask, batch, length))
