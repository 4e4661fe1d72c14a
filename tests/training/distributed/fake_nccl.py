"""A stand-in for cupy.cuda.nccl on the fake device: real ranks, pointers and sizes, by MPI.

Calls between groupStart and groupEnd are carried out by groupEnd, and on a GPU even later, so a
result that is read before is not there yet. What NCCL leaves undefined is NaN afterwards.
"""

import ctypes

import numpy as np
from mpi4py import MPI

DTYPES = {"NCCL_FLOAT32": "float32", "NCCL_FLOAT64": "float64", "NCCL_UINT8": "uint8"}
STREAM = 12345


def memory_at(pointer, count, dtype):
    """Return the array that lies at a pointer."""
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(pointer), dtype)


class FakeNCCL:
    """The module. `calls` counts what was asked of all communicators."""

    NCCL_FLOAT32, NCCL_FLOAT64, NCCL_UINT8, NCCL_SUM = 7, 8, 1, 0

    def __init__(self, available=True):
        self.available = available
        self.calls = []
        self._group = None

    def get_unique_id(self):
        assert MPI.COMM_WORLD.Get_rank() == 0, "only the first rank makes the identity"
        return b"an identity"

    def NcclCommunicator(self, n, identity, rank):
        assert identity == b"an identity"
        assert (n, rank) == (MPI.COMM_WORLD.Get_size(), MPI.COMM_WORLD.Get_rank())
        return FakeNcclCommunicator(self)

    def groupStart(self):
        assert self._group is None
        self._group = []

    def groupEnd(self):
        group, self._group = self._group, None
        for call in group:
            call()

    def _do(self, name, code, count, work):
        """Carry out what has been asked, now or at the end of the group."""
        dtype = next(d for name, d in DTYPES.items() if getattr(self, name) == code)
        self.calls.append((name, count, dtype))
        if self._group is None:
            work(dtype)
        else:
            self._group.append(lambda: work(dtype))


class FakeNcclCommunicator:
    """CuPy's communicator, with the arguments of version 14."""

    def __init__(self, nccl):
        self._nccl = nccl
        self._comm = MPI.COMM_WORLD.Dup()

    def broadcast(self, sendbuff, recvbuff, count, datatype, root, stream):
        assert stream == STREAM

        def work(dtype):
            received = memory_at(sendbuff, count, dtype).copy()
            self._comm.Bcast(received, root)
            memory_at(recvbuff, count, dtype)[...] = received

        self._nccl._do("broadcast", datatype, count, work)

    def reduce(self, sendbuf, recvbuf, count, datatype, op, root, stream):
        assert stream == STREAM
        assert op == self._nccl.NCCL_SUM

        def work(dtype):
            values = memory_at(sendbuf, count, dtype).copy()
            total = np.empty_like(values) if self._comm.Get_rank() == root else None
            self._comm.Reduce(values, total, MPI.SUM, root)
            memory_at(recvbuf, count, dtype)[...] = np.nan if total is None else total

        self._nccl._do("reduce", datatype, count, work)
