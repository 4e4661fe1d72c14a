"""npformer's side of `ffn`: the seeds' benchmark model, trained by a Team."""

import numpy as np

import npformer as nf
from benchmarks import workloads
from benchmarks.timing import timed
from npformer import functional as F
from npformer.module import Layer
from npformer.workers import Team


class OneLogit(Layer):
    """`seeds.benchmark_model` with its loss, as a Team wants it: `accumulate` on prepared data."""

    def __init__(self, length, width, ffn):
        self.body = nf.seeds.benchmark_model(length, width, 4 * width, ffn=ffn)
        self.flatten()

    def prepare_batch(self, x, y, mask=None):
        """Return x, targets, no mask, and one label for each sample."""
        return x, y.reshape(-1, 1).astype(x.dtype), None, np.ones(len(x), dtype="int64")

    def accumulate(self, x, y, context, gradients, *, weight, label_smoothing):
        """Add the gradients of ``weight * loss`` and return ``weight * loss``."""
        logits, cache = self.body.forward(x, context)
        loss, loss_cache = F.binary_cross_entropy_with_logits(logits, y)
        self.body.backward_parameters(
            F.binary_cross_entropy_with_logits_backward(weight, loss_cache), cache, gradients
        )
        return loss * weight


class Ours:
    """The model with linear maps and with convolutions, drawn alike."""

    def __init__(self, batch, length, width):
        self.x, self.y = workloads.vectors(batch, length, width)
        self.models = {ffn: OneLogit(length, width, ffn) for ffn in ("linear", "conv1d")}
        self.teams = {ffn: Team(model, workers="auto") for ffn, model in self.models.items()}
        self.optimizers = {
            ffn: nf.Adam(model.parameters(), eps=workloads.KERAS_EPSILON)
            for ffn, model in self.models.items()
        }

    def weights(self):
        """Return copies of all weights of the linear maps, under npformer's names."""
        return {name: np.array(w) for name, w in self.models["linear"].body.parameters().items()}

    def logits(self):
        """Return both models' logits."""
        return {ffn: np.array(model.body(self.x)) for ffn, model in self.models.items()}

    def train(self, ffn):
        """Run one training step."""
        _, gradients = self.teams[ffn].step(self.x, self.y, None, generator=None)
        self.optimizers[ffn].step(gradients)

    def turn(self, ffn, n):
        """Return the seconds of a step, over n of them."""
        return timed(lambda: self.train(ffn), n)
