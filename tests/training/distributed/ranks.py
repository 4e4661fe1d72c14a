"""Programs of these tests, started as several ranks by mpiexec."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.training.distributed import jobs

ROOT = Path(__file__).parents[3]


def mpiexec():
    """Return the launcher beside this Python, or that on the PATH; None if there is none."""
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or mpiexec() is None,
    reason="needs mpi4py and mpiexec: python -m pip install 'npformer[mpi]'",
)


def command_of(n, program, *arguments):
    """Return the words that start a program of this folder as n ranks."""
    module = f"tests.training.distributed.{program}"
    return [mpiexec(), "-n", str(n), sys.executable, "-m", module, *map(str, arguments)]


def environment():
    """Return the environment of a program: one BLAS thread, and this package first."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}


def run_ranks(n, program, *arguments, timeout=120, fails=False):
    """Run a program of this folder as n ranks. Check its exit status."""
    command = command_of(n, program, *arguments)
    process = subprocess.run(
        command,
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert (process.returncode != 0) == fails, process.stdout + process.stderr
    return process


def run_jobs(n, folder, work):
    """Run `{name: (program, *arguments)}` in turn, by one start of n ranks; 0: in this process.

    Each job is the `main` of a program of this folder, whose first argument is ``folder / name``.
    Return how each job ended on each rank: "", or its error in words.
    """
    for name in work:
        (folder / name).mkdir(parents=True, exist_ok=True)
    if not n:
        return jobs.run(folder, work)
    (folder / "jobs.json").write_text(json.dumps(work))
    run_ranks(n, "jobs", folder)
    return json.loads((folder / "ended.json").read_text())


def assert_ended_well(ended):
    wrong = {name: errors for name, errors in ended.items() if any(errors)}
    assert not wrong, wrong
