"""Wrong dropouts."""

# ruff: noqa: D102, RET503 -- documented in Layer; one bug is a missing return

from typing import Any

from npformer import functional as F
from npformer.core import Array, Context, Gradients
from npformer.layers import Dropout


class DropoutThatRemembers(Dropout):
    """A dropout layer keeps its mask in itself, and is used twice in a block.

    Who: Anyone whose layers store their activations: it works until a layer is shared.
    Why: dx = dy m / (1 - p), but the mask m of the first use is overwritten by the second use.
    Cost: Gradients of the first use are computed with the wrong mask.
    Caught: Gradient checks in training, of two uses of the layer.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        y, self.mask = F.dropout(x, self.rate, context.dropout_generator())
        return y, None

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        return F.dropout_backward(dy, self.mask)


class DropoutThatScalesAtEvaluation(Dropout):
    """Dropout still scales by 1 / (1 - p) at evaluation.

    Who: Someone who moves the scaling from evaluation to training and forgets the old line.
    Why: E[m / (1 - p)] = 1 in training, so evaluation needs no scaling.
    Cost: The model that is evaluated is not the one that was trained.
    Caught: At evaluation dropout must return its input. No gradient check, because the backward
    pass scales too.
    """

    def forward(self, x: Array, context: Context) -> tuple[Array, Any]:
        if not context.training:
            scale = 1.0 / (1.0 - self.rate)
            return x * scale, scale
        return super().forward(x, context)


class DropoutWithoutAReturn(Dropout):
    """The backward pass of dropout returns nothing at evaluation.

    Who: Someone who writes `if training:` around the body and forgets the other case.
    Why: At evaluation y = x, so dx = dy.
    Cost: There is no gradient at evaluation, for example to explain a prediction.
    Caught: gradcheck at evaluation, because a backward pass must return a gradient.
    """

    def backward(self, dy: Array, cache: Any, gradients: Gradients) -> Array:
        if cache is not None:
            return dy * cache
