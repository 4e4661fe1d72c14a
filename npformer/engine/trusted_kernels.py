"""Decide which GPU kernels to trust: a child process compares each with its plain pair.

The child, `npformer.engine.kernel_check`, is a separate process because a kernel that writes
outside its arrays would spoil the device for its process. The verdict is kept on disk, so it takes
time only once.
"""

import hashlib
import json
import os
import subprocess
import sys
import threading
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from npformer.core import get_backend, precision
from npformer.core.cupy.backend import LOCAL_RANKS

CHECK_VARIABLE = "NPFORMER_CHECK_KERNELS"
"""Environment variable: "0" runs all kernels unchecked."""

CACHE_VARIABLE = "NPFORMER_CACHE"
"""Environment variable: the folder for verdicts."""

TIMEOUT = 300.0
"""Seconds after which a child counts as hanging; most of them are for compiling."""

SOURCES = (".py", ".cu", ".cuh")
"""Suffixes of files that contain kernels."""

DTYPES = {"f": "float32", "d": "float64"}

Verdict = dict[str, Any]
"""On what machine ("about"), what is wrong with each kernel ("problems"), and "seconds"."""

_verdicts: dict[tuple[str, str], Verdict] = {}
"""The verdicts that this process has read or made, by dtype and precision."""

_lock = threading.RLock()  # reentrant: a signal's handler may predict while it is held


def is_trusted(name: str, char: str) -> bool:
    """Return whether to run a kernel of "cupy" for arrays of a dtype, passed as its code.

    The first call for a dtype and a precision may take seconds, and warns if kernels are left out.
    """
    key = DTYPES[char], "float32" if char == "d" else precision("cupy")
    verdict = _verdicts.get(key)
    if verdict is None:
        with _lock:
            is_new = key not in _verdicts
            if is_new:
                _verdicts[key] = kernel_verdict(*key)
            verdict = _verdicts[key]
        if is_new and verdict["problems"]:
            warnings.warn(describe_verdict(verdict), stacklevel=2)
    return name not in verdict["problems"] and "" not in verdict["problems"]


def kernel_verdict(dtype: str, precision: str, again: bool = False) -> Verdict:
    """Return the verdict on disk; run a child process if there is none, or with `again`."""
    if os.environ.get(CHECK_VARIABLE) == "0":
        return {"about": {}, "problems": {}, "seconds": None}
    environment = {name: text for name, text in get_backend("cupy").details() if name != "memory"}
    environment |= {"kernels": digest(), "dtype": dtype, "precision": precision}
    code = hashlib.sha256(json.dumps(environment).encode()).hexdigest()[:16]
    file = cache_folder() / f"kernels-{code}.json"
    if not again:
        on_disk = _read(file, environment)
        if on_disk is not None:
            return on_disk
    print(  # on a new line, because a progress bar may be on this one
        f"\nnpformer checks its kernels on {environment.get('GPU', 'the GPU')}, in {dtype}, once; "
        "compiling them may take a minute",
        file=sys.stderr,
    )
    verdict = {"about": environment} | _verdict_of_child(dtype, precision)
    _write(file, verdict)
    return verdict


def describe_verdict(verdict: Verdict) -> str:
    """Return which kernels a verdict leaves out, and on what machine."""
    environment = ", ".join(f"{name} {text}" for name, text in verdict["about"].items())
    left_out = "; ".join(f"{name or 'all'} ({why})" for name, why in verdict["problems"].items())
    return (
        f"kernels are left out, the plain functions run in their place: {left_out}. {environment}. "
        "`npformer doctor --report FILE` checks again, and writes a report to send"
    )


@cache
def digest() -> str:
    """Return a digest of the kernels' sources and of what checks them."""
    engine = Path(__file__).parent
    kernels = [file for file in (engine / "gpu").rglob("*.*") if file.suffix in SOURCES]
    checks = [engine / "kernel_cases.py", engine / "kernel_check.py"]
    digest_of_files = hashlib.sha256()
    for file in sorted(kernels + checks):
        digest_of_files.update(file.read_bytes())
    return digest_of_files.hexdigest()[:16]


def cache_folder() -> Path:
    """Return the folder of verdicts, in the platform's folder for caches."""
    chosen_folder = os.environ.get(CACHE_VARIABLE)
    if chosen_folder:
        return Path(chosen_folder)
    platform_folder = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    parent = Path(platform_folder) if platform_folder else Path.home() / ".cache"
    return parent / "npformer"


def command_of_check(dtype: str, precision: str) -> list[str]:
    """Return the command that starts the child process."""
    return [sys.executable, "-P", "-m", "npformer.engine.kernel_check", dtype, precision]


class _Child(NamedTuple):
    """A child process that has ended: how it ended, and what it printed."""

    end: str
    output: bytes
    errors: bytes


def _run_child(dtype: str, precision: str) -> _Child:
    """Run the child process to its end."""
    environment = os.environ | {
        CHECK_VARIABLE: "0",
        LOCAL_RANKS[0]: str(get_backend("cupy").number()),  # the same GPU
        "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path),  # the same npformer
    }
    try:
        process = subprocess.run(
            command_of_check(dtype, precision),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired as error:
        end = f"was ended after {TIMEOUT:g} seconds"
        return _Child(end, error.stdout or b"", error.stderr or b"")
    except OSError as error:
        return _Child(f"could not be started: {error}", b"", b"")
    return _Child(f"ended with status {process.returncode}", process.stdout, process.stderr)


def _verdict_of_child(dtype: str, precision: str) -> Verdict:
    """Return the verdict that a child process prints, line by line.

    Kernels that the child did not reach are left out.
    """
    child = _run_child(dtype, precision)
    lines = [_line(text) for text in child.output.splitlines()]
    names = next((line["names"] for line in lines if "names" in line), [""])
    problem_by_name = {line["kernel"]: line["problem"] for line in lines if "kernel" in line}
    last_errors = child.errors.decode(errors="replace").strip()[-2000:]
    missing = f"the process that checks it {child.end}"
    if last_errors:
        missing += f": {last_errors.splitlines()[-1]}"
    problems = {}
    for name in names:
        problem = problem_by_name.get(name, missing)
        if problem:
            problems[name] = problem
    verdict: Verdict = {"problems": problems}
    verdict |= next((line for line in lines if "seconds" in line), {"seconds": None})
    if problems:
        verdict["said"] = last_errors
    return verdict


def _line(text: bytes) -> dict[str, Any]:
    """Return the JSON object in a line; an empty one if a library printed the line."""
    with suppress(ValueError):
        content = json.loads(text)
        if isinstance(content, dict):
            return content
    return {}


def _read(file: Path, environment: dict[str, str]) -> Verdict | None:
    """Return a verdict from disk; None if there is none, or if it is damaged."""
    with suppress(OSError, ValueError):
        content = json.loads(file.read_text("utf-8"))
        fits = isinstance(content, dict) and content.get("about") == environment
        if fits and isinstance(content.get("problems"), dict):
            return content  # type: ignore[no-any-return]
    return None


def _write(file: Path, verdict: Verdict) -> None:
    """Write a verdict in one step; without a folder to write to, the next process checks again."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        new_file = file.with_suffix(f".{os.getpid()}")
        new_file.write_text(json.dumps(verdict, indent=1), "utf-8")
        new_file.replace(file)
