"""Parts of a batch with two inputs, each cut to what its samples need."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

import npformer as nf
from npformer.core.cut_masks import Cut
from npformer.engine.snapshot import snapshot_of
from npformer.engine.team import Team
from npformer.layers import Dropout, Linear
from npformer.models.batch import Shard

WHOLE = 12, 9
FEATURES, D = (3, 4), 5


class Pair(nf.Model):
    """Scores between the tokens of a and b weigh those of b; dropout acts on all three."""

    n_inputs, n_classes, loss = 2, 3, nf.losses.SoftmaxCrossEntropy()

    def __init__(self):
        self.of_a, self.of_b = (Linear(n, D, seed=n, dtype="float64") for n in FEATURES)
        self.drop_a, self.drop_b, self.drop_weights = Dropout(0.3), Dropout(0.2), Dropout(0.4)
        self.classify = Linear(D, 3, seed=2, dtype="float64")
        self.flatten()

    def forward(self, a, b, context):
        plain = context.drop_mask()
        a, a_cache = self.of_a.forward(a, plain)
        a, a_dropped = self.drop_a.forward(a, plain)
        b, b_cache = self.of_b.forward(b, plain)
        b, b_dropped = self.drop_b.forward(b, plain)
        is_visible = np.ones((len(a), a.shape[1], b.shape[1]))
        if context.mask is not None:  # there is none if no token is padding
            is_visible *= context.mask[:, :, None]
        if context.memory_mask is not None:
            is_visible *= context.memory_mask[:, None, :]
        weights, dropped = self.drop_weights.forward(a @ b.swapaxes(1, 2) * is_visible, plain)
        y, cache = self.classify.forward((weights @ b).sum(axis=1), plain)
        return y, (
            a,
            b,
            is_visible,
            weights,
            a_cache,
            a_dropped,
            b_cache,
            b_dropped,
            dropped,
            cache,
        )

    def backward(self, dy, cache, gradients):
        a, b, is_visible, weights, a_cache, a_dropped, b_cache, b_dropped, dropped, cache = cache
        dpooled = self.classify.backward(dy, cache, gradients)[:, None]
        db = weights.sum(axis=1)[:, :, None] * dpooled
        dweights = np.broadcast_to(dpooled @ b.swapaxes(1, 2), weights.shape)
        dscores = self.drop_weights.backward(dweights, dropped, gradients) * is_visible
        da, db = dscores @ b, db + dscores.swapaxes(1, 2) @ a
        da = self.drop_a.backward(da, a_dropped, gradients)
        db = self.drop_b.backward(db, b_dropped, gradients)
        da = self.of_a.backward(da, a_cache, gradients)
        return da, self.of_b.backward(db, b_cache, gradients)


@pytest.fixture
def model(monkeypatch):
    """A model that counts as npformer's own, so that its masks are known."""
    monkeypatch.setattr(Pair, "__module__", "npformer.pair")
    return Pair()


def batch_of(model, lengths):
    """Return a batch whose samples have these lengths in the two inputs."""
    rng, lengths = np.random.default_rng(0), np.array(lengths)
    masks = tuple(np.arange(n) < lengths[:, k, None] for k, n in enumerate(WHOLE))
    x = tuple(rng.normal(size=(len(lengths), n, f)) for n, f in zip(WHOLE, FEATURES, strict=True))
    return model.upload(model.check(x, rng.integers(0, 3, len(lengths)), masks))


def step(model, batch):
    with Team(model) as team:
        loss, gradients = team.step(batch, generator=np.random.default_rng(4))
        return float(loss), gradients.flat.copy()


LENGTHS = {
    "each its own": [(3, 8), (2, 6), (12, 2), (7, 9), (9, 1)],
    "as long as the other": [(7, 7), (6, 7), (12, 2), (8, 8), (8, 9)],
    "as long as the features": [(5, 5), (3, 4), (12, 3), (4, 9), (1, 1)],
    "one input is not cut": [(12, 7), (2, 6), (7, 9), (12, 9), (9, 9)],
}


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_parts_are_together_the_batch(model, lengths):
    batch, snapshot = batch_of(model, lengths), snapshot_of(model)
    assert snapshot.is_stock
    loss, gradients = step(model, batch)
    shard_results, is_cut = [], []
    for start, stop in pairwise((0, 2, 3, 5)):
        shard = batch.select(slice(start, stop))
        min_lengths = snapshot.lengths_of_shard(shard.lengths().max(axis=0).tolist(), WHOLE)
        shard = shard.cut(min_lengths)
        assert tuple(sequences.length for sequences in shard.inputs) == min_lengths
        is_cut.append(min_lengths < WHOLE)
        shard_results.append(
            step(model, replace(shard, shard=Shard(start, float(len(batch)), WHOLE)))
        )
    assert any(is_cut)
    assert sum(shard_loss for shard_loss, _ in shard_results) == pytest.approx(loss, rel=1e-12)
    summed = np.sum([shard_gradients for _, shard_gradients in shard_results], axis=0)
    np.testing.assert_allclose(summed, gradients, rtol=0, atol=1e-12 * np.abs(gradients).max())


@pytest.mark.parametrize("batch_lengths", [(12, 9), (9, 12), (9, 9), (6, 4)], ids=str)
def test_lengths_tell_axes_apart(model, batch_lengths):
    """Whatever the longest samples are: each axis of a part is that of one length in the batch."""
    snapshot = snapshot_of(model)
    features = {1, *FEATURES, D}
    for shard_lengths in product(*(range(1, n + 1) for n in batch_lengths)):
        lengths = snapshot.lengths_of_shard(shard_lengths, batch_lengths)
        assert all(
            a <= b <= c for a, b, c in zip(shard_lengths, lengths, batch_lengths, strict=True)
        )
        for length, batch_length in zip(lengths, batch_lengths, strict=True):
            assert Cut(lengths, batch_lengths).undone((2, length)) == (2, batch_length), (
                shard_lengths,
                lengths,
            )
            assert length == batch_length or length not in features, (shard_lengths, lengths)


def test_a_users_model_keeps_the_padding_of_both():
    assert snapshot_of(Pair()).lengths_of_shard((7, 6), WHOLE) == WHOLE
