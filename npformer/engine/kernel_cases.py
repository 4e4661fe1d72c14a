"""Test cases of each GPU kernel for `kernel_check`: small arrays, and one larger than a grid.

A case runs with the plain pairs, or with the one kernel that it tests.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.core import Array, Gradients, Layer, asarray, backend_of, get_backend, to_numpy
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


def case_of_arrays(compute: Callable[..., dict[str, Array]], *inputs: np.ndarray) -> Case:
    """Return a case of ``compute(fast, *arrays)``, whose floats are cast to the dtype."""

    def run(backend: str, dtype: str, fast: bool) -> Results:
        arrays = (asarray(x.astype(dtype) if x.dtype.kind == "f" else x, backend) for x in inputs)
        return {name: to_numpy(array) for name, array in compute(fast, *arrays).items()}

    return run


def case_of_layer(kernel: str, make: Callable[..., Layer], *shape: int) -> Case:
    """Return a case of a layer and an input of this shape."""
    rng = np.random.default_rng(0)
    takes_ids = kernel == "embedding"
    x = rng.integers(7, size=shape) if takes_ids else rng.normal(size=shape)
    mask = np.arange(shape[-2]) < rng.integers(1, shape[-2] + 1, size=shape[:1])[:, None]

    def run(backend: str, dtype: str, fast: bool) -> Results:
        layer: Any = make(dtype=dtype).to(backend)
        padding = asarray(mask, backend) if kernel in ("attention_heads", "dense_heads") else None
        context = EngineContext(training=True, generator=np.random.default_rng(1), mask=padding)
        twins = Twins({kernel: gpu.KERNELS[kernel]}, get_backend(backend).array_type)
        twin = twins.make(layer, first=False) if fast else layer
        y, cache = twin.forward(asarray(x if takes_ids else x.astype(dtype), backend), context)
        dy = np.random.default_rng(2).normal(size=y.shape).astype(dtype)
        gradients = Gradients(layer)
        dx = twin.backward(asarray(dy, backend), cache, gradients)
        results = {"y": to_numpy(y)}
        for name, gradient in gradients.items():
            results[name] = to_numpy(gradient)
        if dx is not None:
            results["dx"] = to_numpy(dx)
        return results

    return run


def case_of_loss(rows: int, classes: int, smoothing: float) -> Case:
    """Return a case of softmax cross-entropy, in which some rows have no label."""
    rng = np.random.default_rng(0)

    def compute(fast: bool, logits: Array, labels: Array) -> dict[str, Array]:
        loss: Any = SoftmaxCrossEntropy(smoothing)
        if fast:
            pair = gpu.KERNELS["softmax_cross_entropy"]
            loss = FastSoftmaxCrossEntropy(pair, smoothing, EngineContext(training=True))
        value, cache = loss.forward(logits, labels)
        return {"y": value, "dlogits": loss.backward(0.7, cache)}

    logits = 5.0 * rng.normal(size=(rows, classes))
    return case_of_arrays(compute, logits, rng.integers(-1, classes, size=rows))


def adam(fast: bool, theta: Array, g: Array, m: Array, v: Array) -> dict[str, Array]:
    """Return the parameters and both moments after an update by Adam."""
    update = gpu.UPDATES["adam_update"] if fast else adam_update
    update(theta, g, m, v, t=3, lr=0.1, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.1)
    return {"y": theta, "m": m, "v": v}


def clipping(fast: bool, g: Array) -> dict[str, Array]:
    """Return the norm of a gradient, and the gradient after clipping."""
    clip = gpu.UPDATES["clip_by_global_norm"]
    return {"y": clip(g, 0.5) if fast else clip_by_global_norm({"": g}, 0.5), "g": g}


def generator(fast: bool, zeros: Array) -> dict[str, Array]:
    """Return masks and numbers drawn on the device; `philox` is the plain version."""
    n = len(zeros)
    if not fast:
        mask_words, words = (philox(n, draw, 7) for draw in range(2))
        return {
            "y": (mask_words >= 1 << 30) * 1.0,
            "uniform": (words >> np.uint64(8)) / float(1 << 24),
        }
    device_generator = gpu.DeviceGenerator(7, backend_of(zeros=zeros).name)
    is_kept = device_generator.dropout_mask((n,), 0.25, zeros)
    return {"y": is_kept * 1.0, "uniform": device_generator.random((n,), zeros.dtype.name)}


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


SMALL, MANY, WIDE, SEQUENCES = (3, 5, 8), (BEYOND, 1, 8), (1, 3, 2100), (BEYOND // 33 + 1, 33, 8)


def linear(dtype: str) -> Layer:
    """Return a linear map of 8 features."""
    return Linear(8, 5, seed=0, dtype=dtype)


def layer_norm(dtype: str) -> Layer:
    """Return a layer norm of 8 features."""
    return LayerNorm(8, dtype=dtype)


def wide_layer_norm(dtype: str) -> Layer:
    """Return a layer norm of more features than a block has threads."""
    return LayerNorm(2100, dtype=dtype)


def block(dtype: str) -> Layer:
    """Return a block of a mixer, its dropout and its norm, without a feed-forward network."""
    config = EncoderConfig(
        d_model=8, n_layers=1, n_heads=1, max_len=5, mixer="fourier", ffn="none", dropout=0.3
    )
    return EncoderBlock(config, seed=0, dtype=dtype)


def dropout(dtype: str) -> Layer:
    """Return a dropout."""
    return Dropout(0.3)


def embedding(dtype: str) -> Layer:
    """Return an embedding of 7 ids."""
    return Embedding(7, 8, seed=0, dtype=dtype)


def feed_forward_of(activation: str) -> Callable[..., Layer]:
    """Return a function that makes a feed-forward network."""

    def make(dtype: str) -> Layer:
        return PositionwiseFeedForward(8, 12, activation, seed=0, dtype=dtype)

    return make


def mixer_of(name: str, n_heads: int = 2, **options: Any) -> Callable[..., Layer]:
    """Return a function that makes a mixer."""
    settings = MixerSettings(8, n_heads, max_len=33, padding="zero", **options)

    def make(dtype: str) -> Layer:
        mixer: Layer = MIXERS[name].build(settings, seed=0, dtype=dtype)
        return mixer

    return make


LAYERS: dict[str, list[tuple[Callable[..., Layer], tuple[int, ...]]]] = {
    "linear": [(linear, SMALL), (linear, MANY)],
    "layer_norm": [(layer_norm, SMALL), (wide_layer_norm, WIDE), (layer_norm, MANY)],
    "residual_norm": [(block, SMALL), (block, MANY)],
    "dropout": [(dropout, SMALL), (dropout, WIDE), (dropout, MANY)],
    "embedding": [(embedding, (3, 5)), (embedding, (3, BEYOND))],
    "feed_forward": [
        (feed_forward_of("relu"), SMALL),
        (feed_forward_of("gelu"), SMALL),
        (feed_forward_of("gelu_tanh"), SMALL),
        (feed_forward_of("silu"), SMALL),
        (feed_forward_of("tanh"), SMALL),
        (feed_forward_of("relu"), MANY),
    ],
    "fourier_mixing": [(mixer_of("fourier"), SMALL), (mixer_of("fourier"), SEQUENCES)],
    "attention_heads": [
        (mixer_of("attention"), SMALL),
        (mixer_of("attention", causal=True, memory="blocks"), SMALL),
        (mixer_of("attention", n_heads=1), SEQUENCES),
    ],
    "dense_heads": [
        (mixer_of("dense_synthesizer", causal=True), SMALL),
        (mixer_of("dense_synthesizer", n_heads=1), SEQUENCES),
    ],
}

NORMAL_ARRAYS = [np.random.default_rng(0).normal(size=(4, n)) for n in (5, BEYOND_ENTRIES)]

CASES: dict[str, list[Case]] = {
    name: [case_of_layer(name, make, *shape) for make, shape in layers]
    for name, layers in LAYERS.items()
} | {
    "softmax_cross_entropy": [
        case_of_loss(7, 3, 0.0),
        case_of_loss(3, 2100, 0.1),
        case_of_loss(BEYOND, 8, 0.1),
    ],
    "adam_update": [
        case_of_arrays(adam, *arrays[:3], arrays[3] * arrays[3]) for arrays in NORMAL_ARRAYS
    ],
    "clip_by_global_norm": [case_of_arrays(clipping, arrays[0]) for arrays in NORMAL_ARRAYS],
    "DeviceGenerator": [case_of_arrays(generator, 0.0 * arrays[0]) for arrays in NORMAL_ARRAYS],
}
"""The cases of each kernel: small arrays first, one larger than a grid last."""
