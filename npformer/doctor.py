"""What npformer finds on this machine, and whether it works."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import npformer
from npformer.backend import BackendUnavailableError, get_backend
from npformer.classifier import SequenceClassifier
from npformer.encoder import EncoderConfig


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
    """Yield what is installed, what computes, and a self-test of both backends."""
    yield Finding("npformer", npformer.__version__)
    yield Finding("Python", f"{platform.python_version()}, {platform.platform()}")
    for package in ("numpy", "scipy", "safetensors", "tqdm", "threadpoolctl"):
        yield _package(package, needed=True)
    yield Finding("CPU", f"{os.cpu_count()} cores")
    yield _blas()
    yield _package("matplotlib", needed=False, hint="python -m pip install 'npformer[plot]'")
    yield _self_test("numpy")
    try:
        device = get_backend("cupy").device()
    except BackendUnavailableError as error:
        yield Finding("GPU", str(error), ok=None)
        return
    yield Finding("GPU", device)
    yield _self_test("cupy")


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
