"""Ranks that were given unlike things say so before the first step; these ranks are threads."""

import pytest

import npformer as nf
from tests.in_turn import in_turn
from tests.training.distributed.fake_ranks import run_threads
from tests.training.distributed.train import model_of, samples

ALIKE = {"batch_size": 16, "epochs": 1, "progress": False, "processes": False, "workers": 1}


def trained(unlike, data=lambda x, y, mask: (x, y, mask), model=model_of):
    """Train on two ranks, of which the last gets what is unlike; return the weights of each."""

    def work(ranks):
        last = ranks.rank == 1
        own = model("attention") if last else model_of("attention")
        given = data(*samples()) if last else samples()
        nf.fit(own, given, communicator=ranks, **{**ALIKE, **(unlike if last else {})})
        return b"".join(each.tobytes() for each in own.parameters().values())

    return run_threads(2, work)


@in_turn(
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


def test_other_data_are_named_by_shapes_and_a_digest():
    with pytest.raises(ValueError, match=r"data is '89 samples of shape .* \(digest .*'90 samples"):
        trained({}, data=lambda x, y, mask: (x[:-1], y[:-1], mask[:-1]))
    with pytest.raises(ValueError, match=r"data is '90 samples of shape .* on rank 0"):
        trained({}, data=lambda x, y, mask: (x[::-1], y[::-1], mask[::-1]))


def test_another_model_is_named():
    def wider(mixer):
        model = model_of(mixer)
        arguments = {**model.arguments(), "n_classes": 4}
        return nf.SequenceClassifier(model.config, **arguments, seed=1)

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
