"""Parts of a batch without padding that only the others need: together they are the batch."""

import importlib
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import npformer as nf
from npformer.engine.snapshot import snapshot_of
from npformer.engine.team import Team
from npformer.functional.dropout import draw_kept
from npformer.layers import Dropout, Sequential, TimeDistributed
from npformer.mixers import Attention, AveragingMixer
from npformer.models.batch import Shard

N, LENGTH, CUTS = 13, 12, (0, 4, 4, 9, 13)
"""Samples and tokens of a batch, and the rows with which parts begin; one part is empty."""

RATES = {"dropout": 0.2, "attention_dropout": 0.3, "ffn_dropout": 0.3, "token_dropout": 0.2}
WITHOUT_WEIGHTS = RATES | {"attention_dropout": 0.0}


def model_of(mixer="attention", pooling="mean", seed=1, **changes):
    sizes = {"d_model": 10, "n_layers": 2, "n_heads": 2, "d_ff": 9, "max_len": LENGTH}
    rates = RATES if issubclass(nf.MIXERS[mixer], Attention | AveragingMixer) else WITHOUT_WEIGHTS
    settings = sizes | rates | {"mixer": mixer, "padding": "per_length"} | changes
    return nf.SequenceClassifier(
        nf.EncoderConfig(**settings), 3, vocab_size=7, pooling=pooling, seed=seed, dtype="float64"
    )


def data_of(model, weights=False, seed=0):
    """Return a batch, the shortest samples first, with labels that do not count."""
    rng = np.random.default_rng(seed)
    mask = np.arange(LENGTH) < np.sort(rng.integers(1, LENGTH + 1, size=N))[:, None]
    shape = N if model.targets_of is None else (N, LENGTH)
    y = rng.integers(0 if model.targets_of is None else -1, 3, size=shape)
    weight = rng.uniform(0.5, 2.0, size=shape) if weights else None
    x = rng.integers(0, 7, (N, LENGTH))
    return model.upload(model.check(x, y, mask, sample_weight=weight))


def step(model, batch, **team_options):
    """Return loss and gradients of a batch, or of a shard of one."""
    with Team(model, **team_options) as team:
        loss, gradients = team.step(batch, generator=np.random.default_rng(4))
        return float(loss), gradients.copy()


def shards_of(model, batch):
    """Yield shards of a batch, each cut to what its samples need."""
    snapshot, total = snapshot_of(model), float(batch.counts_for(model.loss).sum())
    for start, stop in pairwise(CUTS):
        shard_batch = batch.select(slice(start, stop))
        if stop > start:
            min_lengths = snapshot.lengths_of_shard(shard_batch.lengths().max(axis=0), (LENGTH,))
            shard_batch = shard_batch.cut(min_lengths)
            assert shard_batch.inputs[0].length == min_lengths[0]
        yield replace(shard_batch, shard=Shard(start, total, (LENGTH,)))


def assert_sum(model, weights=False, **team_options):
    """Check that the losses and the gradients of the shards sum to those of the batch."""
    batch = data_of(model, weights)
    loss, gradients = step(model, batch)
    shards = list(shards_of(model, batch))
    assert min(shard.inputs[0].length for shard in shards) < LENGTH
    results = [step(model, shard, **team_options) for shard in shards]
    assert sum(shard_loss for shard_loss, _ in results) == pytest.approx(loss, rel=1e-12)
    for name, gradient in gradients.items():
        total = np.sum([shard_gradients[name] for _, shard_gradients in results], axis=0)
        bound = 1e-12 * np.abs(gradients.flat).max()
        np.testing.assert_allclose(total, gradient, rtol=0, atol=bound, err_msg=name)


@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "plain"])
@pytest.mark.parametrize("mixer", nf.MIXERS)
def test_parts_of_every_mixer_are_together_the_batch(mixer, kernels):
    with nf.use_kernels(kernels):
        assert_sum(model_of(mixer))


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_each_kind_of_dropout_by_itself(rate, norm):
    assert_sum(model_of(**dict.fromkeys(RATES, 0.0) | {rate: 0.4}, norm=norm))


@pytest.mark.parametrize(
    "team_options", [{"workers": 2}, {"micro_batch": 2}, {"workers": 2, "micro_batch": 3}]
)
def test_parts_that_are_shared_among_workers(team_options):
    assert_sum(model_of(), **team_options)


