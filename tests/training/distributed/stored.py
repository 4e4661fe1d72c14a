"""Train on files and predict into one, as a rank of several: ``stored.py FOLDER WAY``.

Each rank writes which rows of x it has read: at the start, and in each step.
"""

import json
import sys
from pathlib import Path

import numpy as np

import npformer as nf
from npformer.data import ShardedArray, read_ahead, sharded, stored_samples
from npformer.training.distributed import world
from tests.training.distributed.train import VOCABULARY, model_of

stored_samples.MOST_AT_ONCE = 7
# Where it matters which step reads a row, no thread reads ahead; everywhere else one always does.
read_ahead.WORTH = float("inf") if "all" in sys.argv else 0.0


class Watched(ShardedArray):
    """Notes which rows were read, each time."""

    def __init__(self, files):
        super().__init__(files)
        self.read = []

    def __getitem__(self, rows):
        numbers = np.arange(len(self))[rows]
        self.read.append(np.atleast_1d(numbers).tolist())
        return super().__getitem__(rows)


class Notes(nf.Callback):
    """Parts what was read by steps."""

    def __init__(self, x):
        self.x, self.at_start, self.of_steps = x, None, []

    def on_start(self, state):
        self.at_start = list(self.x.read)
        self.x.read.clear()

    def after_step(self, state):
        self.of_steps.append([row for rows in self.x.read for row in rows])
        self.x.read.clear()

    def after_epoch(self, state):
        self.x.read.clear()  # of the validation


def main(folder, way):
    """Train, evaluate and predict."""
    ranks = world()
    x, y, mask = (sharded(str(folder / f"data/{k}-*.npy")) for k in range(3))
    x = Watched(x.files)
    if way == "label" and ranks.rank == ranks.size - 1:
        np.save(folder / "labels.npy", np.full(len(y), 3))
        y = np.load(folder / "labels.npy", mmap_mode="r")
    if way == "fewer" and ranks.rank == ranks.size - 1:
        x, y, mask = (ShardedArray(each.files[:-1]) for each in (x, y, mask))
    model = model_of("attention")
    watch = Notes(x)
    settings = {"epochs": 3, "batch_size": 16, "lr": 3e-3, "seed": 3, "progress": False}
    settings |= {"validation": 0.2, "class_weight": "balanced", "callbacks": [watch]}
    checkpoint = {}
    if way in ("begin", "resume"):
        checkpoint = {"checkpoint": folder / "run", "resume": True}
        settings["epochs"] = 1 if way == "begin" else 3
    history = nf.fit(model, (x, y, mask), communicator=ranks, **settings, **checkpoint)
    found = nf.evaluate(model, (x, y, mask), communicator=ranks)
    x.read.clear()
    if way == "predict" and ranks.rank == ranks.size - 1:
        ids = np.full((1, x.shape[1]), VOCABULARY)
        x = np.concatenate([x[:-1], ids])
    nf.predict_to_file(folder / "predicted.npy", model, x, mask, communicator=ranks)
    (folder / f"{ranks.rank}.json").write_text(
        json.dumps({"start": watch.at_start, "steps": watch.of_steps, "predicted": x.read})
    )
    if ranks.rank == 0:
        np.savez(folder / "weights.npz", **model.parameters())
        (folder / "history.json").write_text(
            json.dumps(history.to_dict() | {"evaluation": [found.loss, found.accuracy]})
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
