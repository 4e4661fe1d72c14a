"""The model in closed form: the time of an exchange, and of a training step.

With n ranks, a vector of B bytes, latency a, b seconds per byte on the link and c seconds to add a
byte (Thakur, Rabenseifner and Gropp, 2005)::

    ring      2 (n - 1) a  +  2 (n - 1) / n B b  +  (n - 1) / n B c
    halving   2 log2(n) a  +  the same

and a step with T seconds for forward and backward pass, U for the optimizer, m for each meeting::

    T  +  3 m  +  3 log2(n) a  +  all-reduce  +  U        m = call + log2(n) a

npformer meets three times: to agree whether to stop, to sum the losses, to sum the gradients. The
first two move one number each, in log2(n) and 2 log2(n) messages.
"""

import math

from benchmarks.network.schedules import LONG

MEETINGS, HOPS = 3, 6
"""In a step: meetings, and sequential messages for each doubling of the ranks."""


def ring(cluster, size):
    """Return the seconds of an all-reduce around a ring, one rank on each machine."""
    n, link = cluster.ranks, cluster.link
    share = (n - 1) / n * size
    return 2 * (n - 1) * link.latency + share * (2 * link.per_byte + cluster.add)


def halving(cluster, size):
    """Return the seconds of recursive halving and doubling, one rank on each machine."""
    n, link = cluster.ranks, cluster.link
    share = (n - 1) / n * size
    return 2 * math.log2(n) * link.latency + share * (2 * link.per_byte + cluster.add)


def mpich(cluster, size):
    """Return the seconds of the schedule that MPICH uses for this size."""
    return (halving if size < LONG else ring)(cluster, size)


def two_levels(cluster, size):
    """Return the seconds of an all-reduce within machines, between them, and within again."""
    k, m, link, memory = cluster.on_machine, cluster.machines, cluster.link, cluster.memory
    inside = (k - 1) / k * size
    between = (m - 1) / m * size  # for all ranks of a machine, which share its link
    seconds = 2 * math.log2(m) * link.latency + 2 * between * link.per_byte
    seconds += between / k * cluster.add
    if k > 1:
        seconds += 2 * (k - 1) * memory.latency + inside * (2 * memory.per_byte + cluster.add)
    return seconds


FORMULAS = {
    "as MPICH does": mpich,
    "ring": ring,
    "halving and doubling": halving,
    "two levels": two_levels,
}


def step(cluster, size, compute, update, schedule="as MPICH does", shard_moments=False):
    """Return the seconds of a step, one rank on each machine, all equally fast."""
    n = cluster.ranks
    if n == 1:
        return compute + update
    meetings = MEETINGS * cluster.call + HOPS * math.log2(n) * cluster.link.latency
    own_update = update / n if shard_moments else update
    return compute + meetings + FORMULAS[schedule](cluster, size) + own_update
