"""CUDA sources: where they are, and how their kernels are compiled and launched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from npformer.core import Array, Module, array_module

FOLDER = Path(__file__).parent / "cuda"

REAL = {"f": "float", "d": "double"}
"""What `real` is in a source, by the one-letter code of the arrays' dtype."""

WARP = 32
"""Threads that run in step. A block is a whole number of them."""

ELEMENTWISE = 256
"""Threads of a block in which each thread has its own entry."""


class Source:
    """A file of CUDA kernels, compiled when one is first launched, once for each type of numbers.

    CuPy keeps what it compiled on the disk, so that only the first process waits for it.

    Parameters
    ----------
    name : str
        Of the file, without its ending.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._modules: dict[tuple[Module, str], Any] = {}
        self._kernels: dict[tuple[Module, str, str], Any] = {}

    def text(self, char: str) -> str:
        """Return the source for one type of numbers.

        Parameters
        ----------
        char : {"f", "d"}
            NumPy's code of the dtype.
        """
        parts = [(FOLDER / file).read_text("utf-8") for file in ("common.cuh", f"{self.name}.cu")]
        return "\n".join([f"#define real {REAL[char]}", *parts])

    def launch(self, kernel: str, near: Array, blocks: int, threads: int, *arguments: Any) -> None:
        """Run a kernel; nothing waits for its end.

        Parameters
        ----------
        kernel : str
            A function of this file.
        near : array
            Its dtype says what `real` is.
        blocks, threads : int
            Blocks, and threads in each. Without blocks nothing is run.
        *arguments : array, int, float or None
            As the function declares them: C-contiguous arrays are pointers and None is a null
            pointer, an int is an index_t, a float a real.
        """
        if blocks == 0:  # CuPy would run one block after all
            return
        dtype = near.dtype
        xp = array_module(near)
        key = xp, kernel, dtype.char
        function = self._kernels.get(key)
        if function is None:
            function = self._kernels[key] = self._module(xp, dtype.char).get_function(kernel)
        number = dtype.type
        given = []
        for argument in arguments:
            if argument is None:
                given.append(0)  # CuPy makes a null pointer of 0, and of None nothing at all
            elif isinstance(argument, float):
                given.append(number(argument))
            elif isinstance(argument, int):
                given.append(argument)
            else:
                # A kernel sees neither strides nor dtypes: it would read something else.
                if not argument.flags.c_contiguous:
                    raise ValueError(f"{self.name}.{kernel} got an array that is not C-contiguous")
                if argument.dtype.kind == "f" and argument.dtype != dtype:
                    raise TypeError(
                        f"{self.name}.{kernel} got an array of {argument.dtype} beside one of "
                        f"{dtype}; expected one dtype"
                    )
                given.append(argument)
        function((blocks,), (threads,), tuple(given))

    def _module(self, xp: Module, char: str) -> Any:
        if (xp, char) not in self._modules:
            self._modules[xp, char] = xp.RawModule(code=self.text(char))
        return self._modules[xp, char]


def row_threads(width: int) -> int:
    """Return the threads of a block that has one row: about four entries each, up to 512 threads.

    Parameters
    ----------
    width : int
        Entries of a row.
    """
    return WARP * min(max(-(-width // (4 * WARP)), 1), 16)


def elementwise_blocks(n: int, each: int = 1) -> int:
    """Return how many blocks `n` entries need, with `each` of them for a thread."""
    return -(-n // (each * ELEMENTWISE))


def contiguous(x: Array) -> Array:
    """Return `x`, copied if it is not C-contiguous."""
    return x if x.flags.c_contiguous else array_module(x).ascontiguousarray(x)
