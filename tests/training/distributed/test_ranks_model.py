"""The simulator of `python -m benchmarks ranks-model` against formulas, and against events."""

import heapq
import itertools
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.network import formulas, report, schedules
from benchmarks.network.networks import NETWORKS, Cluster, Link
from benchmarks.network.predictions import RANKS, Predictions
from benchmarks.network.simulator import QUIET, USUAL, Noise, Simulation, Work, seconds
from benchmarks.results_files import RESULTS, ROOT

SLOW = Link("slow", 3e-5, 1e9)
MEMORY = Link("memory", 1e-6, 8e9)
COSTS = {"add": 1e-10, "call": 5e-6}
NUMBER = 1_000_448.0  # bytes, a multiple of 1,024


def work(size=NUMBER, shard_moments=False):
    return Work(0.02, 0.001, ((1.0, size),), shard_moments)


@pytest.mark.parametrize("schedule", ["as MPICH does", "ring", "halving and doubling"])
@pytest.mark.parametrize("n", [1, 2, 4, 32, 256])
@pytest.mark.parametrize("size", [NUMBER, 4096.0])
def test_without_noise_a_step_takes_what_the_formula_says(schedule, n, size):
    for link, sharded in itertools.product((*NETWORKS, SLOW), (False, True)):
        cluster = Cluster(n, link, **COSTS)
        found = seconds(cluster, work(size, sharded), schedule, steps=3)
        expected = formulas.step(cluster, size, 0.02, 0.001, schedule, sharded)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(("n", "k"), [(8, 2), (64, 16), (32, 32), (16, 1)])
def test_two_levels_take_what_the_formula_says(n, k):
    cluster = Cluster(n, SLOW, k, MEMORY, **COSTS)
    simulation = Simulation(cluster, work())
    rounds = schedules.all_reduce_two_levels(cluster, NUMBER)
    found = simulation.run(rounds, np.zeros(n)).max()
    # The first of a machine's ranks goes on while the last one's message still leaves.
    assert found <= formulas.two_levels(cluster, NUMBER) * (1 + 1e-12)
    assert found >= 0.9 * formulas.two_levels(cluster, NUMBER)


@pytest.mark.parametrize("name", schedules.SCHEDULES)
@pytest.mark.parametrize(("n", "k"), [(16, 1), (16, 4)])
@pytest.mark.parametrize("size", [NUMBER, 4096.0])
def test_every_rank_moves_and_adds_no_less_than_it_must(name, n, k, size):
    cluster = Cluster(n, SLOW, k, MEMORY)
    rounds = list(schedules.SCHEDULES[name](cluster, size))
    assert all(sorted(each.to) == list(range(n)) for each in rounds)
    added = sum(each.size for each in rounds if each.adds)
    kept = sum(each.size for each in rounds if not each.adds)
    if k == 1 or name != "two levels":
        np.testing.assert_allclose([added, kept], size * (n - 1) / n)
    else:
        np.testing.assert_allclose([added, kept], size * ((k - 1) / k + (n / k - 1) / n))


def events(cluster, rounds, clock):
    """Return the clocks after all rounds, one event after another in the order of time."""
    rounds, link = list(rounds), cluster.link
    queue = [(time, rank, 0, "ready") for rank, time in enumerate(clock)]
    heapq.heapify(queue)
    happened, clock = Counter(), np.array(clock)
    while queue:
        time, rank, turn, what = heapq.heappop(queue)
        if turn == len(rounds):
            clock[rank] = time
            continue
        to, size, adds = rounds[turn]
        if what == "ready":
            left = time + size / link.bandwidth
            heapq.heappush(queue, (left, rank, turn, "sent"))
            heapq.heappush(queue, (left + link.latency, to[rank], turn, "received"))
            continue
        happened[rank, turn] += 1
        if happened[rank, turn] == 2:  # sent and received
            end = time + (cluster.add * size if adds else 0.0)
            heapq.heappush(queue, (end, rank, turn + 1, "ready"))
    return clock


