"""npformer's side of comparisons with PyTorch: a model, and its training steps as in `fit`."""

import itertools
import time

import numpy as np

import npformer as nf
from benchmarks import workloads
from benchmarks.timing import timed
from npformer.engine.team import Team
from npformer.optim import clip_by_global_norm


class Training:
    """A model and the steps of its training, by a team.

    Parameters
    ----------
    model : Layer
    adam : Adam
    batches : iterator
        Pairs of arrays.
    workers : int or "auto"
        Of the team.
    clip : float, optional
        Of the gradients' norm.
    """

    def __init__(self, model, adam, batches, workers="auto", clip=None):
        self.model, self.adam, self.batches, self.clip = model, adam, batches, clip
        self.team = Team(model, workers=workers)
        self.generator = np.random.default_rng(0)

    def train(self):
        """Run one training step and return its loss."""
        batch = self.model.batch(*next(self.batches))
        loss, gradients = self.team.step(batch, generator=self.generator)
        if self.clip is not None:
            clip_by_global_norm(gradients, self.clip)
        self.adam.step(gradients)
        return loss

    def weights(self):
        """Return copies of all weights, under npformer's names."""
        return {name: nf.to_numpy(w).copy() for name, w in self.model.parameters().items()}

    def losses(self, n):
        """Run n training steps and return their losses."""
        return [float(self.train()) for _ in range(n)]

    def wait(self):
        """Return when everything that was launched has been done."""

    def turn(self, n):
        """Return the seconds per step, over n steps after an untimed one."""
        return timed(self.train, n, self.wait)

    def seconds(self, n):
        """Run exactly n steps, and return the seconds per step."""
        began = time.perf_counter()
        self.losses(n)
        return (time.perf_counter() - began) / n


def classifier(case):
    """Return npformer's model of a case."""
    config = nf.EncoderConfig(
        **case.workload.sizes(),
        mixer=case.mixer,
        activation=case.activation,
        dropout=case.dropout,
    )
    classes, words = workloads.CLASSES, workloads.VOCABULARY
    return nf.SequenceClassifier(config, classes, vocab_size=words, pooling="mean", seed=0)


class Ours(Training):
    """npformer's classifier of a case, and its steps."""

    def __init__(self, case, backend="numpy", precision="float32"):
        w, model = case.workload, classifier(case)
        self.case, self.backend = case, backend
        nf.use_precision(precision, backend)
        model.to(backend)
        arrays = [[nf.asarray(x, backend) for x in pair] for pair in workloads.batches(w)]
        self.first = arrays[0][0]
        self.data_set = workloads.data_set(w) if case.kind == "predict" else None
        adam = nf.Adam(model.parameters(), lr=workloads.LEARNING_RATE)
        super().__init__(model, adam, itertools.cycle(arrays))
        if backend == "cupy":
            from npformer.engine.gpu import DeviceGenerator  # masks are drawn where they are used

            self.generator = DeviceGenerator(0)

    def logits(self):
        """Return the logits of the first batch, without dropout."""
        return np.array(nf.to_numpy(self.model(self.first)))

    def predict(self):
        """Return the labels of one batch."""
        x, _ = next(self.batches)
        return self.model.predict(x, batch_size=len(x))

    def predict_all(self):
        """Return the labels of several batches, predicted in one call."""
        batch = self.case.workload.batch
        return self.model.predict(self.data_set, batch_size=batch)

    def wait(self):
        """Return when everything that was launched has been done."""
        if self.backend != "numpy":
            nf.to_numpy(self.model.parameters().flat[:1])

    def turn(self, n):
        """Return the seconds per step, over n steps."""
        return timed(self.train if self.case.kind == "train" else self.predict, n, self.wait)

    def plain_turn(self, n):
        """Return the same without kernels."""
        with nf.use_kernels(False):
            return self.turn(n)

    def turn_of_all(self, n):
        """Return the seconds to predict several batches, over n times."""
        return timed(self.predict_all, n)

    def held_mib(self):
        """Empty the pool, run three steps with kernels, and return the memory it then holds."""
        if self.backend != "cupy":
            return 0
        import cupy

        pool = cupy.get_default_memory_pool()
        pool.free_all_blocks()
        self.turn(3)
        return round(pool.total_bytes() / 2**20)
