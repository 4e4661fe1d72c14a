"""Trainings in which one rank is unlike the others: ``failing.py FOLDER WAY``."""

import json
import os
import resource
import signal
import sys
import warnings
from pathlib import Path

import numpy as np

import npformer as nf
from npformer.training.distributed import world
from tests.training.distributed.train import model_of, samples


class On(nf.Callback):
    """Does something on one rank, before the update of a step."""

    def __init__(self, rank, step, act):
        self.rank, self.step, self.act = rank, step, act

    def before_update(self, state):
        if (state.rank, state.step) == (self.rank, self.step):
            self.act(state)


def raise_error(state):
    raise RuntimeError("this rank has had enough")


def spoil(state):
    state.gradients["classify.bias"][...] = np.nan


def double(state):
    state.gradients["classify.bias"][...] *= 2


class Alone(nf.Callback):
    """Asks for the optimizer's state on rank 0, which all ranks should do together."""

    def after_epoch(self, state):
        if state.rank == 0:
            state.optimizer.state()


def end_disk(state):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))


def send(signum):
    return lambda state: os.kill(os.getpid(), signum)


LAST = world().size - 1

CALLBACKS = {
    "alone": Alone(),
    "callback": On(LAST, 8, raise_error),
    "gradient": On(LAST, 8, spoil),
    "double": On(LAST, 8, double),
    "stop": On(LAST, 8, lambda state: state.stop("enough")),
    "full": On(0, 8, end_disk),
    "SIGTERM": On(LAST, 8, send(signal.SIGTERM)),
    "SIGINT": On(0, 8, send(signal.SIGINT)),
}


def main(folder, way):
    """Train; each rank writes how it ended."""
    ranks = world()
    x, y, mask = samples()
    model = model_of("attention")
    settings = {"batch_size": 16, "epochs": 3, "lr": 3e-3}
    if way == "nan":
        config = nf.EncoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=8, max_len=4)
        model = nf.SequenceClassifier(config, 3, n_features=2, seed=0)
        x = np.random.default_rng(0).normal(size=(90, 4, 2)).astype("float32")
        mask = None
        x[50] = np.nan
    if ranks.rank == LAST:
        if way == "data":
            x, y, mask = x[:-1], y[:-1], mask[:-1]
        if way == "labels":
            y = 2 - y
        if way == "clip_norm":
            settings[way] = 1.0
    if way == "no folder" and ranks.rank == 0:
        (folder / "checkpoint").write_text("a file")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        options = {"seed": 3, "checkpoint": folder / "checkpoint", "on_interrupt": "return"}
        options["callbacks"] = [CALLBACKS[way]] if way in CALLBACKS else []
        options |= {"communicator": ranks, "progress": False, "shard_moments": way == "alone"}
        history = nf.fit(model, (x, y, mask), **options, **settings)
    if way == "full" and ranks.rank == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    end = {"stopped": history.stopped, "steps": sum(history.workers.values())}
    end["said"] = [str(warning.message) for warning in caught]
    (folder / f"{ranks.rank}.json").write_text(json.dumps(end))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
