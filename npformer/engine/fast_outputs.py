"""The last map of a language model together with its loss, without an array of all logits."""

from typing import Any

from npformer.core import Array, Context, Gradients, Parameter, value_of
from npformer.core.dispatch import enabled
from npformer.engine.context import EngineContext
from npformer.engine.twin_classes import FLOATS, Fast, has_own_pass, is_exactly
from npformer.layers import Linear, TiedOutput
from npformer.models import MaskedTokens, NextToken, Transformer
from npformer.models.batch import Batch
from npformer.models.losses import SoftmaxCrossEntropy

LARGE = 1 << 22
"""From this many logits on, a block of rows is computed at a time; fewer need little memory."""

MODELS = (MaskedTokens, NextToken, Transformer)
"""Models whose forward pass ends with the map `output`."""


def computes_by_rows(twin: Any, loss: Any, batch: Batch) -> bool:
    """Return whether `accumulate_by_rows` can take the place of `accumulate`, and is worthwhile.

    The last map and the loss run only there: both must be exactly what their classes say.
    """
    if not (enabled() and isinstance(twin, Fast) and isinstance(twin, MODELS)):
        return False
    output = twin.__dict__["output"]
    is_map = is_exactly(output, Linear) or is_exactly(output, TiedOutput)
    is_loss = type(loss) is SoftmaxCrossEntropy and not has_own_pass(loss)
    if not (is_map and is_loss and loss.class_weight is None and batch.weights is None):
        return False
    (labels,) = batch.targets()
    n_logits = labels.size * output.weight.shape[0 if type(output) is TiedOutput else 1]
    return output.weight.dtype.char in FLOATS and n_logits >= LARGE


class Unchanged:
    """Takes the place of a model's last map; its outputs are its inputs."""

    def forward(self, x: Array, context: Context) -> tuple[Array, None]:
        """Return x."""
        return x, None

    def backward(self, dy: Array, cache: None, gradients: Gradients) -> Array:
        """Return dy."""
        return dy


class UpToOutput:
    """A model without its last map: the model's own passes, which end with features."""

    output = Unchanged()

    def __init__(self, twin: Any) -> None:
        self.twin = twin

    def __getattr__(self, name: str) -> Any:
        return getattr(self.twin, name)

    def forward(self, *arguments: Any) -> tuple[Array, Any]:
        """Return the inputs of the last map, and what `backward` needs."""
        return type(self.twin).forward(self, *arguments)  # type: ignore[no-any-return]

    def backward(self, dfeatures: Array, cache: Any, gradients: Gradients) -> None:
        """Add the gradients of the parameters below the last map."""
        type(self.twin).backward(self, dfeatures, cache, gradients)


def accumulate_by_rows(
    twin: Any,
    loss: SoftmaxCrossEntropy,
    batch: Batch,
    context: EngineContext,
    gradients: Gradients,
    weight: float,
) -> Any:
    """Do what `models.accumulate` does, with a block of rows of logits at a time."""
    from npformer.engine.cpu.linear_cross_entropy import linear_cross_entropy  # loads numba

    model, output = UpToOutput(twin), twin.__dict__["output"]
    features, cache = model.forward(*batch.arrays(), batch.within(context))
    (labels,) = batch.targets()
    W, dW = output.weight.value, gradient_of(output.weight, gradients)
    if type(output) is TiedOutput:
        W, dW = W.T, None if dW is None else dW.T
    mean_loss, dfeatures = linear_cross_entropy(
        features,
        W,
        value_of(output.bias),
        labels,
        loss.label_smoothing,
        weight,
        dW,
        gradient_of(output.bias, gradients),
        context=context,
    )
    model.backward(dfeatures, cache, gradients)
    return mean_loss * weight


def gradient_of(parameter: Parameter | None, gradients: Gradients) -> Array | None:
    """Return the sum of a parameter's gradients, to add to; None if it is not trained."""
    if parameter is None or not parameter.trainable:
        return None
    return gradients.of(parameter)
