"""npformer's side of the comparison with PyTorch."""

import itertools
import sys

import numpy as np

import npformer as nf
from benchmarks import workloads
from benchmarks.timing import timed
from npformer.engine.team import Team

COPIES = sys.platform == "linux"


class Ours:
    """npformer's model of a case, and its steps."""

    def __init__(self, case):
        w = case.workload
        config = nf.EncoderConfig(
            d_model=w.d_model,
            n_layers=w.layers,
            n_heads=workloads.HEADS,
            d_ff=w.d_ff,
            max_len=w.length,
            mixer=case.mixer,
            activation=case.activation,
            dropout=case.dropout,
        )
        self.case = case
        self.batches = workloads.batches(w)
        self.in_turn = itertools.cycle(self.batches)
        self.model = nf.SequenceClassifier(
            config, workloads.CLASSES, vocab_size=workloads.VOCABULARY, pooling="mean", seed=0
        )
        self.optimizer = nf.Adam(self.model.parameters(), lr=workloads.LEARNING_RATE)
        # As in `fit`. By default, a process started by another process makes no copies.
        self.team = Team(self.model, workers="auto", processes=COPIES)
        self.generator = np.random.default_rng(0)
        self.data_set = workloads.data_set(w) if case.kind == "predict" else None
        self.step = self.train if case.kind == "train" else self.predict

    def train(self):
        """Run one training step and return its loss."""
        x, y = next(self.in_turn)
        loss, gradients = self.team.step(self.model.batch(x, y), generator=self.generator)
        self.optimizer.step(gradients)
        return loss

    def predict(self):
        """Return the labels of one batch."""
        x, _ = next(self.in_turn)
        return self.model.predict(x, batch_size=len(x))

    def predict_all(self):
        """Return the labels of several batches, predicted in one call."""
        batch = self.case.workload.batch
        return self.model.predict(self.data_set, batch_size=batch, processes=COPIES)

    def weights(self):
        """Return copies of all weights, under npformer's names."""
        return {name: np.array(value) for name, value in self.model.parameters().items()}

    def logits(self):
        """Return the logits of the first batch, without dropout."""
        return np.array(self.model(self.batches[0][0]))

    def losses(self, n):
        """Run n training steps and return their losses."""
        return [float(self.train()) for _ in range(n)]

    def turn(self, n):
        """Return the seconds per step, over n steps."""
        return timed(self.step, n)

    def turn_of_all(self, n):
        """Return the seconds to predict several batches, over n times."""
        return timed(self.predict_all, n)
