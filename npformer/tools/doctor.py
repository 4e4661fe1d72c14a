"""What npformer finds on this machine, and whether it works."""

from __future__ import annotations

import importlib.metadata
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import npformer
from npformer.classifier import SequenceClassifier
from npformer.core import (
    PRECISIONS,
    Array,
    BackendUnavailableError,
    asarray,
    cores,
    get_backend,
    to_numpy,
    use_precision,
)
from npformer.models import EncoderConfig


@dataclass(frozen=True)
class Finding:
    """One line of the diagnosis.

    Attributes
    ----------
    what : str
    found : str
    ok : bool or None
        None for something that is not needed.
    """

    what: str
    found: str
    ok: bool | None = True


def diagnose() -> Iterator[Finding]:
    """Yield what is installed, what computes, and tests of a few seconds of both backends."""
    yield Finding("npformer", npformer.__version__)
    yield Finding("Python", f"{platform.python_version()}, {platform.platform()}")
    for package in ("numpy", "scipy", "safetensors", "tqdm", "threadpoolctl"):
        yield _package(package, needed=True)
    yield Finding("CPU", f"{cores()} cores")
    yield _blas()
    yield _package("matplotlib", needed=False, hint='python -m pip install "npformer[plot]"')
    yield _self_test("numpy")
    try:
        gpu = get_backend("cupy")
    except BackendUnavailableError as error:
        yield Finding("CuPy", _cupy_version() or "not installed", ok=None)
        yield Finding("GPU", str(error), ok=None)
        return
    for what, found in gpu.details():
        yield Finding(what, found)
    yield from _examine("cupy")


def _cupy_version() -> str | None:
    """Return the version of CuPy, whose package has a name for each version of CUDA."""
    for name in ("cupy-cuda13x", "cupy-cuda12x", "cupy"):
        try:
            return f"{importlib.metadata.version(name)} ({name})"
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def _examine(backend: str, size: int = 4096, seconds: float = 0.3) -> Iterator[Finding]:
    """Yield whether a GPU computes right, how fast its products are, and whether a model learns.

    Whatever goes wrong is a finding: drivers and libraries that do not fit raise errors of all
    kinds, at the first use of each.
    """
    try:
        yield _gradients_agree(backend)
        for precision in PRECISIONS:
            yield _product(backend, precision, size, seconds)
        yield _self_test(backend)
    except Exception as error:
        yield Finding("self-test", f"{backend}: {type(error).__name__}: {error}", ok=False)


AGREE = 1e-4
"""Of float32 gradients on two devices: sums in another order, other algorithms of exp and erf."""


def _gradients_agree(backend: str) -> Finding:
    """Compare a small model's gradients with NumPy's, in float32."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(8, size=(16, 32)), rng.integers(4, size=16)
    mask = np.arange(32) < rng.integers(1, 33, size=16)[:, None]
    mixers = ("attention", "dense_synthesizer", "fourier")
    config = EncoderConfig(
        d_model=32, n_layers=3, n_heads=2, d_ff=64, max_len=32, mixer=mixers, padding="per_length"
    )
    found = []
    for name in ("numpy", backend):
        model = SequenceClassifier(config, 4, vocab_size=8).to(name)
        _, gradients = model.loss_and_gradients(x, y, mask)
        found.append({n: to_numpy(g) for n, g in gradients.items()})
    largest = max(float(np.abs(g).max()) for g in found[0].values())
    apart = {n: float(np.abs(found[1][n] - g).max()) / largest for n, g in found[0].items()}
    worst = max(apart, key=lambda name: apart[name])
    return Finding(
        "gradients",
        f"{backend} and NumPy differ by {apart[worst]:.1e} of the largest at most, in {worst}",
        ok=apart[worst] <= AGREE,
    )


def _product(backend: str, precision: str, size: int, seconds: float) -> Finding:
    """Multiply large matrices for a moment."""
    rng = np.random.default_rng(0)
    a, b = (asarray(rng.random((size, size), dtype="float32"), backend) for _ in range(2))
    try:
        with use_precision(precision, backend):
            rate = _rate(a, b, seconds)
    except ValueError as error:  # this GPU has no TF32
        return Finding("products", str(error), ok=None)
    return Finding("products", f"{precision}: {rate / 1e12:.3g} TFLOP/s, matrices of size {size}")


def _rate(a: Array, b: Array, seconds: float) -> float:
    """Return the operations a second of products that follow each other."""

    def products(n: int) -> float:
        began = time.perf_counter()
        for _ in range(n):
            c = a @ b
        to_numpy(c[:1, :1])  # waits for the device
        return time.perf_counter() - began

    products(1)  # cuBLAS begins
    n = max(1, round(seconds / max(products(1), 1e-6)))
    return 2.0 * float(a.shape[0]) ** 3 * n / products(n)


def _package(name: str, *, needed: bool, hint: str = "") -> Finding:
    try:
        return Finding(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Finding(
            name, f"not installed{f'; {hint}' if hint else ''}", ok=False if needed else None
        )


def _blas() -> Finding:
    from threadpoolctl import threadpool_info

    np.ones((2, 2)) @ np.ones((2, 2))
    found = [
        f"{library['internal_api']} {library.get('version') or ''}, "
        f"{library['num_threads']} threads"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    ]
    return Finding("BLAS", "; ".join(found) or "none that threadpoolctl knows", bool(found) or None)


def _self_test(backend: str) -> Finding:
    """Train a small model for a moment: does it learn, and how fast is a step?"""
    rng = np.random.default_rng(0)
    x = rng.integers(8, size=(64, 16))
    y = x[:, 0]
    config = EncoderConfig(d_model=32, n_layers=1, n_heads=2, d_ff=64, max_len=16)
    model = SequenceClassifier(config, 8, vocab_size=8, pooling="first").to(backend)
    optimizer = npformer.Adam(model.parameters(), lr=3e-3)
    first, _ = model.loss_and_gradients(x, y)
    steps, began = 0, time.perf_counter()
    loss = first
    while steps < 30:
        loss, gradients = model.loss_and_gradients(x, y)
        optimizer.step(gradients)
        steps += 1
    each = (time.perf_counter() - began) / steps
    return Finding(
        "self-test",
        f"{backend}: loss {first:.3f} -> {loss:.3f} in {steps} steps of {1e3 * each:.1f} ms",
        ok=loss < 0.5 * first,
    )
