"""Parts of a batch by its tokens: the largest is as small as it can be."""

import itertools
from typing import Any

import numpy as np
import pytest

import npformer as nf
from npformer.engine.team import Team
from npformer.training.distributed import Communicator
from npformer.training.distributed.shards import shards_by_tokens
from tests.training.distributed.train import model_of, samples


def size_of(lengths, shards):
    """Return the size of the largest part."""
    return max(len(lengths[shard]) * lengths[shard].max(initial=0) for shard in shards)


def smallest(lengths, n):
    """Return the size of the largest part in the best of all ways to make n parts."""
    total = len(lengths)
    ends = range(len(lengths) + 1)
    return min(
        size_of(lengths, [slice(*ends) for ends in itertools.pairwise((0, *stops, total))])
        for stops in itertools.combinations_with_replacement(ends, n - 1)
    )


@pytest.mark.parametrize(
    "in_order",
    [
        True,
        False,
    ],
)
@pytest.mark.parametrize(
    "n",
    [
        1,
        2,
        3,
        4,
    ],
)
def test_no_other_parts_are_better(in_order, n):
    rng = np.random.default_rng(n)
    for _ in range(100):
        lengths = rng.integers(1, 9, size=rng.integers(0, 9))
        lengths = np.sort(lengths) if in_order else lengths
        shards = shards_by_tokens(lengths, n)
        assert len(shards) == n
        assert [i for shard in shards for i in range(len(lengths))[shard]] == [*range(len(lengths))]
        assert size_of(lengths, shards) == smallest(lengths, n)
        if len(lengths) >= n:
            assert all(len(lengths[shard]) for shard in shards)


def test_samples_of_one_length_are_shared_by_number():
    shards = shards_by_tokens(np.full(1000, 7), 16)
    assert max(shard.stop - shard.start for shard in shards) == 63  # 1000 / 16 is 62.5
    shards = shards_by_tokens(np.ones(1024, dtype=int), 16)
    assert {shard.stop - shard.start for shard in shards} == {64}


@pytest.mark.parametrize("n", [0, -1, 1.5])
def test_a_number_of_parts_that_is_none(n):
    with pytest.raises((TypeError, ValueError), match="n is"):
        shards_by_tokens(np.array([1, 2]), n)


class OneOf(Communicator):
    """A rank that does not hear of the others."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size


class Own(nf.layers.Dropout):
    """A layer of a user, whose masks nobody knows."""


@pytest.mark.parametrize("whose", ["npformer's", "a user's"])
@pytest.mark.parametrize("rank", [0, 3])
def test_a_rank_computes_its_part_without_the_padding_of_longer_ones(rank, whose, monkeypatch):
    data = samples()
    model = model_of("attention")
    lengths = data[2].sum(axis=1)
    if whose != "npformer's":
        model.encoder.blocks[0].mixer_dropout = Own(0.2)
    step = Team.step
    shapes = []

    def noting(team: Team, batch: Any, generator: Any = None) -> Any:
        shapes.append((*batch.inputs[0].x.shape, batch.shard.first, batch.shard.lengths))
        return step(team, batch, generator)

    monkeypatch.setattr(Team, "step", noting)
    nf.fit(
        model,
        data,
        epochs=1,
        batch_size=len(lengths),
        seed=3,
        communicator=OneOf(rank, 4),
        progress=False,
    )
    shards = shards_by_tokens(np.sort(lengths), 4)
    cut = np.sort(lengths)[shards[rank]].max()
    n = shards[rank].stop - shards[rank].start
    first = shards[rank].start
    if whose != "npformer's":
        n, first, cut = [(22, 0, 10), (23, 67, 10)][rank // 3]
    assert (cut < 10) == (rank == 0 and whose == "npformer's")
    assert shapes == [(n, cut, first, (10,))]
