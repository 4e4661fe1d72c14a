"""What ranks tell each other, and how they fail: ``talk.py WAY``. Each rank prints one line."""

import os
import sys
import time

import numpy as np

from npformer.training.distributed import Communicator, RankFailed, communicator_of, mpi, world


def exchange(ranks):
    """Try every method of a communicator."""
    n, rank = ranks.size, ranks.rank
    assert ranks.agree(rank, 0.5).tolist() == [[k, 0.5] for k in range(n)]
    assert ranks.gather({"rank": rank}) == [{"rank": k} for k in range(n)]
    assert ranks.first(f"from {rank}") == "from 0"
    joined = ranks.concatenate(np.full((rank, 2), rank))
    assert joined.tolist() == [[k, k] for k in range(n) for _ in range(k)]
    assert 0 <= ranks.local_rank < ranks.local_size == n
    for dtype in ("float32", "float64"):
        for size in (0, 1, 3, 1000):
            vectors = [np.random.default_rng(k).normal(size=size).astype(dtype) for k in range(n)]
            x = vectors[rank].copy()
            shard = ranks.shard(size)
            ranks.all_reduce(x)
            np.testing.assert_allclose(x, np.sum(vectors, axis=0), rtol=1e-5, atol=1e-6)
            assert len(set(ranks.gather(x.tobytes()))) == 1
            y = vectors[rank].copy()
            ranks.reduce_scatter(y)
            assert y[shard].tobytes() == x[shard].tobytes()
            z = np.zeros_like(x)
            z[shard] = x[shard]
            ranks.all_gather(z)
            assert z.tobytes() == x.tobytes()
            ranks.broadcast(z := np.full(size, rank, dtype))
            assert not z.any()


def fail(ranks, way):
    """Fail as one rank, or as several, while the others wait."""
    mpi.PATIENCE = 0.5
    with ranks.guard():
        ranks.agree(0.0)
        if way == "one" and ranks.rank == ranks.size - 1:
            time.sleep(0.1)  # the others are waiting
            raise ValueError("something is wrong")
        if way == "several" and ranks.rank > 0:
            raise ValueError("something is wrong")
        if way == "late" and ranks.rank == 1:
            ranks.all_reduce(np.ones(3))
            raise ValueError("something is wrong")
        if way == "killed" and ranks.rank == 1:
            os.kill(os.getpid(), 9)
        if way == "alone" and ranks.rank == 1:
            raise ValueError("something is wrong")
        while way == "alone":
            time.sleep(1)  # and never meet the others again
        ranks.all_reduce(np.ones(3))


def main(way):
    """Do what is asked for."""
    ranks = world()
    if way == "exchange":
        from mpi4py import MPI

        exchange(ranks)
        for n in (1, 2):  # with ranks from n on, two communicators
            group = communicator_of(MPI.COMM_WORLD.Split(ranks.rank < n, ranks.rank))
            assert group.size == (n if ranks.rank < n else ranks.size - n)
            assert (type(group) is Communicator) == (group.size == 1)
            exchange(group)
        assert communicator_of(None).size == 1
        try:  # ranks that know of a failure may go on together
            fail(ranks, "one")
        except (RankFailed, ValueError) as error:
            *other_errors, own_error = ranks.gather(str(error))
            assert set(other_errors) == {f"rank {ranks.size - 1} failed"}
            assert own_error == "something is wrong"
    else:
        fail(ranks, way)
    print(f"rank {ranks.rank} is done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
