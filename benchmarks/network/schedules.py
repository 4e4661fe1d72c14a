"""Who sends what to whom: the rounds of the exchanges, as MPI libraries make them.

In a round, each rank sends one message and receives one. The rounds of Thakur, Rabenseifner and
Gropp (2005), "Optimization of Collective Communication Operations in MPICH", and two levels.
"""

from typing import NamedTuple

import numpy as np

LONG = 1 << 19
"""Bytes from which on MPICH uses the schedules for long vectors (Thakur et al., 2005)."""


class Round(NamedTuple):
    """One message from each rank to another."""

    to: np.ndarray
    """The rank to which each rank sends; each rank occurs once."""
    size: float
    """Bytes of a message."""
    adds: bool = False
    """Whether a rank adds what it receives to what it has."""


def meeting(n):
    """Yield the rounds of a small all-reduce: after log2 n of them each rank has heard from all."""
    ranks, apart = np.arange(n), 1
    while apart < n:
        yield Round(ranks ^ apart, 0.0)
        apart *= 2


def halving(n, size):
    """Yield a reduce-scatter in log2 n rounds: half of what is left goes to a partner."""
    ranks, apart = np.arange(n), n // 2
    while apart:
        size /= 2
        yield Round(ranks ^ apart, size, adds=True)
        apart //= 2


def doubling(n, size):
    """Yield an all-gather in log2 n rounds: partners give each other what they have."""
    ranks, apart = np.arange(n), 1
    while apart < n:
        yield Round(ranks ^ apart, size * apart / n)
        apart *= 2


def pairwise(n, size):
    """Yield a reduce-scatter in n - 1 rounds: each shard goes to the rank that owns it."""
    ranks = np.arange(n)
    for apart in range(1, n):
        yield Round((ranks + apart) % n, size / n, adds=True)


def ring(n, size, adds=False):
    """Yield n - 1 rounds in which a shard goes to the next rank, to be added or kept."""
    to = (np.arange(n) + 1) % n
    for _ in range(n - 1):
        yield Round(to, size / n, adds)


def all_reduce_ring(cluster, size):
    """Yield a reduce-scatter and an all-gather around a ring."""
    yield from ring(cluster.ranks, size, adds=True)
    yield from ring(cluster.ranks, size)


def all_reduce_halving(cluster, size):
    """Yield a reduce-scatter by recursive halving, an all-gather by recursive doubling."""
    yield from halving(cluster.ranks, size)
    yield from doubling(cluster.ranks, size)


def all_reduce_mpich(cluster, size):
    """Yield the rounds of MPICH's Reduce_scatter and Allgatherv for this size."""
    if size < LONG:
        yield from all_reduce_halving(cluster, size)
        return
    yield from pairwise(cluster.ranks, size)
    yield from ring(cluster.ranks, size)


def all_reduce_two_levels(cluster, size):
    """Yield sums within machines, then between them, then copies within machines.

    Each rank of a machine has a shard of the machine's sum, and exchanges it with the ranks in
    the same position on other machines.
    """
    n, k = cluster.ranks, cluster.on_machine
    ranks = np.arange(n)
    local = ranks % k
    inside = ranks - local + (local + 1) % k
    for _ in range(k - 1):
        yield Round(inside, size / k, adds=True)
    for of_machines in (halving, doubling):
        for to, part, adds in of_machines(cluster.machines, size / k):
            yield Round(to[ranks // k] * k + local, part, adds)
    for _ in range(k - 1):
        yield Round(inside, size / k)


SCHEDULES = {
    "as MPICH does": all_reduce_mpich,
    "ring": all_reduce_ring,
    "halving and doubling": all_reduce_halving,
    "two levels": all_reduce_two_levels,
}
