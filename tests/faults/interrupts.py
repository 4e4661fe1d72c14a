"""Interrupts at drawn moments: afterwards the same call gives what it gives in a fresh process.

``python -m tests.faults.interrupts SEED N`` is one process that is interrupted N times. Its first
interrupt comes while everything is still being imported.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

ROOT = Path(__file__).resolve().parents[2]
INTERRUPTS_A_PROCESS = 25
LIMIT = 300.0  # seconds that a process may take before it counts as hanging
COLD_SECONDS = 1.5  # about what the first call of a process takes, with its imports


def digest(arrays: Any) -> str:
    """Return a digest of arrays, which differs when a bit does."""
    total = sha256()
    for array in arrays:
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


# Calls --------------------------------------------------------------------------------------------
class Calls:
    """What is interrupted. Models are kept, so whatever an interrupt leaves in them shows."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.x = rng.normal(size=(64, 16, 8)).astype("float32")
        self.y = (self.x[:, 3, 0] > 0).astype("int64")
        self.ids = rng.integers(0, 20, size=(4, 8))
        self.model: Any = None
        self.writer: Any = None
        self.by_name: dict[str, Callable[[], str]] = {
            "predict": self.predict,
            "predict one sample": self.predict_one_sample,
            "loss and gradients": self.loss_and_gradients,
            "fit": self.fit,
            "fit on two workers": self.fit_on_two_workers,
            "generate": self.generate,
        }

    def predict(self) -> str:
        """Predict a batch."""
        return digest([self._classifier()(self.x)])

    def predict_one_sample(self) -> str:
        """Predict one sample, which takes the shortest way."""
        return digest([self._classifier()(self.x[:1])])

    def loss_and_gradients(self) -> str:
        """Run both passes."""
        loss, gradients = self._classifier().loss_and_gradients(self.x, self.y)
        return digest([np.float64(loss), *gradients.values()])

    def fit(self) -> str:
        """Train a new model."""
        return self._fit(workers=1)

    def fit_on_two_workers(self) -> str:
        """Train a new model on two workers."""
        return self._fit(workers=2)

    def generate(self) -> str:
        """Write after two prompts."""
        return digest(self._language_model().generate(self.ids, 8, seed=3))

    def _classifier(self) -> Any:
        if self.model is None:
            self.model = self._new_classifier()
        return self.model

    def _new_classifier(self) -> Any:
        import npformer as nf

        config = nf.EncoderConfig(d_model=32, n_layers=2, n_heads=2, d_ff=64, max_len=16)
        return nf.SequenceClassifier(config, 2, n_features=8, seed=1)

    def _fit(self, workers: int) -> str:
        import npformer as nf

        model = self._new_classifier()
        nf.fit(
            model,
            (self.x, self.y),
            epochs=2,
            batch_size=16,
            seed=2,
            workers=workers,
            progress=False,
        )
        return digest(parameter for parameter in model.parameters().values())

    def _language_model(self) -> Any:
        import npformer as nf

        if self.writer is None:
            config = nf.EncoderConfig(
                d_model=32, n_layers=1, n_heads=2, d_ff=64, max_len=32, causal=True
            )
            self.writer = nf.LanguageModel(config, vocab_size=20, seed=1)
        return self.writer


# One process --------------------------------------------------------------------------------------
def interrupt(call: Callable[[], str], moment: float) -> bool:
    """Interrupt a call `moment` seconds after its beginning; return whether it was running."""
    timer = threading.Timer(moment, os.kill, (os.getpid(), signal.SIGINT))
    is_running = True
    try:
        timer.start()
        try:
            call()
            is_running = False
        finally:
            timer.join()
            time.sleep(0.05)  # until the interrupt has come
    except KeyboardInterrupt:
        pass
    return is_running


def blas_threads() -> set[int]:
    """Return the numbers of threads that the libraries of BLAS have: one, if all is well."""
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


def interrupted_process(seed: int, n: int, expected: dict[str, str]) -> dict[str, Any]:
    """Interrupt calls `n` times; after each, call again and compare with a fresh process."""
    rng = np.random.default_rng(seed)
    calls = Calls().by_name
    seconds = dict.fromkeys(calls, COLD_SECONDS)
    threads = blas_threads()
    counts: Counter[str] = Counter(interrupts=n)
    problems = []
    for i in range(n):
        interrupted, another = (str(rng.choice(list(calls))) for _ in range(2))
        moment = rng.uniform(0.0, 1.2 * seconds[interrupted])
        place = f"seed {seed}, interrupt {i} of {interrupted!r} at {moment:.4f} s"
        try:
            counts["running"] += interrupt(calls[interrupted], moment)
        except Exception as error:
            counts["raw"] += 1
            problems.append(f"{place}: it raises {error!r}")
        for name in (interrupted, another):
            began = time.perf_counter()
            try:
                result = calls[name]()
            except Exception as error:
                counts["raw"] += 1
                problems.append(f"{place}: {name!r} raises {error!r}")
                continue
            seconds[name] = time.perf_counter() - began
            if result != expected[name]:
                counts["silent"] += 1
                problems.append(f"{place}: {name!r} gives other bits")
        if blas_threads() != threads:
            counts["lost"] += 1
            problems.append(f"{place}: BLAS has {blas_threads()} threads, before it had {threads}")
    return {**counts, "problems": problems}


def main(seed: str, n: str) -> None:
    """Print what happened as JSON; without interrupts, what each call gives."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    if int(n):
        print(json.dumps(interrupted_process(int(seed), int(n), json.load(sys.stdin))))
    else:
        print(json.dumps({name: call() for name, call in Calls().by_name.items()}))


# Several processes --------------------------------------------------------------------------------
def interrupts(n: int, seed: int) -> dict[str, Any]:
    """Interrupt `n` times, in processes with and without compiled loops; count what happened."""
    counts: Counter[str] = Counter(interrupts=0, running=0, raw=0, silent=0, lost=0, hang=0)
    problems: list[str] = []
    expected = {loops: _process(0, 0, loops, "") for loops in ("0", "1")}
    for loops, digests in expected.items():
        if "problems" in digests:
            raise SystemExit(f"NPFORMER_LOOPS={loops}: {digests['problems'][0]}")
    for k in range(-(-n // INTERRUPTS_A_PROCESS)):
        loops = str(k % 2)
        size = min(INTERRUPTS_A_PROCESS, n - k * INTERRUPTS_A_PROCESS)
        try:
            result = _process(seed + k, size, loops, json.dumps(expected[loops]))
        except subprocess.TimeoutExpired:
            counts["hang"] += 1
            problems.append(f"seed {seed + k} with NPFORMER_LOOPS={loops}: no end in {LIMIT:g} s")
            continue
        problems += result.pop("problems")
        counts.update(result)
    return {**counts, "problems": problems}


def _process(seed: int, n: int, loops: str, expected: str) -> dict[str, Any]:
    """Run one process; return what it prints."""
    command = [sys.executable, "-m", "tests.faults.interrupts", str(seed), str(n)]
    process = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"NPFORMER_LOOPS": loops},
        input=expected,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    if process.returncode != 0:
        problem = f"seed {seed}: exit status {process.returncode}: {process.stderr[-400:]}"
        return {"interrupts": n, "raw": 1, "problems": [problem]}
    result: dict[str, Any] = json.loads(process.stdout)
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
