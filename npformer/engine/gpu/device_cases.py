"""What `device_kernels` computes with each GPU kernel: small arrays, and one larger than a grid.

A case runs either with the plain pairs or with the one kernel that it tests.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.core import Gradients, asarray, get_backend, to_numpy
from npformer.engine import EngineContext, gpu
from npformer.engine.fast_losses import FastSoftmaxCrossEntropy
from npformer.engine.gpu.adam import SQUARES
from npformer.engine.gpu.source import ELEMENTWISE
from npformer.engine.gpu.sums import GROUPS, ROWS
from npformer.engine.twins import Twins
from npformer.layers import Dropout, Embedding, LayerNorm, Linear, PositionwiseFeedForward
from npformer.mixers import MIXERS, MixerSettings
from npformer.models import EncoderBlock, EncoderConfig
from npformer.models.losses import SoftmaxCrossEntropy
from npformer.optim import adam_update, clip_by_global_norm
from npformer.proof.results import Results

BEYOND = GROUPS * ROWS + 4
"""More rows than a grid covers: `column_sums` has at most `GROUPS` groups of `ROWS` rows each."""

BEYOND_ENTRIES = SQUARES * ELEMENTWISE + 4
"""More entries than a grid covers: clipping has at most `SQUARES * ELEMENTWISE` threads."""

Case = Callable[[str, str, bool], Results]
"""Takes backend, dtype and whether to use the kernel; returns y and all gradients."""


def of_layer(kernel: str, make: Callable[[str], Any], *shape: int) -> Case:
    """Return a case of a layer on an array of this shape."""
    rng, ids = np.random.default_rng(0), kernel == "embedding"
    x = rng.integers(7, size=shape) if ids else rng.normal(size=shape)
    mask = np.arange(shape[-2]) < rng.integers(1, shape[-2] + 1, size=shape[:1])[:, None]

    def run(backend: str, dtype: str, fast: bool) -> Results:
        layer = make(dtype).to(backend)
        padding = asarray(mask, backend) if kernel in ("attention_heads", "dense_heads") else None
        context = EngineContext(training=True, generator=np.random.default_rng(1), mask=padding)
        twin = layer
        if fast:
            only = {kernel: gpu.KERNELS[kernel]}
            twin = Twins(only, get_backend(backend).array_type).make(layer, first=False)
        y, cache = twin.forward(asarray(x if ids else x.astype(dtype), backend), context)
        dy = np.random.default_rng(2).normal(size=y.shape).astype(dtype)
        gradients = Gradients(layer)
        dx = twin.backward(asarray(dy, backend), cache, gradients)
        found = {"y": y, **gradients} | ({} if dx is None else {"dx": dx})
        return {name: to_numpy(array) for name, array in found.items()}

    return run


def of_loss(rows: int, classes: int, smoothing: float) -> Case:
    """Return a case of softmax cross-entropy, in which some rows have no label."""
    rng = np.random.default_rng(0)
    logits, labels = 5.0 * rng.normal(size=(rows, classes)), rng.integers(-1, classes, size=rows)

    def run(backend: str, dtype: str, fast: bool) -> Results:
        loss: Any = SoftmaxCrossEntropy(smoothing)
        if fast:
            pair = gpu.KERNELS["softmax_cross_entropy"]
            loss = FastSoftmaxCrossEntropy(pair, smoothing, EngineContext(training=True))
        given = asarray(logits.astype(dtype), backend), asarray(labels, backend)
        value, cache = loss.forward(*given)
        return {"y": to_numpy(value), "dlogits": to_numpy(loss.backward(0.7, cache))}

    return run


def of_adam(n: int) -> Case:
    """Return a case of Adam's update."""
    drawn = np.random.default_rng(0).normal(size=(4, n))

    def run(backend: str, dtype: str, fast: bool) -> Results:
        numbers = *drawn[:3], drawn[3] * drawn[3]
        theta, g, m, v = (asarray(x.astype(dtype), backend) for x in numbers)
        update = gpu.UPDATES["adam_update"] if fast else adam_update
        update(theta, g, m, v, t=3, lr=0.1, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.1)
        return {"y": to_numpy(theta), "m": to_numpy(m), "v": to_numpy(v)}

    return run


def of_clipping(n: int) -> Case:
    """Return a case of clipping."""
    drawn = np.random.default_rng(0).normal(size=n)

    def run(backend: str, dtype: str, fast: bool) -> Results:
        g = asarray(drawn.astype(dtype), backend)
        norm = (
            gpu.UPDATES["clip_by_global_norm"](g, 0.5)
            if fast
            else clip_by_global_norm({"": g}, 0.5)
        )
        return {"y": to_numpy(norm), "g": to_numpy(g)}

    return run


