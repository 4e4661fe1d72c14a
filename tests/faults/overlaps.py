"""Switches whose uses overlap in several threads: each thread has what it asked for.

A switch that restores what it found restores the wrong thing when two threads enter and leave it
in the order A in, B in, A out, B out.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import numpy as np

import npformer as nf
from npformer.core import dispatch
from npformer.engine.blas import OneBlasThread
from tests.engine.helpers import blas_threads

THREADS = 3
STEPS_A_ROUND = 12


class SwitchingThread:
    """A thread that enters and leaves switches when it is told to."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._inside: list[ExitStack] = []
        self.kernels: list[bool] = []  # what it asked for, outermost first
        self.holds_blas: list[bool] = []

    def run(self, function: Any, *arguments: Any) -> Any:
        """Call a function in this thread, and wait for its result."""
        return self._pool.submit(function, *arguments).result()

    def enter(self, kernels: bool, holds_blas: bool) -> None:
        """Switch the engine, and perhaps hold BLAS to one thread."""
        self.kernels.append(kernels)
        self.holds_blas.append(holds_blas)
        self.run(self._enter, kernels, holds_blas)

    def leave(self) -> None:
        """Leave what was entered last."""
        self.kernels.pop()
        self.holds_blas.pop()
        self.run(self._inside.pop().close)

    def _enter(self, kernels: bool, holds_blas: bool) -> None:
        stack = ExitStack()
        stack.enter_context(nf.use_kernels(kernels))
        if holds_blas:
            stack.enter_context(OneBlasThread())
        self._inside.append(stack)

    def close(self) -> None:
        """End the thread."""
        while self.kernels:
            self.leave()
        self._pool.shutdown()


def overlaps(n: int, seed: int) -> dict[str, Any]:
    """Enter and leave switches `n` times in a drawn order; count what is not as it was asked for.

    Each thread predicts after each step, with the bits that its own setting gives.
    """
    rng = np.random.default_rng(seed)
    model = _model()
    x = rng.normal(size=(2, 6, 4)).astype("float32")
    expected = {}
    for kernels in (False, True):
        with nf.use_kernels(kernels):
            expected[kernels] = model(x).tobytes()
    threads_of_blas = blas_threads()
    counts: Counter[str] = Counter(steps=0, silent=0)
    problems: list[str] = []
    while counts["steps"] < n:
        threads = [SwitchingThread() for _ in range(THREADS)]
        default = bool(rng.integers(2))
        nf.use_kernels(default)
        try:
            for _ in range(STEPS_A_ROUND):
                _step(rng, threads)
                counts["steps"] += 1
                wrong = _problems(threads, default, threads_of_blas, model, x, expected)
                counts["silent"] += len(wrong)
                problems += [f"seed {seed}, step {counts['steps']}: {words}" for words in wrong]
        finally:
            for thread in threads:
                thread.close()
            nf.use_kernels(True)
        if blas_threads() != threads_of_blas:
            counts["silent"] += 1
            problems.append(f"seed {seed}, step {counts['steps']}: BLAS keeps {blas_threads()}")
    return {**counts, "problems": problems}


def _model() -> Any:
    config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=16, max_len=6)
    return nf.SequenceClassifier(config, 2, n_features=4, seed=1)


def _step(rng: np.random.Generator, threads: list[SwitchingThread]) -> None:
    """Let one thread enter or leave switches."""
    thread = threads[rng.integers(len(threads))]
    if thread.kernels and rng.random() < 0.5:
        thread.leave()
    else:
        thread.enter(kernels=bool(rng.integers(2)), holds_blas=bool(rng.integers(2)))


def _problems(
    threads: list[SwitchingThread],
    default: bool,
    threads_of_blas: list[int],
    model: Any,
    x: np.ndarray,
    expected: dict[bool, bytes],
) -> list[str]:
    """Return what is not as it was asked for."""
    problems = []
    for i, thread in enumerate(threads):
        kernels = thread.kernels[-1] if thread.kernels else default
        if thread.run(dispatch.enabled) != kernels:
            problems.append(f"thread {i} has use_kernels({not kernels}); expected {kernels}")
        if thread.run(model, x).tobytes() != expected[kernels]:
            problems.append(f"thread {i} predicts other bits than use_kernels({kernels}) gives")
    if dispatch.enabled() != default:
        problems.append(f"the main thread has use_kernels({not default}); expected {default}")
    is_held = any(any(thread.holds_blas) for thread in threads)
    threads_expected = [1 for _ in threads_of_blas] if is_held else threads_of_blas
    if blas_threads() != threads_expected:
        problems.append(f"BLAS has {blas_threads()} threads; expected {threads_expected}")
    return problems
