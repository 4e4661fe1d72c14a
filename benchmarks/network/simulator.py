"""The simulator: when each rank has computed, met the others, exchanged and updated.

Each rank has a clock. A message leaves when its sender is ready and the link is free, and arrives
``latency + bytes / bandwidth`` later; a rank continues with its next message when it has sent and
received. The messages of a machine's ranks follow each other on its link, round by round, within
a round in the order in which they are ready.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from benchmarks.network.schedules import SCHEDULES, doubling, halving, meeting

SPIN, PAUSE = 0.002, 0.0002
"""As in `training/distributed/mpi.py`: a rank that has waited for a while polls less often."""


@dataclass(frozen=True)
class Noise:
    """How the computing times of ranks differ from step to step."""

    sigma: float = 0.0
    """The standard deviation of the logarithm of times: usual noise is of this size."""
    slow: float = 0.0
    """The probability that something else delays a rank in a step."""
    factor: float = 1.0
    """The factor by which it then takes longer."""

    def draw(self, rng, steps, n):
        """Return the factor by which each rank takes longer than usual in each step.

        The number of slow ranks is stratified, so that the mean over few steps is near that over
        many.
        """
        found = rng.lognormal(0.0, self.sigma, (steps, n))
        strata = (rng.permutation(steps) + 0.5) / steps
        for row, count in zip(found, binom.ppf(strata, n, self.slow), strict=True):
            row[rng.choice(n, int(count), replace=False)] *= self.factor
        return found


QUIET = Noise()
USUAL = Noise(sigma=0.03, slow=0.001, factor=1.5)
"""An assumption, not a measurement: 3 % of noise, and one step of a rank in 1,000 takes half as
long again."""


@dataclass(frozen=True)
class Work:
    """What each rank does in a step."""

    compute: float
    """Seconds of the forward and backward pass."""
    update: float
    """Seconds of the optimizer, on all parameters."""
    pieces: tuple[tuple[float, float], ...]
    """The pieces to sum: after which share of `compute` each is ready, and its bytes."""
    shard_moments: bool = False
    meets: bool = True
    """Whether ranks meet before they exchange, as npformer's do."""

    @property
    def size(self):
        """Return the bytes of all gradients."""
        return sum(size for _, size in self.pieces)


class Simulation:
    """Ranks at work.

    Parameters
    ----------
    cluster : Cluster
    work : Work
    schedule : str
        In `SCHEDULES`.
    noise : Noise
    seed : int
    """

    def __init__(self, cluster, work, schedule="as MPICH does", noise=QUIET, seed=0):
        self.cluster, self.work, self.noise = cluster, work, noise
        self.schedule = SCHEDULES[schedule]
        self.seed, self.late = seed, np.random.default_rng((seed, 1))
        self.polls = noise is not QUIET
        n, k = cluster.ranks, cluster.on_machine
        self._machine, self._shape = np.arange(n) // k, (n // k, k)
        self._out_free, self._in_free = np.zeros((2, n // k, 1))

    def seconds(self, steps):
        """Return the mean seconds of a step."""
        n = self.cluster.ranks
        clock = np.zeros(n)
        for factors in self.noise.draw(np.random.default_rng(self.seed), steps, n):
            clock = self.step(clock, factors)
        return float(clock.max()) / steps

    def step(self, clock, factors):
        """Return the clocks after a step whose computing takes the given factors longer."""
        cluster, work = self.cluster, self.work
        n = cluster.ranks
        update = work.update / n if work.shard_moments else work.update
        taken = work.compute * factors
        if n == 1:
            return clock + taken + update
        if work.meets:
            clock = self.run(doubling(n, 0.0), self.meet(clock))  # to agree whether to stop
        done = clock + taken
        sent = clock + work.pieces[0][0] * taken
        if len(work.pieces) == 1:
            sent = self.sum_losses(done)
        sent = self.meet(sent)
        for ready, size in work.pieces:
            sent = np.maximum(sent, clock + ready * taken)
            sent = self.run(self.schedule(cluster, size), sent)
        if len(work.pieces) > 1:
            sent = self.sum_losses(np.maximum(sent, done))
        return sent + update

    def sum_losses(self, clock):
        """Return the clocks after one number is summed."""
        if not self.work.meets:
            return clock
        n = self.cluster.ranks
        clock = self.run(halving(n, 0.0), self.meet(clock))
        return self.run(doubling(n, 0.0), clock)

    def meet(self, clock):
        """Return the clocks after a meeting. A rank that waited long notices it a little late."""
        if not self.work.meets:
            return clock
        came = clock + self.cluster.call
        now = came
        for each in meeting(self.cluster.ranks):
            there = self.exchange(now, *each)
            if self.polls:
                late = self.late.uniform(0.0, PAUSE, len(there))
                there = there + np.where((there > now) & (there - came > SPIN), late, 0.0)
            now = there
        return now

    def run(self, rounds, clock):
        """Return the clocks after all rounds."""
        for each in rounds:
            clock = self.exchange(clock, *each)
        return clock

    def exchange(self, clock, to, size, adds=False):
        """Return the clocks after a round."""
        cluster = self.cluster
        link = cluster.link
        left, arrived = clock + size * link.per_byte, np.empty_like(clock)
        if cluster.on_machine == 1:
            arrived[to] = left + link.latency
        else:
            memory, crosses = cluster.memory, self._machine[to] != self._machine
            left = clock + size * memory.per_byte
            arrived[to] = left + memory.latency
            if crosses.any():
                passed = self._one_by_one(clock, crosses, self._out_free, size * link.per_byte)
                left[crosses] = passed[crosses]
                arrived[to[crosses]] = passed[crosses] + link.latency
                into = np.zeros_like(crosses)
                into[to[crosses]] = True
                begun = arrived - size * link.per_byte
                there = self._one_by_one(begun, into, self._in_free, size * link.per_byte)
                arrived[into] = there[into]
        added = cluster.add * size if adds else 0.0
        return np.maximum(left, arrived) + added

    def _one_by_one(self, ready, which, free, service):
        """Return when each message has passed its machine's link, which serves one at a time."""
        shape = self._shape
        here = which.reshape(shape)
        waiting = np.where(here, ready.reshape(shape), np.inf)
        order = np.argsort(waiting, axis=1, kind="stable")
        sorted_ = np.maximum(np.take_along_axis(waiting, order, axis=1), free)
        place = np.arange(shape[1])
        # end[j] = max(ready[j], end[j - 1]) + service
        ends = np.maximum.accumulate(sorted_ - place * service, axis=1) + (place + 1) * service
        finite = np.where(np.isfinite(ends), ends, -np.inf).max(axis=1, keepdims=True)
        np.maximum(free, finite, out=free)
        passed = np.empty(shape)
        np.put_along_axis(passed, order, ends, axis=1)
        return passed.reshape(-1)


def seconds(cluster, work, schedule="as MPICH does", noise=QUIET, seed=0, steps=1):
    """Return the mean seconds of a simulated step."""
    return Simulation(cluster, work, schedule, noise, seed).seconds(steps)
