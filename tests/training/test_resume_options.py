"""Weights, types, metrics, frozen layers, a share held out, accumulation: all go on bit for bit."""

import signal

import numpy as np
import pytest

import npformer as nf
from npformer.training.storage import checkpoint_folder as folders
from tests.sampling import mark_others
from tests.training.common import assert_same_weights, fit
from tests.training.test_resume import StopAfter, plain

pytestmark = pytest.mark.usefixtures("usual_handlers")


def tokens(rng):
    """Return ids, labels, a mask and types of 20 samples, and their weights."""
    ids, y = rng.integers(0, 7, (20, 6)), rng.integers(0, 3, 20)
    mask = np.arange(6) < rng.integers(1, 7, 20)[:, None]
    return (ids, y, mask, rng.integers(0, 2, (20, 6))), rng.random(20)


OPTIONS = {
    "weights": {"class_weight": "balanced", "weigh": True},
    "decay": {"weight_decay": 0.1, "no_decay": ["*.bias"]},
    "a metric": {"metric": "macro_f1", "patience": 2, "share": 0.3},
    "a share": {"share": 0.25, "weigh": True},
    "accumulation": {"accumulate": 2, "batch_size": 3},
    "micro batches": {"micro_batch": 2},
    "frozen": {"freeze": ("embed.*", "encoder.blocks.0.*")},
    "all": {
        "class_weight": {1: 3.0},
        "weigh": True,
        "metric": "loss",
        "share": 0.25,
        "accumulate": 2,
        "batch_size": 2,
        "freeze": ("embed.tokens*",),
    },
}


@pytest.fixture
def train(small_model, rng, tmp_path):
    data, weights = tokens(rng)

    def run(*callbacks, folder=None, model=None, **changes):
        options = {"label_smoothing": 0.1, "seed": 5, "on_interrupt": "return"} | changes
        if options.pop("weigh", False):
            options["sample_weight"] = weights
        if (share := options.pop("share", None)) is not None:
            options["validation"] = share
        pattern = options.pop("freeze", None)
        if model is None:
            model = small_model(dropout=0.2, n_token_types=2, dtype="float32")
        if pattern:
            model.freeze(*pattern)
        history = fit(model, options.pop("data", data), *callbacks, checkpoint=folder, **options)
        return model, history

    run.folder = tmp_path / "run"
    run.data, run.weights = data, weights
    return run


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("step", mark_others([3], [1, 2, 3, 4, 6]))
@pytest.mark.parametrize("workers", [1, 2])
def test_a_training_goes_on_bit_for_bit(train, name, step, workers):
    options = OPTIONS[name] | {"workers": workers}
    unstopped_model, expected = train(**options)
    _, stopped = train(StopAfter(step, signal.SIGTERM), folder=train.folder, **options)
    assert stopped.stopped == "terminated" or len(expected.train_loss) < 3
    model, history = train(folder=train.folder, resume=True, **options)
    assert_same_weights(model, unstopped_model)
    assert plain(history) == plain(expected)
    assert list(model.frozen()) == list(unstopped_model.frozen())


@pytest.mark.parametrize(
    ("before", "change", "message"),
    [
        ({}, {"weigh": True}, "data is '.*', and was"),
        ({"weigh": True}, {"weigh": False}, "data is '.*', and was"),
        ({}, {"class_weight": [1, 2, 3]}, r"loss is .*'class_weight': \[1.0, 2.0, 3.0\].* and was"),
        ({"share": 0.2}, {"share": 0.3}, "validation is '.*', and was"),
        ({"share": 0.2}, {"metric": "loss"}, "metric is 'loss', and was 'accuracy'"),
        ({}, {"accumulate": 2}, "batch_size is 10, and was 5"),
        ({"no_decay": ["*.bias"]}, {"no_decay": []}, "no_decay is"),
        ({"freeze": ("embed.*",)}, {"freeze": None}, r"frozen is \[\], and was \['embed.tokens"),
    ],
    ids=str,
)
def test_another_training_is_refused(train, before, change, message):
    train(folder=train.folder, **before)
    checkpoint = (train.folder / folders.CHECKPOINT).read_bytes()
    with pytest.raises(ValueError, match=message):
        train(folder=train.folder, resume=True, **(before | change))
    assert (train.folder / folders.CHECKPOINT).read_bytes() == checkpoint


def test_other_types_are_refused(train):
    train(folder=train.folder)
    ids, y, mask, types = train.data
    with pytest.raises(ValueError, match=r"data is '.*', and was"):
        train(folder=train.folder, resume=True, data=(ids, y, mask, 1 - types))


def test_accumulation_for_a_larger_batch_is_told_as_rounding(train):
    train(StopAfter(2), folder=train.folder, accumulate=2, batch_size=3)
    with pytest.warns(UserWarning, match="micro_batch is None, and was 3: .* up to rounding"):
        train(folder=train.folder, resume=True, batch_size=6)


@pytest.mark.parametrize(("part", "name"), [("must", "frozen"), ("may", "numpy")])
def test_a_checkpoint_without_a_setting_is_refused(train, part, name):
    train(StopAfter(6), folder=train.folder)
    stored = folders.read(train.folder)
    del stored["settings"][part][name]
    folders.write(train.folder, stored)
    with pytest.raises(nf.CheckpointError, match=f"'{name}'.*: was it edited"):
        train(folder=train.folder, resume=True)


@pytest.mark.parametrize("n", [10**15, 10**8, float("nan"), -1])
def test_as_many_children_of_a_generator_as_memory_has_not_are_refused(train, n):
    train(StopAfter(6), folder=train.folder)
    stored = folders.read(train.folder)
    stored["generators"]["shuffle"]["children"]["n_children_spawned"] = n
    folders.write(train.folder, stored)
    with pytest.raises(nf.CheckpointError, match=r"n_children_spawned is .*: was it edited"):
        train(folder=train.folder, resume=True)


def test_a_frozen_model_of_a_checkpoint_is_frozen(train):
    train(folder=train.folder, freeze=("embed.*",))
    checkpoint = nf.load_checkpoint(train.folder)
    assert list(checkpoint.model.frozen()) == [
        name
        for name in checkpoint.model.named_parameters()
        if name.startswith("embed.") and "table" not in name
    ]
    assert set(checkpoint.optimizer.parameters) == set(checkpoint.model.parameters())
