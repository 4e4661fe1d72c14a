"""Batches of similar length: the same numbers as with all the padding, in less of it."""

import numpy as np
import pytest

import npformer as nf
from npformer.core import Padding
from npformer.data.batch import Batch
from npformer.data.lengths import (
    Batches,
    cut,
    lengths_of,
    sees_padding,
    shuffled_by_length,
)

SKIP = list(nf.MIXERS)
LENGTH = 9


def samples(n=41, per_token=False, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 20, size=(n, LENGTH))
    lengths = rng.integers(1, LENGTH + 1, size=n)
    mask = np.arange(LENGTH) < lengths[:, None]
    y = rng.integers(0, 3, size=(n, LENGTH) if per_token else n)
    return x, y, mask


def model_of(mixer="attention", pooling="mean", padding="per_length", **more):
    config = nf.EncoderConfig(
        d_model=16,
        n_layers=2,
        n_heads=2,
        d_ff=16,
        max_len=LENGTH,
        mixer=mixer,
        padding=padding,
        **more,
    )
    return nf.SequenceClassifier(config, 3, vocab_size=20, pooling=pooling, seed=1, dtype="float64")


def test_lengths_reach_the_last_token_that_is_kept():
    mask = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 0]], dtype=bool)
    np.testing.assert_array_equal(lengths_of(mask), [3, 1, 4, 2])


@pytest.mark.parametrize("n", [1, 7, 64, 1000])
def test_an_epoch_has_every_sample_once_and_its_batches_little_padding(n):
    lengths = np.random.default_rng(0).integers(1, 31, size=n)
    order = shuffled_by_length(lengths, 8, np.random.default_rng(1))
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    batches = [lengths[order[start : start + 8]] for start in range(0, n, 8)]
    padded = sum(batch.max() * len(batch) for batch in batches)
    if n == 1000:
        assert padded < 1.15 * lengths.sum()
        assert 30 * n > 1.8 * lengths.sum()
        assert np.abs(np.diff([batch.mean() for batch in batches])).mean() > 5, "they are sorted"


def test_the_order_is_the_generators():
    lengths = np.random.default_rng(0).integers(1, 31, size=200)
    one, same, other = (
        shuffled_by_length(lengths, 8, np.random.default_rng(seed)) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_only_columns_of_padding_are_cut():
    x, y, mask = samples(per_token=True)
    mask[:, 6:] = False
    batch = cut(Batch(x, y, Padding(mask), types=x % 2), per_token=True)
    assert (
        batch.x.shape == batch.y.shape == batch.types.shape == batch.padding.mask.shape == (41, 6)
    )
    assert cut(Batch(x, y[:, 0], Padding(mask)), per_token=False).y.shape == (41,)


@pytest.mark.parametrize("mixer", SKIP)
@pytest.mark.parametrize("pooling", ["mean", "first", "pooler", "none"])
def test_a_prediction_is_that_of_all_the_padding(mixer, pooling):
    x, _, mask = samples()
    model = model_of(mixer, pooling)
    whole = model.loss.probabilities(model(x, mask))
    np.testing.assert_allclose(
        model.predict_probabilities(x, mask, batch_size=4), whole, rtol=1e-12, atol=1e-14
    )


def test_a_mask_with_holes_and_a_row_without_tokens():
    x, _, mask = samples()
    mask[3] = False
    mask[4] = np.arange(LENGTH) == 5
    model = model_of()
    whole = model.loss.probabilities(model(x, mask))
    np.testing.assert_allclose(model.predict_probabilities(x, mask, 4), whole, rtol=1e-12)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, False),
        ({"mixer": "fourier"}, False),
        ({"mixer": "fourier", "padding": "zero"}, True),
        ({"padding": "zero"}, False),  # attention skips padding, whatever the setting says
        ({"pooling": "flatten"}, True),
    ],
)
def test_padding_stays_where_its_amount_matters(settings, expected):
    assert sees_padding(model_of(**settings)) == expected


def test_every_prediction_goes_through_batches_of_the_longest_first():
    x, _, mask = samples()
    batches = Batches(x, mask, None, 8, by_length=True)
    shapes = [part[0].shape[1] for part in batches.share(0, 1)]
    assert shapes == sorted(shapes, reverse=True)
    assert shapes[-1] < LENGTH
    shares = [[part[0][:, :1] for part in batches.share(k, 3)] for k in range(3)]
    np.testing.assert_array_equal(batches.in_order(shares), x[:, :1])


def gradients_of_a_training(model, data, **options):
    found = []

    class Notes(nf.Callback):
        def before_update(self, state):
            found.append((state.rows.copy(), {n: g.copy() for n, g in state.gradients.items()}))

    nf.fit(
        model,
        data,
        epochs=1,
        batch_size=8,
        lr=1e-300,
        callbacks=[Notes()],
        progress=False,
        **options,
    )
    return found


@pytest.mark.parametrize("mixer", ["attention", "dense_synthesizer", "fourier", "linear"])
@pytest.mark.parametrize("pooling", ["mean", "none"])
def test_a_step_has_the_gradients_of_all_the_padding(mixer, pooling):
    x, y, mask = samples(per_token=pooling == "none")
    model = model_of(mixer, pooling)
    for rows, gradients in gradients_of_a_training(model, (x, y, mask), workers=1):
        _, whole = model.loss_and_gradients(x[rows], y[rows], mask[rows])
        for name, expected in whole.items():
            np.testing.assert_allclose(
                gradients[name], expected, rtol=1e-9, atol=1e-12, err_msg=name
            )


def test_fit_goes_by_length_if_it_can():
    x, y, mask = samples(200)

    def widest(**options):
        model = model_of(
            **{k: v for k, v in options.items() if k in ("pooling", "mixer", "padding")}
        )
        seen, upload = [], type(model).upload

        class Noting(nf.SequenceClassifier):
            def upload(self, batch, *arguments, **more):
                seen.append(batch.x.shape[1])
                return upload(self, batch, *arguments, **more)

        model.__class__ = Noting
        nf.fit(
            model,
            (x, y, mask),
            epochs=1,
            batch_size=8,
            progress=False,
            workers=1,
            **{k: v for k, v in options.items() if k == "batches"},
        )
        return seen

    assert min(widest()) < LENGTH
    assert min(widest(batches="by_length")) < LENGTH
    assert set(widest(batches="shuffled")) == {LENGTH}
    assert set(widest(pooling="flatten")) == {LENGTH}
    assert set(widest(mixer="fourier", padding="zero")) == {LENGTH}


def test_what_cannot_be_is_said():
    x, y, mask = samples()
    with pytest.raises(ValueError, match="batches is 'sorted'"):
        nf.fit(model_of(), (x, y, mask), batches="sorted")
    with pytest.raises(ValueError, match="the amount of padding changes what this model computes"):
        nf.fit(model_of(pooling="flatten"), (x, y, mask), batches="by_length")


def test_a_training_by_length_is_continued_bit_for_bit(tmp_path):
    data, settings = samples(60), {"epochs": 3, "batch_size": 8, "workers": 1, "progress": False}
    whole = model_of()
    nf.fit(whole, data, **settings)

    class Stops(nf.Callback):
        def after_step(self, state):
            if state.step == 11:
                raise KeyboardInterrupt

    stopped = model_of()
    with pytest.raises(KeyboardInterrupt):
        nf.fit(stopped, data, **settings, checkpoint=tmp_path / "run", callbacks=[Stops()])
    again = model_of()
    nf.fit(again, data, **settings, checkpoint=tmp_path / "run", resume=True)
    for name, value in whole.parameters().items():
        np.testing.assert_array_equal(again.parameters()[name], value)
