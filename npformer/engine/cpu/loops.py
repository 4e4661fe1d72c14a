"""The loops of leaves, compiled by numba if it is installed: the extra `fast`."""

import hashlib
import importlib
import math
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core.support.waiting_signals import signals_wait
from npformer.engine.cpu.rows import FUSED, LEAVES, SUMS
from npformer.engine.trusted_kernels import cache_folder

VARIABLE = "NPFORMER_LOOPS"
"""Environment variable: one of `NO` runs NumPy's passes even if numba is installed."""

NO = ("0", "no", "off", "false")
YES = ("", "1", "yes", "on", "true")

PATIENCE = 10.0
"""Seconds to wait while another process writes its code; after them, no code is written."""


def numba_options(fastmath: set[str]) -> dict[str, Any]:
    """Return numba's options; its default error model would not vectorise loops that divide."""
    return {"error_model": "numpy", "fastmath": fastmath}


def use_loops() -> str:
    """Let all leaves run their loops; return "", or the reason why they cannot."""
    if loops_are_off():
        return f"{VARIABLE} is {os.environ[VARIABLE]}"
    try:
        with signals_wait():  # an interrupt would leave numba half imported
            numba: Any = importlib.import_module("numba")
    except ImportError:
        return 'numba is not installed: pip install "npformer[fast]"'
    except Exception as error:  # it does not fit this NumPy, or its LLVM is broken
        return f"numba cannot be imported: {type(error).__name__}: {error}"
    if numba.config.DISABLE_JIT:
        return "numba compiles nothing, because NUMBA_DISABLE_JIT is set"

    def choose_body(function: Any, in_float32: Any) -> Callable[[Any], Any]:
        def choose(x_type: Any, *other_types: Any) -> Any:
            return in_float32 if x_type is numba.float32 else function

        return choose

    jit_options = numba_options(FUSED)
    for function, in_float32 in SCALARS:
        overload = numba.extending.overload(function, jit_options=jit_options, strict=False)
        overload(choose_body(function, in_float32))
    for loop, fastmath in loops_for_loops():
        overload = numba.extending.overload(loop, jit_options=numba_options(fastmath), strict=False)
        overload(partial(_choose_itself, loop))
    loops_folder = str(cache_folder() / f"loops-{_digest_of_sources()}")
    previous_folder = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = loops_folder
    try:
        for leaf in LEAVES.values():  # compiled when first called
            leaf.run = numba.njit(leaf.loop, nogil=True, **numba_options(leaf.fastmath))
            with suppress(RuntimeError):  # no folder can be written
                leaf.run.enable_caching()
            # In another folder, numba would not notice changes in other files than the loop's.
            cache = leaf.run._cache
            is_in_folder = str(cache.cache_path).startswith(loops_folder)
            leaf.run._cache = _DiskCache(cache if is_in_folder else None)
            leaf.run.compile = _hold_signals(leaf.run.compile)
    finally:
        numba.config.CACHE_DIR = previous_folder
    return ""


def loops_for_loops() -> list[tuple[Callable[..., Any], set[str]]]:
    """Return functions that a loop may call, and what LLVM may change in each: other loops too."""
    return [(leaf.loop, leaf.fastmath) for leaf in LEAVES.values()] + HELPERS


def _choose_itself(loop: Callable[..., Any], *types: Any) -> Callable[..., Any]:
    """Return the function that numba compiles for a call of a loop: the loop itself."""
    return loop


def loops_are_off() -> bool:
    """Return whether the environment variable switches loops off; reject unknown words."""
    word = os.environ.get(VARIABLE, "").strip().lower()
    if word not in NO + YES:
        raise ValueError(
            f"the environment variable {VARIABLE} is {os.environ[VARIABLE]!r}; expected 0 for "
            "NumPy's passes, or 1 for compiled loops, as without it"
        )
    return word in NO


def _hold_signals(compile_: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return numba's function that loads or compiles code, with signals held meanwhile.

    After an interrupt, code would remain unregistered for the life of the process.
    """

    def compile_without_signals(signature: Any) -> Any:
        with signals_wait():
            return compile_(signature)

    return compile_without_signals


class _DiskCache:
    """numba's cache of compiled code on disk, with two changes.

    Only one process at a time changes its index: two at once may give the same name to different
    code. And a damaged file or a full disk is no error. Without numba's `cache`, nothing is stored.
    """

    has_announced = False

    def __init__(self, cache: Any) -> None:
        self.cache = cache

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return code from disk; None if it must be compiled."""
        code = None
        with suppress(Exception):  # without a folder, too
            code = self.cache.load_overload(signature, context)
        if code is None and not _DiskCache.has_announced:
            _DiskCache.has_announced = True
            print("npformer compiles its loops, once on this machine", file=sys.stderr)
        return code

    def save_overload(self, signature: Any, data: Any) -> None:
        """Write code to disk, if that is possible."""
        from filelock import FileLock

        if self.cache is None:
            return
        with suppress(OSError):  # or another process holds the lock for too long
            folder = Path(self.cache.cache_path)
            folder.mkdir(parents=True, exist_ok=True)
            with FileLock(folder / "lock", timeout=PATIENCE):
                try:
                    self.cache.save_overload(signature, data)
                except OSError:
                    raise
                except Exception:  # damaged bytes in the index may raise anything
                    self.cache.flush()
                    self.cache.save_overload(signature, data)


def _digest_of_sources() -> str:
    """Return a digest of all files with loops: numba checks only the file of the loop itself."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


# Functions of numbers, for loops ----------------------------------------------------------------

SCALARS: list[tuple[Callable[..., Any], Callable[..., Any]]] = []
"""Functions that have a separate body for float32, and that body."""


HELPERS: list[tuple[Callable[..., Any], set[str]]] = []
"""Functions of arrays that loops call, and what LLVM may change in each."""


def loop_helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let loops call this function of arrays, which is itself a loop."""
    HELPERS.append((function, SUMS | FUSED))
    return function


def scalar(in_float32: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a function another body for float32."""

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
    """e^x, by `exp2`."""
    return exp2(x * LOG2_E)
