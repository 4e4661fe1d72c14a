"""NCCL: arrays that the ranks' GPUs exchange by themselves, without the host's memory."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from npformer.core import Array, Backend, Link
from npformer.training.distributed.communicator import Communicator

SLOWER = "gradients go through the memory of the host, which is slower"


class NCCL:
    """The GPUs of the ranks, one for each, joined by NVIDIA's library.

    All its work is launched on the current stream, in order with what computes the arrays, and the
    host does not wait for it. Arrays are contiguous.

    Parameters
    ----------
    link : Link
    connection : cupy.cuda.nccl.NcclCommunicator
    """

    def __init__(self, link: Link, connection: Any) -> None:
        self._link, self._connection = link, connection

    def broadcast(self, x: Array) -> None:
        """Copy the array of rank 0 into that of each rank."""
        self._copy(x, slice(0, x.size), 0)

    def reduce_scatter(self, x: Array, shards: list[slice]) -> None:
        """Replace each rank's shard of a vector by the sum; the rest is undefined afterwards.

        ncclReduceScatter takes shards of one size only. A group of reductions, each to the rank
        that owns the shard, takes any; NCCL runs them at the same time.
        """
        nccl, stream = self._link.nccl, self._link.stream()
        dtype = getattr(nccl, f"NCCL_{x.dtype.name.upper()}")
        with self._together():
            for rank, shard in enumerate(shards):
                if n := shard.stop - shard.start:
                    at = x.data.ptr + shard.start * x.itemsize
                    self._connection.reduce(at, at, n, dtype, nccl.NCCL_SUM, rank, stream)

    def all_gather(self, x: Array, shards: list[slice]) -> None:
        """Fill a vector: each rank gives its shard of it. Copies have the same bits everywhere."""
        with self._together():
            for rank, shard in enumerate(shards):
                self._copy(x, shard, rank)

    def _copy(self, x: Array, shard: slice, root: int) -> None:
        """Copy a part of an array from one rank to all others, as bytes, of whatever dtype."""
        if n := (shard.stop - shard.start) * x.itemsize:
            at = x.data.ptr + shard.start * x.itemsize
            code = self._link.nccl.NCCL_UINT8
            self._connection.broadcast(at, at, n, code, root, self._link.stream())

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Let NCCL begin several calls at the same time, or none of them after an error."""
        self._link.nccl.groupStart()
        try:
            yield
        finally:
            self._link.nccl.groupEnd()


def connect(backend: Backend, ranks: Communicator) -> NCCL | None:
    """Join the devices of all ranks; None, with a warning, if that is not possible.

    All ranks call it together, each after choosing its own device.
    """
    link = None if backend.link is None else backend.link()
    own_device = link and (bool(link.nccl.available), (platform.node(), link.device()))
    of_ranks = ranks.gather(own_device)
    if (problem := _problem(of_ranks)) or link is None:
        if problem and ranks.rank == 0:
            warnings.warn(f"{problem}. Until then {SLOWER}", stacklevel=5)
        return None
    nccl = link.nccl
    identity = ranks.first(nccl.get_unique_id() if ranks.rank == 0 else None)
    return NCCL(link, nccl.NcclCommunicator(ranks.size, identity, ranks.rank))


def _problem(of_ranks: list[Any]) -> str:
    """Return why the devices of ranks cannot be joined; "" if they can, or if there are none."""
    if any(device is None for device in of_ranks):
        return ""
    without = [str(rank) for rank, (available, _) in enumerate(of_ranks) if not available]
    if without:
        return (
            f"NCCL cannot be loaded on rank {', '.join(without)}; expected it beside CuPy. Install "
            'it: python -m pip install "npformer[nccl13]" (or "npformer[nccl12]" for CUDA 12)'
        )
    first: dict[Any, int] = {}
    for rank, (_, device) in enumerate(of_ranks):
        if (other := first.setdefault(device, rank)) != rank:
            node, address = device
            return (
                f"ranks {other} and {rank} share the GPU {address} of {node}; expected a GPU for "
                "each rank. Start at most as many ranks as there are GPUs on a machine"
            )
    return ""
