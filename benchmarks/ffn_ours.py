"""npformer's side of `ffn`: the published benchmark's model, trained by a Team."""

import numpy as np

import npformer as nf
from benchmarks import workloads
from benchmarks.timing import timed
from npformer.core.inputs import Sequences
from npformer.data.batch import Batch
from npformer.engine.team import Team
from npformer.models.losses import BinaryCrossEntropy


class Ours:
    """The model with linear maps and with convolutions, with the same weights."""

    def __init__(self, batch, length, width):
        self.x, self.y = workloads.vectors(batch, length, width)
        self.models = {
            ffn: nf.published.benchmark_model(length, width, 4 * width, ffn=ffn)
            for ffn in ("linear", "conv1d")
        }
        self.teams = {
            ffn: Team(model, workers="auto", loss=BinaryCrossEntropy())
            for ffn, model in self.models.items()
        }
        self.optimizers = {
            ffn: nf.Adam(model.parameters(), eps=workloads.KERAS_EPSILON)
            for ffn, model in self.models.items()
        }

    def weights(self):
        """Return copies of all weights of the linear maps, under npformer's names."""
        return {name: np.array(w) for name, w in self.models["linear"].parameters().items()}

    def logits(self):
        """Return both models' logits."""
        return {ffn: np.array(nf.fast(model)(self.x)) for ffn, model in self.models.items()}

    def train(self, ffn):
        """Run one training step."""
        batch = Batch((Sequences(self.x),), self.y, counts=np.ones(len(self.x)))
        _, gradients = self.teams[ffn].step(batch, generator=None)
        self.optimizers[ffn].step(gradients)

    def turn(self, ffn, n):
        """Return the seconds per step, over n steps."""
        return timed(lambda: self.train(ffn), n)
