"""Ranks that are threads: unlike things are told before the first step; any model is trained."""

import numpy as np
import pytest

import npformer as nf
from tests.models.trainable.outside import MODELS, data_of
from tests.training.distributed.fake_ranks import run_threads
from tests.training.distributed.train import model_of, samples

ALIKE = {"batch_size": 16, "epochs": 1, "progress": False, "workers": 1}


def trained(unlike, data=lambda x, y, mask: (x, y, mask), model=model_of):
    """Train on two ranks, of which the last gets what is unlike; return the weights of each."""

    def work(ranks):
        last = ranks.rank == 1
        trained_model = model("attention") if last else model_of("attention")
        samples_of_rank = data(*samples()) if last else samples()
        settings = ALIKE | unlike if last else ALIKE
        nf.fit(trained_model, samples_of_rank, communicator=ranks, **settings)
        return b"".join(value.tobytes() for value in trained_model.parameters().values())

    return run_threads(2, work)


@pytest.mark.parametrize(
    ("unlike", "message"),
    [
        ({"epochs": 2}, "epochs is 2 on rank 1, and 1 on rank 0; expected the same on all ranks"),
        ({"lr": 0.5}, "lr is 0.5 on rank 1, and 0.001 on rank 0"),
        ({"schedule": "cosine(total=9)"}, "schedule: 1 is 0.9.* on rank 1, and 1.0 on rank 0"),
        ({"label_smoothing": 0.1}, "loss: label_smoothing is 0.1 on rank 1, and 0.0"),
        ({"batches": "shuffled"}, "batches is 'shuffled' on rank 1, and 'by_length' on rank 0"),
        ({"seed": 3}, "seed is 3 on rank 1, and 0 on rank 0"),
    ],
)
def test_other_settings_are_named(unlike, message):
    with pytest.raises(ValueError, match=message):
        trained(unlike)


def test_data_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"data is '89 samples of shape .* \(digest .*'90 samples"):
        trained({}, data=lambda x, y, mask: (x[:-1], y[:-1], mask[:-1]))


def test_data_in_another_order_are_refused():
    with pytest.raises(ValueError, match=r"data is '90 samples of shape .* on rank 0"):
        trained({}, data=lambda x, y, mask: (x[::-1], y[::-1], mask[::-1]))


def test_another_model_is_named():
    def wider(mixer):
        model = model_of(mixer)
        return nf.SequenceClassifier(model.config, **{**model.arguments(), "n_classes": 4}, seed=1)

    with pytest.raises(ValueError, match="arguments: n_classes is 4 on rank 1, and 3 on rank 0"):
        trained({}, model=wider)


def test_weights_that_differ_become_those_of_the_first_rank():
    def other(mixer):
        model = model_of(mixer)
        for parameter in model.parameters().values():
            parameter += 0.5
        return model

    assert len(set(trained({}, model=other))) == 1
    assert trained({}, model=other) == trained({})


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_another_kind_ends_as_in_one_process(name):
    def work(ranks):
        model = MODELS[name](dropout=0.2)
        optimizer = nf.Adam(model.parameters(), lr=1e-2, eps=1e-3)
        settings = ALIKE | {"epochs": 2, "batch_size": 5, "optimizer": optimizer, "clip_norm": 0.5}
        history = nf.fit(
            model,
            data_of(name),
            validation=data_of(name, 11, seed=1),
            communicator=ranks,
            **settings,
        )
        return model.parameters().flat.copy(), history.train_loss, history.validation_loss

    ((alone, *losses),) = run_threads(1, work)
    for n in (2, 3):
        (first, *_), *other_ranks = of_ranks = run_threads(n, work)
        assert all(other.tobytes() == first.tobytes() for other, *_ in other_ranks)
        for weights, *losses_of_rank in of_ranks:
            np.testing.assert_allclose(weights, alone, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(losses_of_rank, losses, rtol=1e-12)
