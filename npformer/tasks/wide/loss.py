"""TwoAnswers: the loss of a model with a wide part, which answers twice."""

from typing import Any

from npformer import functional as F
from npformer.core import Array, array_module, checks
from npformer.models.losses import Classification, SoftmaxCrossEntropy


class TwoAnswers(Classification):
    """The loss of a model with a wide part, whose outputs are (batch, 2, n_classes): deep, wide.

    It is the mean of two losses, so each answer learns as if it were alone. That of deep is the
    softmax cross-entropy. That of wide is the mean of one binary cross-entropy for each class
    against all others (Rifkin & Klautau, 2004, "In defense of one-vs-all classification"): here,
    linear maps of words that are trained in this way are right more often. It is not their sum,
    whose gradient would have most of the norm that `clip_norm` limits. The probabilities are the
    softmax of the mean of both logits, a product of experts (Hinton, 2002).
    """

    def answer_shape(self, n_classes: int) -> tuple[int, ...]:
        return 2, n_classes

    def forward(self, outputs: Array, y: Array, weights: Array | None = None) -> tuple[Array, Any]:
        checks.shape("outputs", outputs, ("batch", 2, "n_classes"), "Two answers to each sample")
        deep, wide = outputs[:, 0], outputs[:, 1]
        xp, n_classes, classes = array_module(outputs), wide.shape[1], self.class_weights(outputs)
        smoothing = self.label_smoothing
        of_deep, deep_cache = F.softmax_cross_entropy(deep, y, smoothing, weights, classes)
        targets = (y[:, None] == xp.arange(n_classes)).astype(wide.dtype)  # [batch, n_classes]
        targets = targets * (1.0 - smoothing) + smoothing / n_classes
        if classes is not None:
            weights = classes[y] if weights is None else classes[y] * weights
        if weights is not None:
            weights = weights[:, None].repeat(n_classes, axis=1)
        of_wide, wide_cache = F.binary_cross_entropy_with_logits(wide, targets, weights)
        return 0.5 * (of_deep + of_wide), (deep_cache, wide_cache)

    def backward(self, dloss: float, cache: Any) -> Array:
        deep_cache, wide_cache = cache
        # loss = (of_deep + of_wide) / 2
        ddeep = F.softmax_cross_entropy_backward(0.5 * dloss, deep_cache)
        dwide = F.binary_cross_entropy_with_logits_backward(0.5 * dloss, wide_cache)
        return array_module(ddeep).stack([ddeep, dwide], axis=1)

    def probabilities(self, outputs: Array) -> Array:
        return SoftmaxCrossEntropy().probabilities(outputs.mean(axis=-2))

    def log_probabilities(self, outputs: Array) -> Array:
        return SoftmaxCrossEntropy().log_probabilities(outputs.mean(axis=-2))
