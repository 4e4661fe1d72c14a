"""Trainings in processes whose hashes, and threads of libraries, differ: one seed, one model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]


def hash_seeds(n: int, seed: int) -> dict[str, Any]:
    """Train estimators of each kind in `n` processes, and resume in each what another began."""
    rng = np.random.default_rng(seed)
    digests: dict[str, set[str]] = defaultdict(set)
    trainings = 0
    with tempfile.TemporaryDirectory() as place:
        for number in range(n):
            environment = {
                **os.environ,
                "PYTHONHASHSEED": str(rng.integers(2**32)),
                "RAYON_NUM_THREADS": str(rng.integers(1, 5)),
                "TOKENIZERS_PARALLELISM": str(rng.choice(["true", "false"])),
            }
            begun, resumed = (str(Path(place) / str(k)) for k in (number, number - 1))
            process = subprocess.run(
                [sys.executable, "-m", "tests.tasks.estimators.one_seed", begun, resumed],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            for name, digest in json.loads(process.stdout).items():
                digests[name.removesuffix(", resumed")].add(digest)
                trainings += 1
    problems = [
        f"seed {seed}: {name} has {len(digests_of_training)} results"
        for name, digests_of_training in digests.items()
        if len(digests_of_training) > 1
    ]
    return {"trainings": trainings, "silent": len(problems), "problems": problems}
