"""Compile and launch the kernels of CUDA sources."""

from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import Array, Module, array_module

FOLDER = Path(__file__).parent / "cuda"

REAL = {"f": "float", "d": "double"}
"""The type `real` of a source, by NumPy's code for the dtype of the arrays."""

WARP = 32
"""Threads that run in step. A block is a whole number of warps."""

ELEMENTWISE = 256
"""Threads per block of elementwise kernels."""


Grid = tuple[int, int]
"""The number of blocks, and the number of threads in each."""


class Source:
    """A file of CUDA kernels, compiled at their first launch, once for float and once for double.

    CuPy keeps compiled kernels on disk, so that only the first process waits for the compiler.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._modules: dict[tuple[Module, str], Any] = {}
        self._kernels: dict[tuple[Module, str, str], Any] = {}

    def text(self, char: str) -> str:
        """Return the source for a code in `REAL`."""
        sources = [(FOLDER / file).read_text("utf-8") for file in ("common.cuh", f"{self.name}.cu")]
        return "\n".join([f"#define real {REAL[char]}", *sources])

    def launch(self, kernel: str, grid: Grid, *arguments: Any) -> None:
        """Start a kernel without waiting for its end.

        Arguments follow the kernel's declaration: a C-contiguous array for a pointer or None for a
        null pointer, an int for an index_t, a float for a real. A real has the dtype of the
        floating arrays.
        """
        blocks, threads = grid
        if blocks == 0:  # CuPy would run one block anyway
            return
        arrays = [x for x in arguments if x is not None and not isinstance(x, int | float)]
        dtype = next((x.dtype for x in arrays if x.dtype.kind == "f"), np.dtype("float32"))
        values = []
        for argument in arguments:
            if isinstance(argument, float):
                argument = dtype.type(argument)
            elif argument is not None and not isinstance(argument, int):
                # A kernel sees neither strides nor dtypes, and would read wrong numbers.
                if not argument.flags.c_contiguous:
                    raise ValueError(f"{self.name}.{kernel} got an array that is not C-contiguous")
                if argument.dtype.kind == "f" and argument.dtype != dtype:
                    raise TypeError(
                        f"{self.name}.{kernel} got an array of {argument.dtype} and one of "
                        f"{dtype}; expected one dtype"
                    )
            values.append(0 if argument is None else argument)  # CuPy's null pointer
        function = self.function(array_module(arrays[0]), dtype.char, kernel)
        function((blocks,), (threads,), tuple(values))

    def function(self, xp: Module, char: str, kernel: str) -> Any:
        """Return a compiled kernel."""
        if (xp, char, kernel) not in self._kernels:
            if (xp, char) not in self._modules:
                self._modules[xp, char] = xp.RawModule(code=self.text(char))
            self._kernels[xp, char, kernel] = self._modules[xp, char].get_function(kernel)
        return self._kernels[xp, char, kernel]


def per_row(n: int, width: int) -> Grid:
    """Return a block for each of n rows: one thread for every four entries, up to 512."""
    return n, WARP * min(max(-(-width // (4 * WARP)), 1), 16)


def per_entry(n: int, per_thread: int = 1) -> Grid:
    """Return blocks for `n` entries, of which each thread takes `per_thread`."""
    return -(-n // (per_thread * ELEMENTWISE)), ELEMENTWISE


def contiguous(x: Array) -> Array:
    """Return `x`, copied if it is not C-contiguous."""
    return x if x.flags.c_contiguous else array_module(x).ascontiguousarray(x)
