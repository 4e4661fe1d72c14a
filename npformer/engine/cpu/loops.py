"""The loops of leaves, compiled by numba if it is installed: the extra `fast`."""

import hashlib
import importlib
import math
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core.support.waiting_signals import signals_wait
from npformer.engine.cpu.rows import FUSED, LEAVES
from npformer.engine.trusted_kernels import folder

VARIABLE = "NPFORMER_LOOPS"
"""Environment variable: a word for no runs NumPy's passes though numba is installed."""

NO = ("0", "no", "off", "false")
YES = ("", "1", "yes", "on", "true")

PATIENCE = 10.0
"""Seconds to wait for another process that keeps its code; without it, this one's is not kept."""


def options(may: set[str]) -> dict[str, Any]:
    """Return numba's options; with its own way of errors a loop that divides is not vectorised."""
    return {"error_model": "numpy", "fastmath": may}


def use_loops() -> str:
    """Let all leaves run their loops; return "", or why that cannot be."""
    if are_off():
        return f"{VARIABLE} is {os.environ[VARIABLE]}"
    try:
        with signals_wait():  # a package that is half imported would stay so
            numba: Any = importlib.import_module("numba")
    except ImportError:
        return 'numba is not installed: pip install "npformer[fast]"'
    except Exception as error:  # it does not fit this NumPy, or its LLVM is broken
        return f"numba cannot be imported: {type(error).__name__}: {error}"
    if numba.config.DISABLE_JIT:
        return "numba is told to compile nothing (NUMBA_DISABLE_JIT)"

    def body(function: Any, in_float32: Any) -> Callable[[Any], Any]:
        def choose(x: Any, *others: Any) -> Any:  # the types of the arguments
            return in_float32 if x is numba.float32 else function

        return choose

    for pair in SCALARS:
        overload = numba.extending.overload(pair[0], jit_options=options(FUSED), strict=False)
        overload(body(*pair))
    place = str(folder() / f"loops-{_sources()}")
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, place
    try:
        for leaf in LEAVES.values():  # compiled when first called
            leaf.run = numba.njit(leaf.loop, nogil=True, **options(leaf.may))
            with suppress(RuntimeError):  # no folder anywhere that can be written
                leaf.run.enable_caching()
            code = leaf.run._cache  # elsewhere, numba would not notice a change in another file
            leaf.run._cache = _Kept(code if str(code.cache_path).startswith(place) else None)
            leaf.run.compile = _whole(leaf.run.compile)
    finally:
        numba.config.CACHE_DIR = before
    return ""


def are_off() -> bool:
    """Return whether the environment says that no loops are compiled; refuse other words."""
    word = os.environ.get(VARIABLE, "").strip().lower()
    if word not in NO + YES:
        raise ValueError(
            f"the environment variable {VARIABLE} is {os.environ[VARIABLE]!r}; expected 0 for "
            "NumPy's passes, or 1 for compiled loops, as without it"
        )
    return word in NO


def _whole(compile_: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return numba's function that loads or compiles code, with signals that wait meanwhile.

    Interrupted, it would leave out what it was about to register, for the life of the process.
    """

    def compile_whole(signature: Any) -> Any:
        with signals_wait():
            return compile_(signature)

    return compile_whole


class _Kept:
    """numba's code on disk, for each processor, with two additions.

    Its index is changed by one process at a time: two at once may give one name to different code.
    And no damaged file or full disk is an error. Without `code` nothing is kept.
    """

    said = False

    def __init__(self, code: Any) -> None:
        self.code = code

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return code from disk; None if it must be compiled."""
        code = None
        with suppress(Exception):  # without a folder, too
            code = self.code.load_overload(signature, context)
        if code is None and not _Kept.said:
            _Kept.said = True
            print("npformer compiles its loops, once on this machine", file=sys.stderr)
        return code

    def save_overload(self, signature: Any, data: Any) -> None:
        """Write code to disk, if that is possible."""
        from filelock import FileLock

        if self.code is None:
            return
        with suppress(OSError):  # also of a lock that another process holds for too long
            place = Path(self.code.cache_path)
            place.mkdir(parents=True, exist_ok=True)
            with FileLock(place / "lock", timeout=PATIENCE):
                try:
                    self.code.save_overload(signature, data)
                except OSError:
                    raise
                except Exception:  # damaged bytes in the index may raise anything
                    self.code.flush()
                    self.code.save_overload(signature, data)


def _sources() -> str:
    """Return a digest of the files with loops: numba looks only at that of the loop itself."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


# Functions of numbers, for loops ----------------------------------------------------------------

SCALARS: list[tuple[Callable[..., Any], Callable[..., Any]]] = []
"""Functions with a body of their own in float32, and that body."""


def scalar(in_float32: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a function another body in float32."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        SCALARS.append((function, in_float32))
        return function

    return add


LOG2_E, LN_2 = math.log2(math.e), math.log(2.0)


def _fraction_of_float32(f: Any) -> Any:
    p = np.float32(1.535336188319500e-4)
    p = p * f + np.float32(1.339887440266574e-3)
    p = p * f + np.float32(9.618437357674640e-3)
    p = p * f + np.float32(5.550332471162809e-2)
    p = p * f + np.float32(2.402264791363012e-1)
    p = p * f + np.float32(6.931472028550421e-1)
    return p * f + np.float32(1.0)


@scalar(_fraction_of_float32)
def exp2_of_fraction(f: Any) -> Any:
    """2^f for f from -1/2 to 1/2, right to 1e-7 in float32, 4e-16 in float64.

    A polynomial, in float64 that of e^(f ln 2).
    """
    x = f * LN_2
    p = 1.0 / 6227020800.0
    p = p * x + 1.0 / 479001600.0
    p = p * x + 1.0 / 39916800.0
    p = p * x + 1.0 / 3628800.0
    p = p * x + 1.0 / 362880.0
    p = p * x + 1.0 / 40320.0
    p = p * x + 1.0 / 5040.0
    p = p * x + 1.0 / 720.0
    p = p * x + 1.0 / 120.0
    p = p * x + 1.0 / 24.0
    p = p * x + 1.0 / 6.0
    p = p * x + 0.5
    p = p * x + 1.0
    return p * x + 1.0


def _exp2_of_float32(x: Any) -> Any:
    t = min(max(x, np.float32(-127.0)), np.float32(128.0))
    k = np.floor(t + np.float32(0.5))
    return exp2_of_fraction(t - k) * np.int32((np.int32(k) + 127) << 23).view(np.float32)


@scalar(_exp2_of_float32)
def exp2(x: Any) -> Any:
    """2^x as 2^k times a polynomial in the rest.

    A call of the C library for each number would keep the loop from being vectorised. The result is
    0 below the smallest normal number.
    """
    t = min(max(x, -1023.0), 1024.0)
    k = np.floor(t + 0.5)
    return exp2_of_fraction(t - k) * np.int64((np.int64(k) + 1023) << 52).view(np.float64)


def _exp_of_float32(x: Any) -> Any:
    return exp2(x * np.float32(LOG2_E))


@scalar(_exp_of_float32)
def exp(x: Any) -> Any:
    """e^x, as above."""
    return exp2(x * LOG2_E)
