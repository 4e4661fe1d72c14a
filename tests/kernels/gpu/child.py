"""The process that checks kernels, with the emulated device as "cupy", and some of them broken.

    python -m tests.kernels.gpu.child BREAK float32 float32

`trusted_kernels.command_of_check` returns this command, where a test starts one.
"""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from npformer.core import Backend
from npformer.core import arrays as backends
from npformer.engine import gpu, kernel_check
from npformer.engine.gpu.source import Source
from tests.kernels.gpu import emulated


def change_source(name: str, old: str, new: str) -> Callable[[], None]:
    """Replace words in a source of CUDA."""

    def apply() -> None:
        text = Source.text

        def instead(self: Source, char: str) -> str:
            source = text(self, char)
            if self.name == name:
                assert old in source
                return source.replace(old, new)
            return source

        Source.text = instead  # type: ignore[method-assign]

    return apply


class Bare:
    """`emulated.Memory` as a GPU has it: no margins, and nobody who looks."""

    def __init__(self, arrays: list[Any]) -> None:
        pass

    address = staticmethod(emulated._address)
    margins_are_intact = staticmethod(lambda: True)
    copy_back = staticmethod(lambda: None)


def bare() -> None:
    emulated.Memory = Bare  # type: ignore[misc, assignment]


def outside() -> None:
    """Write behind the last row, as on a GPU, where nobody looks."""
    bare()
    change_source("norms", "if (threadIdx.x == 0) inverse_std", "z[row + width] = 7; inverse_std")()


def instead_of(name: str, function: Callable[..., Any]) -> Callable[[], None]:
    def apply() -> None:
        gpu.UPDATES[name] = function

    return apply


def fails(*arguments: Any, **options: Any) -> None:
    raise RuntimeError("an illegal memory access was encountered")


BREAKS: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "nothing, in full": lambda: None,
    "nothing, on bare memory": bare,
    "numbers": change_source("adam", "* shrink -", "* shrink - real(1.001) *"),
    "large": change_source("sums", "sum += x", "if (rows <= 4096 || row < 16) sum += x"),
    "compile": change_source("fourier", "const index_t half =", "half ="),
    "exception": instead_of("clip_by_global_norm", fails),
    "outside": outside,
    "dies": instead_of("adam_update", lambda *arguments, **options: os._exit(139)),
    "hangs": instead_of("adam_update", lambda *arguments, **options: time.sleep(1000)),
    "exception of adam": instead_of("adam_update", fails),
    "start": lambda: os._exit(3),
}

IN_FULL = ("nothing, in full", "large")
"""All others run the first, smallest case of each kernel alone."""


def backend() -> Backend:
    """Return the emulated device with all that a verdict says of a real one."""
    details = [("GPU", "an emulated GPU"), ("driver", "for CUDA 13.0"), ("cupy", "14.2.0")]
    return replace(emulated.backend(), details=lambda: details)


if __name__ == "__main__":
    backends.register(backend())
    what = sys.argv[1]
    if what not in IN_FULL:
        first = {name: cases[:1] for name, cases in kernel_check.CASES.items()}
        kernel_check.CASES = first
    if what == "hangs":  # soon
        few = ("linear", "adam_update", "clip_by_global_norm", "DeviceGenerator")
        kernel_check.CASES = {name: kernel_check.CASES[name] for name in few}
    BREAKS[what]()
    kernel_check.main(*sys.argv[2:4])
