"""Train on files and predict into one, as a rank of several.

Each rank writes which rows of x it has read: at the start, and in each step.
"""

import json

import numpy as np
import pytest

import npformer as nf
from npformer.data import ShardedArray, read_ahead, sharded, stored_samples
from npformer.training.distributed import world
from tests.training.distributed.train import VOCABULARY, model_of, samples

DATA = samples()
SETTINGS = {"epochs": 3, "batch_size": 16, "lr": 3e-3, "seed": 3, "progress": False}
SETTINGS |= {"validation": 0.2, "class_weight": "balanced"}


class Watched(ShardedArray):
    """Notes which rows were read, each time."""

    def __init__(self, files):
        super().__init__(files)
        self.read = []

    def __getitem__(self, rows):
        self.read.append(np.atleast_1d(np.arange(len(self))[rows]).tolist())
        return super().__getitem__(rows)


class Notes(nf.Callback):
    """Parts what was read by steps."""

    def __init__(self, x):
        self.x = x
        self.at_start = None
        self.of_steps = []

    def on_start(self, state):
        self.at_start = list(self.x.read)
        self.x.read.clear()

    def after_step(self, state):
        self.of_steps.append([row for rows in self.x.read for row in rows])
        self.x.read.clear()

    def after_epoch(self, state):
        self.x.read.clear()  # of the validation


def main(folder, way, checkpoint=None, epochs=3):
    """Train, evaluate and predict."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_samples, "MOST_AT_ONCE", 7)
        # Where it matters which step reads a row, no thread reads ahead; elsewhere one always does.
        patch.setattr(read_ahead, "SLOW_READ", float("inf") if way == "all" else 0.0)
        train(world(), folder, way, checkpoint, epochs)


def train(ranks, folder, way, checkpoint, epochs):
    for k, array in enumerate(DATA if ranks.rank == 0 else ()):
        for i, rows in enumerate(np.array_split(array, 7)):
            np.save(folder / f"{k}-{i}.npy", rows)
    ranks.agree(0.0)
    x, y, mask = (sharded(str(folder / f"{k}-*.npy")) for k in range(3))
    x = Watched(x.files)
    if way == "label" and ranks.rank == ranks.size - 1:
        np.save(folder / "labels.npy", np.full(len(y), 3))
        y = np.load(folder / "labels.npy", mmap_mode="r")
    if way == "fewer" and ranks.rank == ranks.size - 1:
        x, y, mask = (ShardedArray(array.files[:-1]) for array in (x, y, mask))
    model = model_of("attention")
    watch = Notes(x)
    settings = SETTINGS | {"callbacks": [watch], "communicator": ranks}
    if checkpoint is not None:
        settings |= {"checkpoint": checkpoint, "resume": True, "epochs": epochs}
    history = nf.fit(model, (x, y, mask), **settings)
    evaluation = nf.evaluate(model, (x, y, mask), communicator=ranks)
    x.read.clear()
    if way == "predict" and ranks.rank == ranks.size - 1:
        x = np.concatenate([x[:-1], np.full((1, x.shape[1]), VOCABULARY)])
    nf.predict_to_file(folder / "predicted.npy", model, x, mask, communicator=ranks)
    (folder / f"{ranks.rank}.json").write_text(
        json.dumps({"start": watch.at_start, "steps": watch.of_steps, "predicted": x.read})
    )
    if ranks.rank == 0:
        np.savez(folder / "weights.npz", **model.parameters())
        (folder / "history.json").write_text(
            json.dumps(history.to_dict() | {"evaluation": [evaluation.loss, evaluation.accuracy]})
        )
