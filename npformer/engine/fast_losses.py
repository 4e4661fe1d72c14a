"""Fast losses: softmax cross-entropy by two kernels on a GPU."""

from typing import Any

from npformer.core import Array
from npformer.engine.switch import enabled
from npformer.engine.twin_classes import FLOATS, Saved
from npformer.engine.twins import kernels_of
from npformer.losses import Loss, SoftmaxCrossEntropy


class FastSoftmaxCrossEntropy(SoftmaxCrossEntropy):
    """`SoftmaxCrossEntropy` by a kernel."""

    def __init__(self, kernel: Any, label_smoothing: float) -> None:
        super().__init__(label_smoothing)
        self._kernel = kernel

    def forward(self, outputs: Array, y: Array, weights: Array | None = None) -> tuple[Array, Any]:
        if outputs.dtype.char not in FLOATS or weights is not None:
            return super().forward(outputs, y, weights)
        value, cache = self._kernel[0](outputs, y, self.label_smoothing, context=None)
        return value, Saved(self._kernel[1], cache)

    def backward(self, dloss: float, cache: Any) -> Array:
        if type(cache) is not Saved:
            return super().backward(dloss, cache)
        doutputs: Array = cache.backward(dloss, cache.cache)
        return doutputs


def fast_loss(loss: Loss, backend: str) -> Loss:
    """Return a loss that computes the same fast; the loss itself if there is none."""
    if type(loss) is not SoftmaxCrossEntropy or loss.class_weight is not None or not enabled():
        return loss
    kernel = (kernels_of(backend) or {}).get("softmax_cross_entropy")
    return loss if kernel is None else FastSoftmaxCrossEntropy(kernel, loss.label_smoothing)
