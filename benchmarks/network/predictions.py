"""What the simulator predicts for ranks that train together."""

from dataclasses import replace

import numpy as np

from benchmarks.network import formulas
from benchmarks.network.networks import NETWORKS, Cluster, Link
from benchmarks.network.simulator import QUIET, USUAL, Simulation, Work, seconds

RANKS = tuple(1 << k for k in range(11))
CORES = (1, 16)
GLOBAL_BATCH = 1024
"""Samples in a step in strong scaling: one for each of 1,024 ranks."""
STEPS, COMPARED, RANK_STEPS = 16, 6, 1024
"""The minimum of simulated steps, fewer where two runs share the same noise; and the minimum of
steps of single ranks, few of which are slow."""
FORWARD = 1 / 3
"""The forward pass's share of a step: a third of all matrix products. Gradients come after it."""
ENOUGH = 0.8
"""An efficiency that is good enough."""
MACHINE = 16
"""Ranks on a machine, where several share one."""


class Predictions:
    """Times of steps, simulated from measurements.

    Parameters
    ----------
    measured : dict
        From `measure`.
    seed : int
        Of the noise.
    """

    def __init__(self, measured, seed=0):
        self.measured, self.seed = measured, seed
        memory = measured["memory"]
        self.costs = {"add": memory["add"], "call": memory["call"]}
        self.memory = Link("shared memory", memory["latency"], memory["bandwidth"])

    def compute(self, size, batch, cores=1):
        """Return the seconds of forward and backward pass; cores share them without loss."""
        times = {int(b): t for b, t in self.measured["models"][size]["compute"].items()}
        batches = sorted(times)
        if batch > batches[-1]:  # in parts of the largest
            return times[batches[-1]] * batch / batches[-1] / cores
        return float(np.interp(batch, batches, [times[b] for b in batches])) / cores

    def overhead(self, size, batch, cores):
        """Return how much longer a small batch takes than its share of a large one."""
        largest = max(map(int, self.measured["models"][size]["compute"]))
        return self.compute(size, batch, cores) - batch * self.compute(size, largest, cores) / (
            largest
        )

    def work(self, size, batch, cores, in_pieces=False):
        """Return the work of each rank in a step with this many samples per rank."""
        model = self.measured["models"][size]
        parts = model["pieces"]
        pieces = ((1.0, float(sum(parts))),)
        if in_pieces:  # blocks take all the time; what is above them is ready at once
            blocks = len(parts) - 2
            ready = [FORWARD + (1 - FORWARD) * k / blocks for k in range(blocks + 1)]
            pieces = tuple(zip([*ready, 1.0], map(float, parts), strict=True))
        return Work(self.compute(size, batch, cores), model["update"], pieces)

    def batch_of_rank(self, scaling, size, n):
        """Return the samples that each rank has in a step."""
        if scaling == "strong":
            return GLOBAL_BATCH // n
        return self.measured["models"][size]["workload"]["batch"]

    def case(self, scaling, size, cores, link, n):
        """Return a cluster, with one rank on each machine, and the work of its ranks."""
        cluster = Cluster(n, link, **self.costs)
        return cluster, self.work(size, self.batch_of_rank(scaling, size, n), cores)

    def seconds(self, cluster, work, schedule="as MPICH does", noise=USUAL, steps=COMPARED):
        """Return the mean seconds of a simulated step."""
        steps = max(steps, RANK_STEPS // cluster.ranks)
        return seconds(cluster, work, schedule, noise, self.seed, steps)

    def efficiency(self, scaling, size, cores, link):
        """Return the efficiency: the speed of n ranks as a share of n times the speed of one."""
        cases = [self.case(scaling, size, cores, link, n) for n in RANKS]
        taken = [self.seconds(*case, steps=STEPS) for case in cases]
        whole = RANKS if scaling == "strong" else (1,) * len(RANKS)
        return [taken[0] / (n * t) for n, t in zip(whole, taken, strict=True)]

    def undisturbed(self, scaling, size, cores, link):
        """Return the efficiency of the most ranks if none is ever slow, by the formula."""
        taken = []
        for n in (1, RANKS[-1]):
            cluster, work = self.case(scaling, size, cores, link, n)
            taken.append(formulas.step(cluster, work.size, work.compute, work.update))
        return taken[0] / taken[1] / (RANKS[-1] if scaling == "strong" else 1)

    def efficiencies(self):
        """Return efficiencies by scaling, size, cores and network; `undisturbed` comes last."""
        return {
            scaling: {
                size: {
                    cores: {
                        link.name: [
                            *self.efficiency(scaling, size, cores, link),
                            self.undisturbed(scaling, size, cores, link),
                        ]
                        for link in NETWORKS
                    }
                    for cores in CORES
                }
                for size in self.measured["models"]
            }
            for scaling in ("weak", "strong")
        }

    def losses(self, scaling, size, cores, link, n):
        """Return the share of a step that would be saved if one thing cost nothing."""
        cluster, work = self.case(scaling, size, cores, link, n)
        whole = self.seconds(cluster, work)
        alone = replace(work, meets=False)
        without_meetings = self.seconds(cluster, alone)
        free = {
            "slow ranks": whole - self.seconds(cluster, work, noise=QUIET),
            "meetings": whole - without_meetings,
            "latency": without_meetings - self.seconds(cluster.without_latency(), alone),
            "bandwidth": whole
            - self.seconds(replace(cluster, link=replace(link, bandwidth=float("inf"))), work),
            "sums": whole - self.seconds(replace(cluster, add=0.0), work),
        }
        if scaling == "strong":  # a single rank pays this too, but for a larger batch
            batch = self.batch_of_rank(scaling, size, n)
            free["update"] = work.update * (1 - 1 / n)
            free["small batch"] = self.overhead(size, batch, cores)
        return {name: max(0.0, saved / whole) for name, saved in free.items()}

    def breaks(self, efficiencies):
        """Return where the efficiency falls below `ENOUGH`, and the largest cost there."""
        found = {}
        for scaling, sizes in efficiencies.items():
            for size, by_cores in sizes.items():
                for cores, by_link in by_cores.items():
                    for link in NETWORKS:
                        row = by_link[link.name]
                        low = [n for n, e in zip(RANKS, row, strict=False) if e < ENOUGH]
                        n = low[0] if low else RANKS[-1]
                        losses = self.losses(scaling, size, cores, link, n)
                        found[f"{scaling}, {size}, {cores}, {link.name}"] = {
                            "ranks": low[0] if low else None,
                            "most": max(losses, key=losses.get),
                            "losses": losses,
                        }
        return found

    def remedies(self, size, link, n, cores):
        """Return a step's time with each remedy, as a share of that without, in weak scaling."""
        batch = self.batch_of_rank("weak", size, n)
        cluster, work = self.case("weak", size, cores, link, n)
        in_pieces = self.work(size, batch, cores, in_pieces=True)
        halving = "halving and doubling"
        whole = self.seconds(cluster, work)
        return {
            name: taken / whole
            for name, taken in {
                "halving": self.seconds(cluster, work, halving),
                "overlap": self.seconds(cluster, in_pieces),
                "sharded": self.seconds(cluster, replace(work, shard_moments=True)),
                "all": self.seconds(cluster, replace(in_pieces, shard_moments=True), halving),
            }.items()
        }

    def shared_machines(self, size, link, n, schedule):
        """Return the seconds of an all-reduce among ranks that share machines, without noise."""
        cluster = Cluster(n, link, MACHINE, self.memory, **self.costs)
        work = self.work(size, 1, 1)
        simulation = Simulation(cluster, work, schedule)
        return simulation.run(simulation.schedule(cluster, work.size), np.zeros(n)).max()
