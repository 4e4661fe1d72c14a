"""How time is taken: candidates in turn, round by round, and medians."""

import os
import statistics
import threading
import time
from pathlib import Path

import numpy as np

TURN = 0.1
"""The minimum seconds of a candidate's turn; small models take several steps in it."""


def timed(step, n, wait=lambda: None):
    """Run a step n times and return the seconds per step; `wait` until a GPU has done them.

    A turn of several steps starts with an untimed one. It fills the caches and wakes threads
    that slept during the turn of another candidate, as in the middle of a training.
    """
    if n > 1:
        step()
    wait()
    began = time.perf_counter()
    for _ in range(n):
        step()
    wait()
    return (time.perf_counter() - began) / n


def quick(step, seconds=2.0, wait=lambda: None):
    """Return the fastest of up to 5 steps, after one to warm up: enough to choose a variant."""
    step()
    best, began = [], time.perf_counter()
    while len(best) < 5 and (not best or time.perf_counter() - began < seconds):
        best.append(timed(step, 1, wait))
    return min(best)


def interleave(turns, seconds, least=5, most=25, warm_up=3):
    """Return the seconds of a step, for each candidate and round.

    Parameters
    ----------
    turns : dict of str to callable
        ``turn(n)`` runs n steps and returns the seconds per step. Candidates take turns, so that
        drift of the machine affects all of them.
    seconds : float
        For all rounds together, unless `least` takes longer.
    least, most : int
        Rounds.
    warm_up : int
        Steps of each candidate before the first round: they allocate memory and start threads.
    """
    steps, whole_round = {}, 0.0
    for name, turn in turns.items():
        for _ in range(warm_up - 1):
            turn(1)
        one = turn(1)
        steps[name] = max(1, round(TURN / one))
        whole_round += one * steps[name]
    rounds = min(most, max(least, round(seconds / whole_round)))
    taken = {name: [] for name in turns}
    for _ in range(rounds):
        for name, turn in turns.items():
            taken[name].append(turn(steps[name]))
    return taken


def summary(seconds):
    """Return the median and the quartiles of a list of seconds, in milliseconds."""
    q1, median, q3 = statistics.quantiles([1e3 * s for s in seconds], n=4, method="inclusive")
    return {"median": significant(median), "q1": significant(q1), "q3": significant(q3)}


def ratio(ours, theirs):
    """Return ours / theirs: of the medians, and the median over the rounds."""
    by_round = [a / b for a, b in zip(ours, theirs, strict=True)]
    return {
        "of_medians": significant(statistics.median(ours) / statistics.median(theirs)),
        "median_of_rounds": significant(statistics.median(by_round)),
    }


def significant(x):
    """Return x rounded to four digits: more are noise."""
    return float(f"{x:.4g}")


class Others:
    """The share of all cores' time that other programs took meanwhile, which distorts figures.

    Threads that wait for each other at every step lose far more time than that share.

    Parameters
    ----------
    *pids : int
        Processes that belong to the measurement, as do this one and all their children.

    Attributes
    ----------
    share : float or None
        From 0 to 1; None where the system does not report it.
    """

    def __init__(self, *pids):
        self.pids = (os.getpid(), *pids)
        self.share = None

    def __enter__(self):
        self._began = self._read()
        return self

    def __exit__(self, *exception):
        if self._began is not None and exception[0] is None:
            total, busy, own = (b - a for a, b in zip(self._began, self._read(), strict=True))
            self.share = round(max(0.0, busy - own) / max(total, 1), 3)

    def _read(self):
        """Return ticks of all cores: the total, those not idle, and those of our own processes."""
        if not Path("/proc/stat").is_file():
            return None
        ticks = [int(t) for t in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        own = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # the process has just ended
            if int(stat.parent.name) in self.pids or int(fields[1]) in self.pids:
                # User and system time, of the process and of its children that have ended.
                own += sum(int(ticks_of) for ticks_of in fields[11:15])
        return sum(ticks), sum(ticks) - ticks[3] - ticks[4], own


def sgemm_peak(threads, size=2048, tries=8):
    """Return the best rate of float32 matrix products, in GFLOP/s.

    Each thread multiplies its own matrices with one BLAS thread. No program that splits a
    batch among threads can be faster.
    """
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    pairs = [rng.random((2, size, size), dtype="float32") for _ in range(threads)]
    results = [np.empty((size, size), dtype="float32") for _ in range(threads)]
    together = threading.Barrier(threads + 1)

    def multiply(k):
        for _ in range(tries):
            together.wait()
            np.matmul(*pairs[k], out=results[k])
            together.wait()

    best = float("inf")
    with threadpool_limits(1, user_api="blas"):
        team = [threading.Thread(target=multiply, args=(k,)) for k in range(threads)]
        for thread in team:
            thread.start()
        for _ in range(tries):
            together.wait()
            began = time.perf_counter()
            together.wait()
            best = min(best, time.perf_counter() - began)
        for thread in team:
            thread.join()
    return significant(threads * 2 * size**3 / best / 1e9)
