"""An estimate of how long a model computes, from which `worker_counts` chooses workers."""

from dataclasses import dataclass

from npformer.core import Layer, Parameter
from npformer.layers import Embedding, Positions
from npformer.mixers import AveragingMixer, Scores


@dataclass(frozen=True)
class Cost:
    """About how many seconds of one core a training step takes."""

    token: float
    """For each token, in products with weights."""
    pair: float
    """For each pair of tokens of a sequence, in attention's scores and what follows from them."""

    def seconds(self, samples: int, length: int) -> float:
        """Return the cost of a batch."""
        return samples * length * (self.token + self.pair * length)


def cost_of(model: Layer) -> Cost:
    """Return the cost of a model on a core that computes about 100 GFLOP/s.

    Forward and backward passes together take about 6 operations for each parameter and token, and
    in attention and synthesizers 12 for each feature and pair of tokens. Looking up a table costs
    nothing. Nor do a synthesizer's weights for each head: they are about as wide as the longest
    sequence is long, so the pairs already include them.
    """
    multiplied, features = 0, 0
    for _, layer in model.layers():  # lists a shared block once for each use
        if isinstance(layer, Embedding | Positions):
            continue
        if isinstance(layer, AveragingMixer):
            weight = getattr(layer.output, "weight", getattr(layer.value, "weight", None))
            features += 0 if weight is None else weight.shape[0]
        scores = isinstance(layer, AveragingMixer | Scores)
        for _, child in layer.children():
            if isinstance(child, Parameter) and not child.constant:
                multiplied += 0 if scores and len(child.shape) == 3 else child.size
    return Cost(6.0 * multiplied / 100e9, 12.0 * features / 100e9)
