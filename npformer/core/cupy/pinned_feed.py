"""Feeding a GPU: batches are copied while it computes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from npformer.core.backend import Array, Module


@dataclass
class _Slot:
    """Memory for one batch on host and device, and an event at the end of the last copy."""

    pinned: Any = None
    device: Any = None
    copied: Any = None
    size: int = 0


class PinnedFeed:
    """A `Feed` that copies batches to a GPU on a separate stream, from pinned memory.

    The computing stream waits for a copy, but the host does not, so the next batch arrives while
    the GPU computes. There are two slots of memory. Before a third batch overwrites the first, the
    copying stream waits for all work that was launched before the second call, and the host waits
    for the first copy. So the host is never more than a few batches ahead.

    `empty_pinned` is ``cupyx.empty_pinned``, which makes NumPy arrays in pinned memory.
    """

    ALIGNMENT = 256  # bytes, as in CuPy's own allocations

    def __init__(self, cupy: Module, empty_pinned: Callable[..., np.ndarray]) -> None:
        self._cupy = cupy
        self._empty_pinned = empty_pinned
        self._copying = cupy.cuda.Stream(non_blocking=True)
        self._slots = [_Slot(), _Slot()]
        self._launched: Any = None  # an event after all work launched before the last call

    def __call__(self, *arrays: np.ndarray | None) -> tuple[Array, ...]:
        """Return NumPy arrays on the device, and None for None."""
        computing = self._cupy.cuda.get_current_stream()
        slot = self._slots[0]
        self._slots.reverse()
        sizes = (0 if x is None else x.nbytes for x in arrays)
        padded = [-(-size // self.ALIGNMENT) * self.ALIGNMENT for size in sizes]
        *offsets, total = accumulate(padded, initial=0)
        launched = computing.record(self._event())
        if slot.copied is not None:
            slot.copied.synchronize()  # the host must not overwrite what is still being copied
        if slot.size < total:
            slot.pinned = self._empty_pinned(total, dtype="uint8")
            slot.device = self._cupy.empty(total, dtype="uint8")
            slot.size = total
            self._copying.wait_event(launched)  # the new memory may have been in use until now
        elif self._launched is not None:
            self._copying.wait_event(self._launched)
        self._launched = launched
        _copy_into(slot.pinned, arrays, offsets)
        slot.device[:total].set(slot.pinned[:total], stream=self._copying)
        slot.copied = self._copying.record(self._event())
        computing.wait_event(slot.copied)
        return tuple(
            None if x is None else _view(slot.device, offset, x)
            for x, offset in zip(arrays, offsets, strict=True)
        )

    def close(self) -> None:
        """Wait for the last copy."""
        self._copying.synchronize()

    def _event(self) -> Any:
        return self._cupy.cuda.Event(disable_timing=True)


def _copy_into(
    memory: np.ndarray, arrays: Sequence[np.ndarray | None], offsets: Iterable[int]
) -> None:
    """Copy each array to its offset in `memory`."""
    for x, offset in zip(arrays, offsets, strict=True):
        if x is not None:
            np.copyto(_view(memory, offset, x), x)


def _view(memory: Array, offset: int, x: np.ndarray) -> Array:
    """Return the part of `memory` for `x`, in its dtype and shape."""
    return memory[offset : offset + x.nbytes].view(x.dtype).reshape(x.shape)
