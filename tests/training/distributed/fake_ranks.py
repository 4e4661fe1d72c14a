"""Ranks that are threads of this process: for tests that need no launcher, and no MPI."""

import threading

import numpy as np

from npformer.training.distributed import Communicator


class FakeRank(Communicator):
    """One of several threads; what they tell each other lies in a list that all of them see."""

    def __init__(self, rank, size, told, barrier):
        self.rank, self.size, self._told, self._barrier = rank, size, told, barrier

    def gather(self, value):
        self._told[self.rank] = value
        self._barrier.wait()
        values = list(self._told)
        self._barrier.wait()
        return values

    def agree(self, *values):
        return np.array(self.gather(values), dtype="float64")

    def first(self, value):
        return self.gather(value)[0]

    def broadcast(self, x):
        x[...] = self.gather(x.copy())[0]

    def all_reduce(self, x):
        self.reduce_scatter(x)
        self.all_gather(x)

    def reduce_scatter(self, x):
        shard = self.shard(len(x))
        x[shard] = sum(values[shard] for values in self.gather(x.copy()))
        x[: shard.start] = x[shard.stop :] = np.nan  # nobody may read it

    def all_gather(self, x):
        shard = self.shard(len(x))
        x[...] = np.concatenate(self.gather(x[shard].copy()))

    def join_shards(self, x, n):
        values = np.concatenate(self.gather(x.copy()))
        assert values.size == n
        return values if self.rank == 0 else None


def run_threads(n, work):
    """Return what ``work(ranks)`` returns on each of n ranks; raise the first rank's error."""
    values = [None] * n
    barrier = threading.Barrier(n, timeout=20)
    results, errors = [None] * n, [None] * n

    def one(rank):
        try:
            results[rank] = work(FakeRank(rank, n, values, barrier))
        except BaseException as error:
            errors[rank] = error
            barrier.abort()

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    of_ranks = [e for e in errors if e is not None]
    causes = [e for e in of_ranks if not isinstance(e, threading.BrokenBarrierError)]
    if of_ranks:
        raise (causes or of_ranks)[0]
    return results
