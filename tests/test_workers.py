import numpy as np
import pytest
from threadpoolctl import threadpool_info

from npformer import workers
from npformer.mixers import MIXERS


def assert_close(one, other):
    """Loss and gradients are equal to 1e-12 of the largest gradient."""
    assert one[0] == pytest.approx(other[0], rel=1e-12)
    largest = np.abs(other[1].flat).max()
    np.testing.assert_allclose(one[1].flat, other[1].flat, rtol=0, atol=1e-12 * largest)


@pytest.mark.parametrize("mixer", MIXERS)
def test_two_workers_give_what_one_gives(small_model, token_batch, mixer):
    model = small_model(mixer=mixer, padding="per_length")
    assert_close(
        model.loss_and_gradients(*token_batch, workers=2),
        model.loss_and_gradients(*token_batch, workers=1),
    )


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_parts_of_unequal_size_weigh_what_they_hold(small_model, token_batch, n):
    model, (ids, y, mask) = small_model(), token_batch
    batch = ids[:7], y[:7], mask[:7]
    assert_close(
        model.loss_and_gradients(*batch, workers=n, label_smoothing=0.1),
        model.loss_and_gradients(*batch, workers=1, label_smoothing=0.1),
    )


def test_parts_with_unequal_numbers_of_labels_weigh_what_they_hold(small_model, token_batch):
    model, ids = small_model(pooling="none"), token_batch[0]
    y = np.full((8, 6), -1)
    y[0], y[1, 2], y[7, :2] = 1, 2, 0
    for labels in (y, np.where(np.arange(8)[:, None] < 4, y, -1)):
        assert_close(
            model.loss_and_gradients(ids, labels, workers=2),
            model.loss_and_gradients(ids, labels, workers=1),
        )


def test_one_logit_is_shared_out_too(small_model, token_batch):
    ids, y, mask = token_batch
    model = small_model(n_classes=2, output="sigmoid")
    assert_close(
        model.loss_and_gradients(ids, y % 2, mask, workers=3),
        model.loss_and_gradients(ids, y % 2, mask, workers=1),
    )


def test_more_workers_than_samples_are_no_more_than_samples(small_model, token_batch):
    model, (ids, y, mask) = small_model(), token_batch
    batch = ids[:2], y[:2], mask[:2]
    assert_close(
        model.loss_and_gradients(*batch, workers=50), model.loss_and_gradients(*batch, workers=1)
    )
    assert workers.choose(50, model, batch=2, seconds=0.0) == 2


def test_dropout_repeats_for_the_same_number_of_workers(small_model, token_batch):
    model = small_model(dropout=0.3)
    for n in (1, 2):
        one, again = (model.loss_and_gradients(*token_batch, workers=n, seed=0) for _ in range(2))
        assert one[0] == again[0]
        np.testing.assert_array_equal(one[1].flat, again[1].flat)


def test_workers_draw_masks_of_their_own(small_model):
    model = small_model(dropout=0.5)
    ids, y = np.ones((2, 6), dtype=int), np.zeros(2, dtype=int)  # two equal samples
    _, one_seed = model.loss_and_gradients(ids[:1], y[:1], workers=1, seed=0)
    _, both = model.loss_and_gradients(ids, y, workers=2, seed=0)
    assert (both.flat != one_seed.flat).any()
    with workers.Team(model, 2) as team:
        team.step(ids, y, None, generator=np.random.default_rng(0))
        assert (team._gradients[1].flat != both.flat).any()


def test_a_team_uses_its_buffers_again_from_step_to_step(small_model, token_batch):
    model, (ids, y, mask) = small_model(), token_batch
    with workers.Team(model, 2) as team:
        for rows in (slice(0, 8), slice(0, 3), slice(2, 8), slice(0, 8)):
            batch = ids[rows], y[rows], mask[rows]
            loss, gradients = team.step(*batch, generator=None)
            assert_close((float(loss), gradients), model.loss_and_gradients(*batch))


def test_auto_leaves_a_small_batch_to_one_thread(small_model):
    assert workers.choose("auto", small_model(), batch=8, seconds=1e-4) == 1


def test_auto_gives_every_worker_at_least_four_samples(small_model, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    model = small_model()
    chosen = [workers.choose("auto", model, batch=n, seconds=1.0) for n in (1, 4, 12, 1000)]
    assert chosen == [1, 1, 3, 16]


def test_blas_has_its_threads_back_afterwards(small_model, token_batch):
    before = [pool["num_threads"] for pool in threadpool_info()]
    small_model().loss_and_gradients(*token_batch, workers=2)
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_an_error_inside_a_worker_reaches_the_caller(small_model, token_batch):
    with pytest.raises(ValueError, match="dropout needs a random generator"):
        small_model(dropout=0.3).loss_and_gradients(*token_batch, workers=2)
