"""WideSequenceModel: a `SequenceModel` with a second answer, from words and pairs alone."""

from typing import Any

from npformer.core import Array, Context, Gradients, array_module
from npformer.layers import Pooling, Wide
from npformer.losses import SoftmaxCrossEntropy
from npformer.models.config import EncoderConfig
from npformer.models.sequence_model import SequenceModel


class MeanOfAnswers(SoftmaxCrossEntropy):
    """Several answers to each sample: outputs are (batch, answers, n_classes) logits.

    The loss is the mean of theirs, so each learns as if it were alone; probabilities are the mean
    of the softmax of each.
    """

    def forward(self, outputs: Array, y: Array, weights: Array | None = None) -> tuple[Array, Any]:
        n = outputs.shape[1]
        y, weights = (a if a is None else a[:, None].repeat(n, axis=1) for a in (y, weights))
        return super().forward(outputs, y, weights)

    def probabilities(self, outputs: Array) -> Array:
        return super().probabilities(outputs).mean(axis=-2)

    def log_probabilities(self, outputs: Array) -> Array:
        each = super().log_probabilities(outputs)
        top = each.max(axis=-2, keepdims=True)  # so that not every exp is 0
        xp = array_module(each)  # of the host
        return top[..., 0, :] + xp.log(xp.exp(each - top).mean(axis=-2))


class WideSequenceModel(SequenceModel):
    """y = (deep, wide): two answers that are trained together, with a loss for each.

    deep holds the logits of a `SequenceModel`, wide those of a `Wide`: a linear map of the tokens
    and of known pairs of neighbours. Probabilities are the mean of both: `MeanOfAnswers`. Cheng
    et al. (2016), "Wide & deep learning for recommender systems", add the logits instead; but then
    the encoder learns little once the wide part is sure.

    Parameters
    ----------
    config : EncoderConfig
    n_classes : int
    n_pairs : int
        How many pairs are known; `wide.learn` says which.
    **options
        Those of `SequenceModel`: token ids, softmax and one answer for a whole sequence.
    """

    def __init__(
        self, config: EncoderConfig, n_classes: int, *, n_pairs: int, **options: Any
    ) -> None:
        super().__init__(config, n_classes, **options)
        whole = isinstance(self.pool, Pooling) and not self.pool.per_token
        if self.vocab_size is None or not whole or not isinstance(self.loss, SoftmaxCrossEntropy):
            raise ValueError(
                "a wide part is given; expected token ids, one answer for a whole sequence, "
                "and output='softmax'. Use a SequenceClassifier"
            )
        self.loss = MeanOfAnswers()
        self.wide = Wide(self.vocab_size, n_pairs, n_classes, dtype=options.get("dtype", "float32"))
        self.flatten()

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `__init__` except the configuration and the seed."""
        return {**super().arguments(), "n_pairs": self.wide.n_pairs}

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        deep, deep_cache = super().forward(x, context)
        wide, wide_cache = self.wide.forward(x, context)
        y = array_module(deep).stack([deep, wide], axis=1)  # [batch, 2, n_classes]
        return y, (deep_cache, wide_cache)

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        deep_cache, wide_cache = cache
        self.wide.backward(dy[:, 1], wide_cache, gradients)
        return super().backward(dy[:, 0], deep_cache, gradients)
