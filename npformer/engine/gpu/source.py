"""CUDA sources: how their kernels are compiled and launched."""

from pathlib import Path
from typing import Any

from npformer.core import Array, Module, array_module

FOLDER = Path(__file__).parent / "cuda"

REAL = {"f": "float", "d": "double"}
"""What `real` is in a source, by NumPy's character for the dtype of the arrays."""

WARP = 32
"""Threads that run in step. A block is a whole number of warps."""

ELEMENTWISE = 256
"""Threads per block of elementwise kernels."""


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
        parts = [(FOLDER / file).read_text("utf-8") for file in ("common.cuh", f"{self.name}.cu")]
        return "\n".join([f"#define real {REAL[char]}", *parts])

    def launch(
        self, kernel: str, reference: Array, blocks: int, threads: int, *arguments: Any
    ) -> None:
        """Start a kernel without waiting for its end; `real` is the dtype of `reference`.

        Arguments follow the kernel's declaration: a C-contiguous array for a pointer or None for a
        null pointer, an int for an index_t, a float for a real.
        """
        if blocks == 0:  # CuPy would run one block anyway
            return
        dtype = reference.dtype
        xp = array_module(reference)
        key = xp, kernel, dtype.char
        function = self._kernels.get(key)
        if function is None:
            function = self._kernels[key] = self._module(xp, dtype.char).get_function(kernel)
        number = dtype.type
        given = []
        for argument in arguments:
            if argument is None:
                given.append(0)  # CuPy takes 0 as a null pointer, but refuses None
            elif isinstance(argument, float):
                given.append(number(argument))
            elif isinstance(argument, int):
                given.append(argument)
            else:
                # A kernel sees neither strides nor dtypes, and would read wrong numbers.
                if not argument.flags.c_contiguous:
                    raise ValueError(f"{self.name}.{kernel} got an array that is not C-contiguous")
                if argument.dtype.kind == "f" and argument.dtype != dtype:
                    raise TypeError(
                        f"{self.name}.{kernel} got an array of {argument.dtype} and one of "
                        f"{dtype}; expected one dtype"
                    )
                given.append(argument)
        function((blocks,), (threads,), tuple(given))

    def _module(self, xp: Module, char: str) -> Any:
        if (xp, char) not in self._modules:
            self._modules[xp, char] = xp.RawModule(code=self.text(char))
        return self._modules[xp, char]


def row_threads(width: int) -> int:
    """Return the threads of a block for one row: one thread for every four entries, up to 512."""
    return WARP * min(max(-(-width // (4 * WARP)), 1), 16)


def elementwise_blocks(n: int, each: int = 1) -> int:
    """Return how many blocks `n` entries need if each thread takes `each` of them."""
    return -(-n // (each * ELEMENTWISE))


def contiguous(x: Array) -> Array:
    """Return `x`, copied if it is not C-contiguous."""
    return x if x.flags.c_contiguous else array_module(x).ascontiguousarray(x)