@pytest.mark.parametrize("name", ["as MPICH does", "ring", "halving and doubling"])
@pytest.mark.parametrize("n", [2, 8, 32])
def test_rounds_give_the_clocks_of_single_events(name, n):
    cluster = Cluster(n, SLOW, **COSTS)
    clock = np.random.default_rng(0).exponential(0.001, n)
    simulation = Simulation(cluster, work())
    found = simulation.run(schedules.SCHEDULES[name](cluster, NUMBER), clock)
    expected = events(cluster, schedules.SCHEDULES[name](cluster, NUMBER), clock)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_messages_of_a_machine_follow_each_other_on_its_link():
    cluster = Cluster(8, Link("link", 1.0, 1.0), 4, Link("memory", 0.1, 100.0))
    simulation = Simulation(cluster, work())
    to = np.arange(8) ^ 4  # each rank to the other machine
    arrived = simulation.exchange(np.array([0.0, 0, 0, 0, 9, 5, 0, 0]), to, 2.0)
    # They leave at 2, 4, 6, 8 there, at 11, 7, 2, 4 here, and come one second later.
    np.testing.assert_allclose(arrived[:4], [12, 8, 6, 8])
    np.testing.assert_allclose(arrived[4:], [11, 7, 7, 9])


def test_a_seed_repeats_and_noise_only_adds():
    cluster = Cluster(64, NETWORKS[0], **COSTS)
    noisy = [seconds(cluster, work(), noise=USUAL, seed=s, steps=3) for s in (0, 0, 1)]
    assert noisy[0] == noisy[1] != noisy[2]
    assert min(noisy) > seconds(cluster, work(), noise=QUIET)


def test_one_slow_rank_holds_up_all():
    cluster = Cluster(64, replace(SLOW, latency=0.0, bandwidth=np.inf))
    found = seconds(cluster, work(), noise=Noise(slow=1 / 64, factor=2.0), seed=2, steps=50)
    share = (found - 0.021) / 0.02  # of steps with a slow rank: 1 - (63 / 64)^64 = 0.635
    assert 0.4 < share < 0.9


def test_pieces_hide_behind_the_backward_pass():
    cluster = Cluster(16, SLOW, **COSTS)
    whole = Work(0.02, 0.001, ((1.0, 4 * NUMBER),))
    parts = Work(0.02, 0.001, tuple((0.1 + 0.3 * i, NUMBER) for i in range(4)))
    plain, overlapped = (seconds(cluster, each) for each in (whole, parts))
    exchange = formulas.mpich(cluster, 4 * NUMBER)
    assert plain - exchange < overlapped < plain
    assert overlapped > 0.021 + formulas.mpich(cluster, NUMBER)  # the last one comes at the end


def test_only_powers_of_two_are_simulated():
    with pytest.raises(ValueError, match="expected powers of two"):
        Cluster(6, SLOW)
    with pytest.raises(ValueError, match="expected whole machines"):
        Cluster(2, SLOW, 4, MEMORY)
    with pytest.raises(ValueError, match="expected memory="):
        Cluster(4, SLOW, 2)


MEASURED = json.loads((RESULTS / "ranks-model.json").read_text())["figures"]


def test_the_page_shows_what_the_simulation_gives():
    predictions = Predictions(MEASURED["measured"], MEASURED["seed"])
    for link, n in itertools.product(NETWORKS, (1, 16, 64)):
        case = predictions.case("weak", "M", 16, link, n)
        rate = predictions.seconds(*predictions.case("weak", "M", 16, link, 1))
        shown = MEASURED["efficiencies"]["weak"]["M"]["16"][link.name][RANKS.index(n)]
        np.testing.assert_allclose(rate / predictions.seconds(*case), shown, rtol=0.01)
    page = (ROOT / "docs" / "ranks.md").read_text("utf-8")
    assert report.inputs(MEASURED["measured"]) in page
