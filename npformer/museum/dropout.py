"""Wrong dropouts."""

# ruff: noqa: D102, RET503 -- documented in Layer; one of the bugs is a missing return

from __future__ import annotations

from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients, Layer
from npformer.layers import Dropout, Sequential, Tanh


def twice(dropout: Layer) -> Sequential:
    """Return a chain in which one layer stands at two places, a tanh between them.

    Parameters
    ----------
    dropout : Layer
    """
    return Sequential(dropout, Tanh(), dropout)


class DropoutThatRemembers(Dropout):
    """A dropout keeps its mask in itself, and one dropout stands at two places of a block.

    Parameters
    ----------
    rate
        As in `Dropout`.

    Notes
    -----
    Who: Anyone who writes layers that remember their activations: it works until one is shared.

    Why: dx = dy m / (1 - p) with the mask m of *that* use. The second use has overwritten it.

    Cost: Gradients of the first use are those of other random numbers.

    Caught: By differences and by the complex step, where it is used twice and is training:
    `gradient_of_one_dropout_used_twice`.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        y, self.mask = F.dropout(x, self.rate, context.draws())
        return y, None

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return F.dropout_backward(dy, self.mask)


class DropoutThatScalesAtEvaluation(Dropout):
    """Dropout still scales by 1 / (1 - p) at evaluation.

    Parameters
    ----------
    rate
        As in `Dropout`.

    Notes
    -----
    Who: Someone who moves the scale from evaluation to training and leaves it at both.

    Why: E[m / (1 - p)] = 1 while training, so nothing is left to be scaled at evaluation.

    Cost: The model that is evaluated is not the one that was trained.

    Caught: By no gradient check, for the backward pass scales too, but by what evaluation must be:
    `dropout_does_nothing_at_evaluation`.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        if not context.training:
            scale = 1.0 / (1.0 - self.rate)
            return x * scale, scale
        return super().forward(x, context)


class DropoutWithoutAReturn(Dropout):
    """The backward pass of dropout returns nothing at evaluation.

    Parameters
    ----------
    rate
        As in `Dropout`.

    Notes
    -----
    Who: Someone who writes `if training:` around the body and forgets the other way out.

    Why: At evaluation y = x, so dx = dy.

    Cost: At evaluation, as for the saliency of an input, there is no gradient.

    Caught: By a rule of the protocol, at evaluation: who has an input returns its gradient.
    `gradient_of_dropout_at_evaluation`.
    """

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        scaled = cache
        if scaled is not None:
            return dy * scaled
