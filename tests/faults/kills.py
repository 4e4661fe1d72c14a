"""Trainings that are killed at random moments and continued: nothing may be lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import npformer as nf
from npformer.training.storage.checkpoint_folder import CHECKPOINT

ROOT = Path(__file__).resolve().parents[2]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
TARGETS = ("parent", "group")
USUAL_HANDLERS = f"""
import os, signal, sys
for signum in {[int(number) for number in SIGNALS[:3]]}:
    signal.signal(signum, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Undoes what a background job is given, which ignores SIGINT, and so would what it starts. Not a
`preexec_fn`: what runs between fork and exec may wait for a lock that another thread held."""
LIMIT = 300.0  # seconds that a process may take before it counts as hanging


class Fit:
    """`fit(checkpoint=...)` in a script."""

    name = "fit"

    def first(self, folder: Path) -> list[str]:
        """Return the command that begins a training."""
        return [sys.executable, "-m", "tests.faults.victim", str(folder), str(self.model(folder))]

    again = first

    def has_begun(self, folder: Path) -> bool:
        """Return whether the training has taken the folder, so that it can go on."""
        return True

    def model(self, folder: Path) -> Path:
        """Return where the model is at the end."""
        return folder.with_suffix(".safetensors")

    def prepare(self, folder: Path) -> None:
        """Make what is there before the training."""

    def check(self, folder: Path) -> str | None:
        """Return what is wrong with the files after a kill."""
        file = folder / CHECKPOINT
        if file.exists():
            nf.load_checkpoint(folder)
        return None


class Train:
    """`npformer train --overwrite` in the folder of a good model, then `--resume`."""

    name = "npformer train"
    options = (
        "majority",
        "--epochs",
        "2",
        "--workers",
        "2",
        "--quiet",
        "--d-model",
        "16",
        "--d-ff",
        "16",
        "--layers",
        "1",
    )

    def __init__(self, good: Path | None = None) -> None:
        self.good = good

    def _command(self, folder: Path, *words: str) -> list[str]:
        return [
            sys.executable,
            "-m",
            "npformer",
            "train",
            *self.options,
            "--out",
            str(folder),
            *words,
        ]

    def first(self, folder: Path) -> list[str]:
        """Return the command that begins a training."""
        return self._command(folder, "--mixer", "fourier", "--overwrite")

    def again(self, folder: Path) -> list[str]:
        """Return the command that goes on."""
        return self._command(folder, "--mixer", "fourier", "--resume")

    def has_begun(self, folder: Path) -> bool:
        """Return whether the training has taken the folder, so that it can go on."""
        return any(folder.glob("replaced-*")) and (folder / "run.json").exists()

    def prepare(self, folder: Path) -> None:
        """Put the good model of another mixer into the folder."""
        if self.good is not None:
            shutil.copytree(self.good, folder)

    def model(self, folder: Path) -> Path:
        """Return where the model is at the end."""
        return folder / "model.safetensors"

    def check(self, folder: Path) -> str | None:
        """Return what is wrong with the files after a kill."""
        mixers = {}
        for path in folder.rglob("model.safetensors"):
            mixers[path] = nf.load(path).config.mixer
            metrics = path.with_name("metrics.json")
            if metrics.exists() and json.loads(metrics.read_text())["mixer"] != mixers[path]:
                return f"{metrics} speaks of another model"
        if self.good is not None and not mixers:
            return "the good model is gone"
        return None


def kills(n: int, seed: int, victim: Any) -> dict[str, Any]:
    """Kill a training n times at random moments, and continue it each time; count what happened.

    A training that ends by itself is compared with one that was never killed, and the next begins.
    """
    rng = np.random.default_rng(seed)
    counts: Counter[str] = Counter(kills=0, runs=0, lost=0, different=0)
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        victim, expected, seconds = _reference(victim, Path(place))
        while counts["kills"] < n:
            folder = Path(place) / f"run-{counts['runs']}"
            victim.prepare(folder)
            command: Callable[[Path], list[str]] = victim.first
            while True:
                moment = rng.uniform(0.0, 1.2 * seconds)
                signum = rng.choice(SIGNALS)
                target = str(rng.choice(TARGETS))
                ended, killed, stderr = _run(command(folder), moment, int(signum), target)
                counts["kills"] += killed
                counts[f"{signal.Signals(signum).name} to {target}"] += killed
                try:
                    wrong = victim.check(folder)
                except Exception as error:
                    wrong = f"{type(error).__name__}: {error}"
                if wrong is None and ended is None:
                    wrong = "it hangs"
                if wrong is None and not killed and ended != 0:
                    wrong = f"exit status {ended}: {stderr[-400:]}"
                if wrong is not None:
                    counts["lost"] += 1
                    problems.append(f"{victim.name}, {signum}, {target}, {moment:.2f} s: {wrong}")
                    break
                if ended == 0:
                    if not same_weights(victim.model(folder), expected):
                        counts["different"] += 1
                        problems.append(f"{victim.name}: other weights after {signum}, {target}")
                    break
                if victim.has_begun(folder):
                    command = victim.again
            counts["runs"] += 1
            shutil.rmtree(folder, ignore_errors=True)
    return {**counts, "problems": problems}


def same_weights(path: Path, expected: dict[str, np.ndarray]) -> bool:
    """Return whether a model file has these weights, bit for bit."""
    weights = nf.load(path).parameters()
    return all(np.array_equal(weights[name], value) for name, value in expected.items())


def _reference(victim: Any, place: Path) -> tuple[Any, dict[str, np.ndarray], float]:
    """Run a training that is not killed; return its victim, weights and duration."""
    if isinstance(victim, Train):
        good = place / "good"
        subprocess.run(victim._command(good), cwd=ROOT, check=True, capture_output=True)
        victim = Train(good)
    folder = place / "whole"
    began = time.monotonic()
    subprocess.run(victim.first(folder), cwd=ROOT, check=True, capture_output=True)
    seconds = time.monotonic() - began
    weights = nf.load(victim.model(folder)).parameters()
    return victim, {name: value.copy() for name, value in weights.items()}, seconds


def _run(command: list[str], moment: float, signum: int, target: str) -> tuple[Any, bool, str]:
    """Run a command and send a signal; return its status (None: it hangs), whether sent, stderr."""
    command_with_handlers = [sys.executable, "-c", USUAL_HANDLERS, *command]
    process = subprocess.Popen(
        command_with_handlers,
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    killed = False
    try:
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            killed = _send(process.pid, signum, target)
        _, stderr = process.communicate(timeout=LIMIT)
        return process.returncode, killed, stderr
    except subprocess.TimeoutExpired:
        return None, killed, ""
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _send(pid: int, signum: int, target: str) -> bool:
    """Send a signal to a process, or to its group; return whether sent."""
    try:
        if target == "group":
            os.killpg(pid, signum)
        else:
            os.kill(pid, signum)
    except ProcessLookupError:
        return False
    return True
