"""Train models on fake GPUs, one for each rank.

The way is "nccl", "host" (a backend whose devices cannot be joined), "missing" (NCCL is not
installed on the last rank), "shared" (two ranks on one GPU), "unlike" (one rank computes on its
CPU), or "cupy": real GPUs.
"""

import warnings

from mpi4py import MPI

import npformer as nf
from npformer.core import Link, arrays
from npformer.training.distributed import communicator_of
from tests import fake_device
from tests.training.distributed.fake_nccl import STREAM, FakeNCCL
from tests.training.distributed.train import keep, model_of, samples


class Waits(nf.Callback):
    """Notes what the host waited for, in each step but the first and the last ones."""

    def on_start(self, state):
        self.of_steps = []
        self.counting = None

    def after_step(self, state):
        if self.counting is not None:
            self.counting.__exit__(None, None, None)
            self.of_steps.append(self.counts.waits)
        self.counting = fake_device.count()
        self.counts = self.counting.__enter__()

    def after_epoch(self, state):
        self.counting.__exit__(None, None, None)
        self.counting = None


def main(folder, way, settings):
    """Train a model with each mixer."""
    ranks = communicator_of(MPI.COMM_WORLD)  # knows nothing of the devices of jobs before
    nccl = FakeNCCL(available=way != "missing" or ranks.rank < ranks.size - 1)
    device = f"0000:{0 if way == 'shared' else ranks.rank:02}"
    link = Link(nccl, stream=lambda: STREAM, device=lambda: device)
    arrays.register(fake_device.backend(None if way == "host" else lambda: link))
    nf.use_kernels(way == "cupy")
    optimizer_of = settings.pop("optimizer", None)
    watch = Waits()
    for mixer in settings.pop("mixers"):
        model = model_of(mixer, seed=1 + ranks.rank)
        backend = "cupy" if way == "cupy" else "fake"
        if way == "unlike" and ranks.rank == ranks.size - 1:
            backend = "numpy"
        model.to(backend)
        if optimizer_of is not None:
            settings["optimizer"] = nf.Adam(model.parameters(), **optimizer_of)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            defaults = {"batch_size": 16, "seed": 3, "progress": False, "callbacks": [watch]}
            history = nf.fit(model, samples(), communicator=ranks, **(defaults | settings))
        messages = ranks.gather([str(warning.message) for warning in caught])
        notes = {"warnings": messages, "waits": watch.of_steps, "calls": len(nccl.calls)}
        keep(folder / mixer, ranks, model, history.to_dict() | notes)
