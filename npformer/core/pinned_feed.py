"""Feeding a GPU: batches are copied while it computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.core.backend import Array, Module


class PinnedFeed:
    """Copies batches to a GPU on a stream of its own, through memory that the GPU reads directly.

    The stream that computes waits for a copy, the host does not: while the GPU is busy with one
    batch, the next one arrives. Two batches have memory, in turn. Before a third is copied into the
    first one's place, the copying stream waits for the work that was launched before the second
    came, and the host for the end of the first copy. So the host is never more than some batches
    ahead.

    Parameters
    ----------
    cupy : module
    empty_pinned : callable
        ``cupyx.empty_pinned``: makes NumPy arrays in such memory.
    """

    ALIGNMENT = 256  # bytes, that of CuPy's own allocations

    def __init__(self, cupy: Module, empty_pinned: Callable[..., np.ndarray]) -> None:
        self._cupy = cupy
        self._empty_pinned = empty_pinned
        self._copying = cupy.cuda.Stream(non_blocking=True)
        self._slots = [_Slot(), _Slot()]
        self._launched: Any = None  # marks all work that was launched before the last call

    def __call__(self, *arrays: np.ndarray | None) -> tuple[Array, ...]:
        """Return the arrays on the device.

        Parameters
        ----------
        *arrays : NumPy array or None
        """
        computing = self._cupy.cuda.get_current_stream()
        slot = self._slots[0]
        self._slots.reverse()
        offsets, size = [], 0
        for x in arrays:
            offsets.append(size)
            size += 0 if x is None else -(-x.nbytes // self.ALIGNMENT) * self.ALIGNMENT
        launched = computing.record(self._event())
        if slot.copied is not None:
            slot.copied.synchronize()  # or the host would write into what is still being copied
        if slot.size < size:
            slot.pinned = self._empty_pinned(size, dtype="uint8")
            slot.device = self._cupy.empty(size, dtype="uint8")
            slot.size = size
            self._copying.wait_event(launched)  # the new memory may have been in use till then
        elif self._launched is not None:
            self._copying.wait_event(self._launched)
        self._launched = launched
        for x, offset in zip(arrays, offsets, strict=True):
            if x is not None:
                place = slot.pinned[offset : offset + x.nbytes]
                np.copyto(place.view(x.dtype).reshape(x.shape), x)
        slot.device[:size].set(slot.pinned[:size], stream=self._copying)
        slot.copied = self._copying.record(self._event())
        computing.wait_event(slot.copied)
        return tuple(
            None if x is None else slot.view(offset, x)
            for x, offset in zip(arrays, offsets, strict=True)
        )

    def close(self) -> None:
        """Wait for the last copy."""
        self._copying.synchronize()

    def _event(self) -> Any:
        return self._cupy.cuda.Event(disable_timing=True)


class _Slot:
    """Memory for one batch on both sides, and what marks the end of the last copy."""

    pinned: Any = None
    device: Any = None
    copied: Any = None
    size = 0

    def view(self, offset: int, x: np.ndarray) -> Array:
        """Return the device's copy of `x`."""
        return self.device[offset : offset + x.nbytes].view(x.dtype).reshape(x.shape)