@pytest.mark.parametrize("weights", [False, True], ids=["labels", "weights"])
@pytest.mark.parametrize("pooling", ["mean", "none"])
def test_targets_that_do_not_count_or_count_more(pooling, weights):
    assert_sum(model_of(pooling=pooling), weights=weights)


def test_tokens_that_are_folded_into_the_rows():
    model = model_of()
    model.encoder.blocks[0].mixer_dropout = Sequential(TimeDistributed(Dropout(0.4)), Dropout(0.1))
    assert_sum(model)


def test_an_axis_of_features_is_never_taken_for_that_of_the_tokens():
    model, snapshot = model_of(), snapshot_of(model_of())
    sizes = {1, model.config.d_model, model.config.d_ff, model.config.n_heads}
    lengths = [snapshot.lengths_of_shard((longest,), (64,))[0] for longest in range(1, 64)]
    assert not set(lengths) & sizes
    assert lengths == sorted(lengths)
    assert all(1 <= longest <= length for longest, length in enumerate(lengths, start=1))
    assert snapshot.lengths_of_shard((10,), (10,)) == (10,)  # d_model, and nothing is cut


def test_what_is_dropped_from_pooled_features_is_not_cut():
    for pooled in (5, 6, 7):
        model = model_of(d_model=2 * pooled)
        model.pool = Sequential(model.pool, Dropout(0.5))
        assert_sum(model)


class Own(Dropout):
    """A user's layer: nobody knows its masks."""


def test_a_model_with_a_layer_of_a_user_keeps_the_padding():
    model = model_of()
    assert snapshot_of(model).lengths_of_shard((3,), (LENGTH,)) < (LENGTH,)
    model.encoder.blocks[0].mixer_dropout.forward = Dropout(0.3).forward
    assert snapshot_of(model).lengths_of_shard((3,), (LENGTH,)) == (LENGTH,)
    model = model_of()
    model.encoder.blocks[1].feed_forward_dropout = Own(0.3)
    assert snapshot_of(model).lengths_of_shard((3,), (LENGTH,)) == (LENGTH,)


def empty_shard_of(batch):
    return replace(batch.select(slice(0, 0)), shard=Shard(5, 20.0, (LENGTH,)))


@pytest.mark.parametrize("workers", [1, 2])
def test_an_empty_shard_adds_nothing(workers):
    model = model_of()
    generator = np.random.default_rng(4)
    batch = data_of(model)
    with Team(model, workers) as team:
        team.step(batch, generator=generator)
        loss, gradients = team.step(empty_shard_of(batch), generator=generator)
        assert float(loss) == 0.0
        assert not gradients.flat.any()


@pytest.mark.parametrize("workers", [1, 2])
def test_an_empty_shard_draws_the_number_of_its_step(workers):
    model = model_of()
    generator, other = np.random.default_rng(4), np.random.default_rng(4)
    batch = data_of(model)
    with Team(model, workers) as team:
        team.step(batch, generator=generator)
        team.step(empty_shard_of(batch), generator=generator)
    other.integers(1 << 63, size=2)
    assert generator.bit_generator.state == other.bit_generator.state


def test_masks_without_a_cut_are_what_they_were(monkeypatch):
    """A place in a batch of the same length changes no bit."""
    model, masks_of_step = model_of(), []

    def draw_and_note(shape, rate, generator):
        masks_of_step.append(draw_kept(shape, rate, generator))
        return masks_of_step[-1]

    for name in ("npformer.functional.dropout", "npformer.engine.cpu.dropout"):
        monkeypatch.setattr(importlib.import_module(name), "draw_kept", draw_and_note)
    batch = data_of(model)
    total = float(batch.counts_for(model.loss).sum())
    results = []
    for shard in (None, Shard(0, total, (LENGTH,)), Shard(0, total)):
        results.append((*step(model, replace(batch, shard=shard)), masks_of_step.copy()))
        masks_of_step.clear()
    for loss, gradients, masks in results[1:]:
        assert loss == results[0][0]
        np.testing.assert_array_equal(gradients.flat, results[0][1].flat)
        for mask, expected in zip(masks, results[0][2], strict=True):
            np.testing.assert_array_equal(mask, expected)