def of_generator(n: int) -> Case:
    """Return a case of masks and numbers drawn on the device; `philox` is its plain version."""

    def run(backend: str, dtype: str, fast: bool) -> Results:
        if not fast:
            words = [philox(n, draw, 7) for draw in range(2)]
            return {
                "y": (words[0] >= 1 << 30) * 1.0,
                "uniform": (words[1] >> np.uint64(8)) / float(1 << 24),
            }
        generator = gpu.DeviceGenerator(7, backend)
        kept = generator.dropout_mask((n,), 0.25, asarray(np.zeros(1, dtype), backend))
        return {"y": to_numpy(kept) * 1.0, "uniform": to_numpy(generator.random((n,), dtype))}

    return run


def philox(n: int, draw: int, seed: int) -> np.ndarray:
    """Return n words of Philox4x32-10 (Salmon et al., 2011) as `cuda/dropout.cu` counts them."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    zeros = np.zeros(-(-n // 4), dtype=np.uint64)
    a, b, c, d = np.arange(len(zeros), dtype=np.uint64), zeros, zeros + np.uint64(draw), zeros
    for i in range(10):
        keys = (seed + i * 0x9E3779B9, i * 0xBB67AE85)
        even, odd = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
        one, other = (np.uint64(key & 0xFFFFFFFF) for key in keys)
        a, b, c, d = (odd >> half) ^ b ^ one, odd & low, (even >> half) ^ d ^ other, even & low
    return np.stack((a, b, c, d), axis=1).reshape(-1)[:n]


def _feed_forward(activation: Any) -> Callable[[str], Any]:
    return lambda dtype: PositionwiseFeedForward(8, 12, activation=activation, seed=0, dtype=dtype)


def _mixer(name: str, n_heads: int = 2, **settings: Any) -> Callable[[str], Any]:
    chosen = MixerSettings(8, n_heads, max_len=33, padding="zero", **settings)
    return lambda dtype: MIXERS[name].build(chosen, seed=0, dtype=dtype)


def _block(dtype: str) -> EncoderBlock:
    config = EncoderConfig(
        d_model=8, n_layers=1, n_heads=1, max_len=5, mixer="fourier", ffn="none", dropout=0.3
    )
    return EncoderBlock(config, seed=0, dtype=dtype)


def _linear(dtype: str) -> Linear:
    return Linear(8, 5, seed=0, dtype=dtype)


def _embedding(dtype: str) -> Embedding:
    return Embedding(7, 8, seed=0, dtype=dtype)


def _norm(d: int) -> Callable[[str], Any]:
    return lambda dtype: LayerNorm(d, dtype=dtype)


SMALL, MANY, WIDE, SEQUENCES = (3, 5, 8), (BEYOND, 1, 8), (1, 3, 2100), (BEYOND // 33 + 1, 33, 8)

LAYERS: dict[str, list[tuple[Callable[[str], Any], tuple[int, ...]]]] = {
    "linear": [(_linear, SMALL), (_linear, MANY)],
    "layer_norm": [(_norm(8), SMALL), (_norm(2100), WIDE), (_norm(8), MANY)],
    "residual_norm": [(_block, SMALL), (_block, MANY)],
    "dropout": [(lambda dtype: Dropout(0.3), shape) for shape in (SMALL, WIDE, MANY)],
    "embedding": [(_embedding, (3, 5)), (_embedding, (3, BEYOND))],
    "feed_forward": [
        *((_feed_forward(name), SMALL) for name in ("relu", "gelu", "gelu_tanh", "silu", "tanh")),
        (_feed_forward("gelu"), MANY),
    ],
    "fourier_mixing": [(_mixer("fourier"), SMALL), (_mixer("fourier"), SEQUENCES)],
    "attention_heads": [
        (_mixer("attention"), SMALL),
        (_mixer("attention", causal=True, memory="blocks"), SMALL),
        (_mixer("attention", n_heads=1), SEQUENCES),
    ],
    "dense_heads": [
        (_mixer("dense_synthesizer", causal=True), SMALL),
        (_mixer("dense_synthesizer", n_heads=1), SEQUENCES),
    ],
}

CASES: dict[str, list[Case]] = {
    name: [of_layer(name, make, *shape) for make, shape in found] for name, found in LAYERS.items()
} | {
    "softmax_cross_entropy": [of_loss(7, 3, 0.0), of_loss(3, 2100, 0.1), of_loss(BEYOND, 8, 0.1)],
    "adam_update": [of_adam(5), of_adam(BEYOND_ENTRIES)],
    "clip_by_global_norm": [of_clipping(5), of_clipping(BEYOND_ENTRIES)],
    "DeviceGenerator": [of_generator(5), of_generator(BEYOND_ENTRIES)],
}
"""By kernel: small cases, and last one larger than a grid."""
