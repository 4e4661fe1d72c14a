"""Which kernels a GPU runs: those that a child process has seen compute what the plain pairs do.

The child, `npformer.engine.kernel_check`, is there because a kernel that writes outside its
arrays would spoil the device for its process. The verdict is kept on disk, so it takes time only
once.
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
from typing import Any

from npformer.core import get_backend, precision
from npformer.core.cupy.backend import LOCAL_RANKS

CHECK_VARIABLE = "NPFORMER_CHECK_KERNELS"
"""Environment variable: "0" runs all kernels unchecked."""

CACHE_VARIABLE = "NPFORMER_CACHE"
"""Environment variable: the folder for verdicts."""

TIMEOUT = 300.0
"""Seconds after which a child counts as hanging; most of them are for compiling."""

SOURCES = (".py", ".cu", ".cuh")
"""How the names of files with kernels end."""

PROGRAM = ("-P", "-m", "npformer.engine.kernel_check")

DTYPES = {"f": "float32", "d": "float64"}

Verdict = dict[str, Any]
"""What was checked ("about"), what is wrong by kernel ("problems"), and "seconds"."""

_found: dict[tuple[str, str], Verdict] = {}
_lock = threading.Lock()


def proven(name: str, char: str) -> bool:
    """Return whether to run a kernel of "cupy" for arrays of a dtype, given as its code.

    The first call for a dtype and a precision may take seconds, and warns if kernels are left out.
    """
    key = DTYPES[char], "float32" if char == "d" else precision("cupy")
    found = _found.get(key)
    if found is None:
        with _lock:
            new = key not in _found
            found = _found.setdefault(key, verdict(*key) if new else {})
        if new and found["problems"]:
            warnings.warn(in_words(found), stacklevel=2)
    return name not in found["problems"] and "" not in found["problems"]


def verdict(dtype: str, precision: str, again: bool = False) -> Verdict:
    """Return the verdict on disk; if there is none, or `again`, that of a child process."""
    if os.environ.get(CHECK_VARIABLE) == "0":
        return {"about": {}, "problems": {}, "seconds": None}
    about = {what: found for what, found in get_backend("cupy").details() if what != "memory"}
    about |= {"kernels": digest(), "dtype": dtype, "precision": precision}
    code = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]
    file = folder() / f"kernels-{code}.json"
    found = None if again else _read(file, about)
    if found is None:
        print(  # on a new line, because a progress bar may be on this one
            f"\nnpformer checks its kernels on {about.get('GPU', 'the GPU')}, in {dtype}, once; "
            "compiling them may take a minute",
            file=sys.stderr,
        )
        found = {"about": about, **_ask(dtype, precision)}
        _write(file, found)
    return found


def in_words(found: Verdict) -> str:
    """Return which kernels a verdict leaves out, and on what machine."""
    about = ", ".join(f"{what} {value}" for what, value in found["about"].items())
    left_out = "; ".join(f"{name or 'all'} ({why})" for name, why in found["problems"].items())
    return (
        f"kernels are left out, the plain functions run in their place: {left_out}. {about}. "
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


def folder() -> Path:
    """Return the folder of verdicts, in the platform's folder for caches."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given)
    usual = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    return (Path(usual) if usual else Path.home() / ".cache") / "npformer"


def _ask(dtype: str, precision: str) -> Verdict:
    """Return what a child process found, which prints it line by line.

    Kernels that it did not get to are left out.
    """
    command = [sys.executable, *PROGRAM, dtype, precision]
    environment = os.environ | {
        CHECK_VARIABLE: "0",
        LOCAL_RANKS[0]: str(get_backend("cupy").number()),  # the same GPU
        "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path),  # the same npformer
    }
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True}
    try:
        done: Any = subprocess.run(command, **streams, env=environment, timeout=TIMEOUT)
        end = f"ended with status {done.returncode}"
    except subprocess.TimeoutExpired as error:
        done, end = error, f"was ended after {TIMEOUT:g} seconds"
    except OSError as error:
        done, end = None, f"could not be started: {error}"
    out, errors = (b"", b"") if done is None else (done.stdout or b"", done.stderr or b"")
    said = [_line(line) for line in out.splitlines()]
    last = errors.decode(errors="replace").strip()[-2000:]
    names = next((line["names"] for line in said if "names" in line), [""])
    judged = {line["kernel"]: line["problem"] for line in said if "kernel" in line}
    missing = ": ".join((f"the process that checks it {end}", *last.splitlines()[-1:]))
    problems = {name: judged.get(name, missing) for name in names if judged.get(name, missing)}
    times = next((line for line in said if "seconds" in line), {"seconds": None})
    return {"problems": problems, **times, **({"said": last} if problems else {})}


def _line(text: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        found = json.loads(text)
        if isinstance(found, dict):
            return found
    return {}  # printed by a library


def _read(file: Path, about: dict[str, str]) -> Verdict | None:
    """Return a verdict from disk; None if there is none, or if it is damaged."""
    with suppress(OSError, ValueError):
        found = json.loads(file.read_text("utf-8"))
        known = isinstance(found, dict) and found.get("about") == about
        if known and isinstance(found.get("problems"), dict):
            return found  # type: ignore[no-any-return]
    return None


def _write(file: Path, found: Verdict) -> None:
    """Write a verdict in one step; without a folder to write to, the next process checks again."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps(found, indent=1), "utf-8")
        new.replace(file)
