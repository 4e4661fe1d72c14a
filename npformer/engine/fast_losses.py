"""Fast losses: softmax cross-entropy by a kernel."""

from typing import Any

from npformer.core import Array, is_host_array
from npformer.core.dispatch import enabled
from npformer.engine.context import EngineContext
from npformer.engine.kernel_tables import kernels_of
from npformer.engine.trusted_kernels import is_trusted
from npformer.engine.twin_classes import FLOATS, Saved, has_own_pass
from npformer.models.losses import Loss, SoftmaxCrossEntropy

FEW = 1 << 14
"""Below this many logits, as in most classifiers, the plain pair is as fast on a CPU."""


class FastSoftmaxCrossEntropy(SoftmaxCrossEntropy):
    """`SoftmaxCrossEntropy` by a kernel."""

    def __init__(self, kernel: Any, label_smoothing: float, context: EngineContext) -> None:
        super().__init__(label_smoothing)
        self._kernel = kernel
        self._context = context

    def forward(self, outputs: Array, y: Array, weights: Array | None = None) -> tuple[Array, Any]:
        on_host, char = is_host_array(outputs), outputs.dtype.char
        is_small = on_host and outputs.size < FEW
        if is_small or char not in FLOATS or weights is not None:
            return super().forward(outputs, y, weights)
        if not on_host and not is_trusted("softmax_cross_entropy", char):
            return super().forward(outputs, y, weights)
        value, cache = self._kernel[0](outputs, y, self.label_smoothing, context=self._context)
        return value, Saved(self._kernel[1], cache)

    def backward(self, dloss: float, cache: Any) -> Array:
        if type(cache) is not Saved:
            return super().backward(dloss, cache)
        doutputs: Array = cache.backward(dloss, cache.cache)
        return doutputs


def fast_loss(loss: Loss, backend: str, context: EngineContext) -> Loss:
    """Return the fast version of a loss; the loss itself if there is none.

    The kernel takes memory and threads from `context`.
    """
    if type(loss) is not SoftmaxCrossEntropy or has_own_pass(loss):
        return loss
    if loss.class_weight is not None or not enabled():
        return loss
    kernel = (kernels_of(backend) or {}).get("softmax_cross_entropy")
    if kernel is None:
        return loss
    return FastSoftmaxCrossEntropy(kernel, loss.label_smoothing, context)
