"""The process that checks kernels, with the emulated device as "cupy", and some of them broken.

    python -m tests.kernels.gpu.child BREAK float32 float32

`verdict.PROGRAM` is set to it, where a test starts one.
"""

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from npformer.core import arrays as backends
from npformer.engine import gpu
from npformer.engine.gpu.source import Source
from npformer.proof import device_kernels
from tests.kernels.gpu import emulated


def changed(name: str, old: str, new: str) -> Callable[[], None]:
    """Replace words in a source of CUDA."""

    def apply() -> None:
        text = Source.text

        def instead(self: Source, char: str) -> str:
            found = text(self, char)
            if self.name == name:
                assert old in found
                return found.replace(old, new)
            return found

        Source.text = instead  # type: ignore[method-assign]

    return apply


class Bare:
    """`emulated.Memory` as a GPU has it: no margins, and nobody who looks."""

    def __init__(self, arrays: list[Any]) -> None:
        pass

    address = staticmethod(emulated._address)
    margins_are_intact = staticmethod(lambda: True)
    copy_back = staticmethod(lambda: None)


def outside() -> None:
    emulated.Memory = Bare  # type: ignore[misc, assignment]
    changed("norms", "    if (threadIdx.x == 0) inverse", "    z[row + d] = 7; inverse")()


def instead_of(name: str, function: Callable[..., Any]) -> Callable[[], None]:
    def apply() -> None:
        gpu.UPDATES[name] = function

    return apply


def fails(*arguments: Any, **options: Any) -> None:
    raise RuntimeError("an illegal memory access was encountered")


BREAKS: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "bare": lambda: setattr(emulated, "Memory", Bare),
    "numbers": changed("adam", "* shrink -", "* shrink - real(1.001) *"),
    "large": changed("sums", "sum += x", "if (row < 4096) sum += x"),
    "compile": changed("fourier", "real_part", "real_part) syntax error ("),
    "exception": instead_of("clip_by_global_norm", fails),
    "outside": outside,
    "dies": instead_of("adam_update", lambda *arguments, **options: os._exit(139)),
    "hangs": instead_of("adam_update", lambda *arguments, **options: time.sleep(1000)),
    "start": lambda: os._exit(3),
}

if __name__ == "__main__":
    backends.register(emulated.backend())
    BREAKS[sys.argv[1]]()
    device_kernels.main(*sys.argv[2:4])
