"""Compare each GPU kernel with its plain pair on the GPU, and with NumPy.

    python -m npformer.engine.kernel_check float32 tf32

prints a line of JSON for each kernel as soon as its result is known. `kernel_verdict` starts it as
a separate process, because a kernel that writes outside its arrays may spoil the device for its
process.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from npformer.core import Array, array_module, get_backend, use_precision
from npformer.engine import use_kernels
from npformer.engine.gpu.source import Grid, Source
from npformer.engine.kernel_cases import CASES, Case
from npformer.proof.results import Results, difference

TOLERANCES = {"float64": 1e-9, "float32": 1e-4}
"""Relative to the largest entry of a tensor."""

TF32 = 0.1
"""Relative to a tensor's length as a vector: a few entries after a ReLU may differ completely."""

ZONE = 256
"""Bytes before and after each array of a launch, which no kernel may change."""


def call_with_zones(launch: Callable[..., None]) -> Callable[..., None]:
    """Return a `Source.launch` that copies the arrays into the middle of larger ones first."""

    def run(source: Source, kernel: str, grid: Grid, *arguments: Any) -> None:
        copies: dict[tuple[int, int], tuple[Array, Array, Array]] = {}
        numbers = int | float | None
        guarded_arguments = [
            x if isinstance(x, numbers) else _copy_between_zones(x, copies) for x in arguments
        ]
        launch(source, kernel, grid, *guarded_arguments)
        for guarded_bytes, copy, x in copies.values():
            if not bool(((guarded_bytes[:ZONE] == 0xFF) & (guarded_bytes[-ZONE:] == 0xFF)).all()):
                raise MemoryError(f"{source.name}.{kernel} wrote outside of its arrays")
            x[...] = copy

    return run


def _copy_between_zones(
    x: Array, copies: dict[tuple[int, int], tuple[Array, Array, Array]]
) -> Array:
    """Return a copy of an array between two zones; the same copy for the same memory."""
    if not x.size or not x.flags.c_contiguous:  # `Source.launch` refuses the latter
        return x
    key = x.data.ptr, x.nbytes
    if key not in copies:
        guarded_bytes = array_module(x).full(x.nbytes + 2 * ZONE, 0xFF, dtype="uint8")
        copy = guarded_bytes[ZONE:-ZONE].view(x.dtype).reshape(x.shape)
        copy[...] = x
        copies[key] = guarded_bytes, copy, x
    return copies[key][1].reshape(x.shape)


def find_problems(dtype: str, precision: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each kernel, and what is wrong with it, or "" if nothing is."""
    for kernel, cases in CASES.items():
        problem = ""
        try:
            for case in cases:  # TF32 changes only products, in arrays of any size
                modes = ["float32", precision] if case is cases[0] else ["float32"]
                problem = problem or _compare(case, dtype, modes)
        except Exception as error:  # from compilers, drivers and libraries
            problem = f"{type(error).__name__}: {str(error).strip()[:500]}"
        yield kernel, problem


def _compare(case: Case, dtype: str, modes: list[str]) -> str:
    with use_kernels(False), np.errstate(all="ignore"):
        truth = case("numpy", "float64", False)
    for mode in dict.fromkeys(modes):
        with use_precision(mode, "cupy"):
            with use_kernels(False):
                plain = case("cupy", dtype, False)
            results = case("cupy", dtype, True)
        for name, expected in (("NumPy", truth), ("the plain pair", plain)):
            error, tensor = (_flatten if mode == "tf32" else difference)(dtype, results, expected)
            tolerance = TF32 if mode == "tf32" else TOLERANCES[dtype]
            if not error <= tolerance:
                return f"{tensor} differs from that of {name} by {error:.1e}, {mode} products"
    return ""


def _flatten(dtype: str, results: Results, truth: Results) -> tuple[float, str]:
    """Return the largest relative difference of tensors as vectors, and the tensor's name."""
    sizes = {name: float(np.linalg.norm(x)) for name, x in truth.items()}
    floor = 0.1 * max(sizes.values())
    errors = {
        name: float(np.linalg.norm(results[name] - x)) / max(sizes[name], floor)
        for name, x in truth.items()
    }
    worst = max(errors, key=lambda name: np.nan_to_num(errors[name], nan=np.inf))
    return errors[worst], worst


def main(dtype: str, precision: str) -> None:
    """Compare all kernels, and print the results."""
    began = time.perf_counter()
    compiling_seconds = [0.0]
    find_function = Source.function

    def time_call(*arguments: Any) -> Any:
        started = time.perf_counter()
        function = find_function(*arguments)
        compiling_seconds.append(time.perf_counter() - started)
        return function

    def print_line(**content: Any) -> None:
        print(json.dumps(content), flush=True)

    Source.launch = call_with_zones(Source.launch)  # type: ignore[method-assign]
    Source.function = time_call  # type: ignore[method-assign, assignment]
    print_line(names=list(CASES))
    get_backend("cupy")
    for kernel, problem in find_problems(dtype, precision):
        print_line(kernel=kernel, problem=problem)
    compiling = sum(compiling_seconds)
    seconds = time.perf_counter() - began - compiling
    print_line(seconds=round(seconds, 3), compiling=round(compiling, 3))


if __name__ == "__main__":
    main(*sys.argv[1:3])
