"""A sequence model with a second answer, from words and pairs alone, and the one to train."""

from __future__ import annotations

from typing import Any

from npformer.core import Array, Context, Gradients, a_type, array_module
from npformer.engine.twin_classes import TABLE, FirstChild
from npformer.layers import Pooling
from npformer.models import EncoderConfig, SequenceModel
from npformer.models.losses import Loss, SoftmaxCrossEntropy
from npformer.models.trainable import SequenceClassifier
from npformer.tasks.wide.layer import Wide
from npformer.tasks.wide.loss import TwoAnswers
from npformer.training.storage.models import MODELS


class WideSequenceModel(SequenceModel):
    """y = (deep, wide): two answers that are trained together, with a loss for each.

    deep holds the logits of a `SequenceModel`, wide those of a `Wide`: a linear map of the tokens
    and of known pairs of neighbours. `TwoAnswers` says how they become one. Cheng et al. (2016),
    "Wide & deep learning for recommender systems", train the sum of both logits with one loss; but
    then the encoder learns little once the wide part is sure.

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
        self.loss = TwoAnswers()
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


class WideSequenceClassifier(SequenceClassifier, WideSequenceModel):
    """A `SequenceClassifier` of token ids, with a second answer from words and pairs of words.

    Parameters
    ----------
    config : EncoderConfig
    n_classes : int
    n_pairs : int
        See `WideSequenceModel`.
    **options
        Of `SequenceClassifier`.
    """

    def loss_with(self, loss: Loss | None = None, label_smoothing: float = 0.0) -> Loss:
        """Return the loss to train on, which must be one of two answers."""
        if isinstance(loss, Loss) and not isinstance(loss, TwoAnswers):
            raise ValueError(
                f"{a_type(loss)} is of one answer to each sample, and this model gives "
                "two; expected no loss (label_smoothing and class_weight do without one), an "
                "npformer.tasks.wide.TwoAnswers, or a model with one answer: "
                "TextClassifier(wide=False)"
            )
        return super().loss_with(loss, label_smoothing)


TABLE.add_container(
    WideSequenceModel, "embed", "encoder", "pool", "classify", "wide", embed=FirstChild()
)
MODELS["WideSequenceClassifier"] = WideSequenceClassifier
