"""A workspace that lends arrays without numbers, and counts what a real one would have taken."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.core import Array
from npformer.engine.context import EngineContext, Result
from npformer.engine.threads import slices
from npformer.engine.unfilled.arrays import Unfilled, lease_of, memory_for
from npformer.engine.unfilled.ledger import Ledger, Use
from npformer.engine.workspace import Workspace

_HOST = np.empty(0)


class Block:
    """A block of memory that is never touched."""

    __slots__ = ("address", "memory", "most", "use")

    def __init__(self, size: int) -> None:
        self.memory = memory_for(size)
        self.address = self.memory.__array_interface__["data"][0]
        self.most = 0
        self.use: Use | None = None


class UnfilledWorkspace(Workspace):
    """Lends unfilled arrays by the rules of `Workspace`.

    The system gives memory to what is written, so a block counts as much as the largest array that
    was in it.
    """

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self.ledger = ledger
        self.blocks: list[Block] = []

    def empty(self, shape: tuple[int, ...], reference: Array, dtype: Any = None) -> Array:
        """Lend an unfilled array."""
        array = super().empty(shape, _HOST, reference.dtype if dtype is None else dtype)
        lease = lease_of(array)
        block = getattr(lease, "_block", None)
        if block is not None:
            n_bytes = math.prod(shape) * array.dtype.itemsize
            if block.use is not None:
                self.ledger.forget(block.use)
            block.use = self.ledger.use(n_bytes)
            if n_bytes > block.most:
                self.ledger.grow(n_bytes - block.most)
                block.most = n_bytes
        return array.view(Unfilled)

    def _new_block(self, size: int) -> Any:
        block = Block(size)
        self.blocks.append(block)
        return block

    def tidy(self, patience: int = 8) -> None:
        """Free nothing: some steps are not enough to know what is not needed."""

    def all_uses(self) -> list[Use]:
        """Return what each block is used for, or was."""
        return [block.use for block in self.blocks if block.use is not None]

    def live_uses(self) -> list[Use]:
        """Return what the blocks that are lent are used for."""
        free = {id(block) for blocks in self._free.values() for block in blocks}
        lent = [block for block in self.blocks if id(block) not in free]
        return [block.use for block in lent if block.use is not None]


class UnfilledContext(EngineContext):
    """An `EngineContext` whose slices run one after another, with the memory of a thread each."""

    def map_slices(self, compute: Callable[[slice], Result], n: int) -> list[Result]:
        """Do what `EngineContext.map_slices` does."""
        workspace: Any = self.workspace
        results = []
        all_held: dict[int, list[Block]] = {}
        for rows in slices(n, self.threads):
            free = {size: list(blocks) for size, blocks in workspace._free.items()}
            uses = {id(block): block.use for blocks in free.values() for block in blocks}
            results.append(compute(rows))
            for size, blocks in workspace._free.items():
                # What this slice has used and given back, another thread could not use meanwhile.
                held = [b for b in blocks if uses.get(id(b), self) is not b.use]
                all_held.setdefault(size, []).extend(held)
                blocks[:] = [b for b in blocks if b not in held]
        for size, blocks in all_held.items():
            workspace._free[size].extend(blocks)
        return results
