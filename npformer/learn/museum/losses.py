"""Wrong losses: pairs (forward, backward) of softmax cross entropy."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.core import Array
from npformer.learn.museum.table import GRADIENT, pair
from npformer.proof.cases.case import draw

LABELS = np.array([[0, 2, 3], [1, 1, 0]])
"""The right classes of two sequences of three tokens."""

LOGITS = draw(*LABELS.shape, 4)

SURE_OF_A_MISTAKE = LOGITS.copy()
SURE_OF_A_MISTAKE[1, 2, LABELS[1, 2]] -= 30.0
"""The last token's right class has a probability near 1e-13."""

EQUAL_LOGITS = np.round(LOGITS)
"""Some classes of a token have equal logits."""


@pair(F.softmax_cross_entropy, SURE_OF_A_MISTAKE, LABELS)(
    27, *GRADIENT, "a_sure_mistake_costs_what_its_logits_differ_by", "gradient_of_cross_entropy"
)
def cross_entropy_with_an_epsilon(logits: Array, labels: Array) -> tuple[Array, Any]:
    """The loss is -log(p + eps), and its gradient is the one of -log p.

    Who: 14 of 26 public hand-written NumPy Transformers.
    Why: The derivative of -log(p + eps) is that of -log p times p / (p + eps). Where p is much
    smaller than eps, the loss is constant at -log eps, and its derivative is 0.
    Cost: A sure mistake seems to cost 18 at most, for an eps of 1e-8. Training is as it should be:
    the gradient is right, and the loss is not.
    Caught: Gradient checks with a sure mistake among the predictions. At ordinary logits central
    differences agree, and the complex step alone tells 1e-8 from 0. Comparing the loss of a sure
    mistake with its logits.
    """
    p, _ = F.softmax(logits)
    p_right = np.take_along_axis(p, labels[..., None], axis=-1)
    _, cache = F.softmax_cross_entropy(logits, labels)
    return -np.log(p_right + 1e-8).mean(), cache


@pair(F.softmax_cross_entropy, LOGITS, LABELS)(
    28, *GRADIENT, "a_loss_and_its_gradient_share_a_count", "a_gradient_is_p_minus_target"
)
def cross_entropy_divided_by_the_batch(logits: Array, labels: Array) -> tuple[Array, Any]:
    """The loss is averaged over all tokens, and its gradient over sequences.

    Who: 6 of 26 public hand-written NumPy Transformers average the two over different counts.
    Why: For n labels, the loss is sum_i loss_i / n, so each row of its gradient is (p - target) / n
    with the same n.
    Cost: The gradient is as many times too large as a sequence has tokens. Adam hides it, SGD and
    clipping do not, and with padding the factor differs from batch to batch.
    Caught: Gradient checks with three axes. With two, one row for each sample, both counts are the
    same.
    """
    return F.softmax_cross_entropy(logits, labels)


def cross_entropy_divided_by_the_batch_backward(dloss: Any, cache: Any) -> Array:
    """Gradient of cross entropy, averaged over the first axis alone."""
    log_p, right, *_ = cache
    is_right = right[..., None] == np.arange(log_p.shape[-1])
    return dloss * (np.exp(log_p) - is_right) / len(log_p)


@pair(F.softmax_cross_entropy, EQUAL_LOGITS, LABELS)(
    35, *GRADIENT, "a_gradient_is_p_minus_target", "gradient_of_cross_entropy"
)
def cross_entropy_that_looks_for_its_target(logits: Array, labels: Array) -> tuple[Array, Any]:
    """The backward pass finds the right class by the value of its probability.

    Who: 3 of 26 public hand-written NumPy Transformers find a target, or an axis, by its value or
    its size.
    Why: The gradient of a row is p - target, where target is 1 at the label alone. Several classes
    may have the label's probability: all of them, if a model begins with an output of 0.
    Cost: At the start each class is the right one, so that the rows of the gradient do not sum to
    0. Later it is right, but for ties.
    Caught: Gradient checks where some logits are equal. No gradient check at drawn numbers.
    """
    return F.softmax_cross_entropy(logits, labels)


def cross_entropy_that_looks_for_its_target_backward(dloss: Any, cache: Any) -> Array:
    """Gradient of cross entropy, which takes equal probabilities for that of the label."""
    log_p, right, _, n_labels, _ = cache
    log_p_right = np.take_along_axis(log_p, right[..., None], axis=-1)
    return dloss * (np.exp(log_p) - (log_p == log_p_right)) / n_labels
