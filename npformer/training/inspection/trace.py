"""trace: what every layer computed, forward and backward, in the order of computation."""

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np

from npformer.core import (
    Array,
    Context,
    Gradients,
    Layer,
    a_type,
    asarray,
    backend_of,
    checks,
    describe,
    to_numpy,
)
from npformer.core.inputs import (
    Inputs,
    Sequences,
    arrays_of,
    check_inputs,
    inputs_of_arrays,
    user_arrays,
    within,
)
from npformer.core.support.tables import as_html, as_text
from npformer.models import InputEmbedding
from npformer.training.inspection.calls import BackwardCall, Call, shapes
from npformer.training.inspection.recorder import Recorder
from npformer.training.inspection.trace_table import NARROWEST, SIDES, trace_tables

__all__ = ["BackwardCall", "Call", "Trace", "prepare", "trace"]


class Trace(list[Call]):
    """The calls of one forward pass, and of the backward pass if there was one.

    It is the list of the forward calls. Printed, it is a table: mean and spread (the standard
    deviation) of each layer's output, without padding, and the bytes that it caches.

    Attributes
    ----------
    backward : list of BackwardCall
        In the order of computation; empty if `trace` got neither `dy` nor `labels`.
    gradients : Gradients or None
        Of the parameters, by name.
    loss : float or None
        In nats, if labels were given.
    """

    def __init__(
        self, calls: Iterable[Call], backward: Any = (), gradients: Any = None, loss: Any = None
    ) -> None:
        super().__init__(calls)
        self.backward: list[BackwardCall] = list(backward)
        self.gradients: Gradients | None = gradients
        self.loss: float | None = loss

    @property
    def bytes_cached(self) -> int:
        """What the whole pass keeps for the backward pass: each array once, and no weights."""
        return sum(call.bytes_cached for call in self)

    @property
    def gradient_norms(self) -> dict[str, float]:
        """The norm of each parameter's gradient, the root of the sum of squares, by name."""
        return {
            name: float(np.linalg.norm(to_numpy(gradient).astype("float64").reshape(-1)))
            for name, gradient in (self.gradients or {}).items()
        }

    def tables(self) -> list[tuple[str, list[tuple[str, ...]]]]:
        """Return the tables as they are printed: a title, and rows; the first is a head."""
        return trace_tables(self)

    def __str__(self) -> str:
        return as_text(self.tables(), self._notes(), SIDES, NARROWEST)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self.tables(), self._notes())

    def _notes(self) -> list[str]:
        loss = [] if self.loss is None else [f"loss {self.loss:.4f}"]
        cached = f"{self.bytes_cached:,} bytes cached: each array once, no weights"
        return [*loss, cached, "at evaluation: dropout is off"]


def trace(
    layer: Layer,
    x: Inputs,
    mask: Inputs = None,
    types: Inputs = None,
    *,
    dy: Any = None,
    labels: Array | None = None,
) -> Trace:
    """Run a layer once, at evaluation, and return the calls of every layer inside it.

    A layer comes before the layers inside it. Dropout is off. A copy is run, so other threads may
    use the layer meanwhile. `x` is on the layer's backend, but a model also takes host arrays.

    Parameters
    ----------
    layer : Layer
    x, mask, types : array
        As in `SequenceClassifier.__call__`. For a layer with two inputs, a tuple with an entry for
        each; an entry of `mask` or `types` may be None.
    dy : array, optional
        The gradient of a loss with respect to the output, of its shape: a backward pass starts
        from it. For a layer with several outputs, a tuple.
    labels : array, optional
        Instead of `dy`, for a `SequenceClassifier`: the backward pass starts from the gradient of
        the model's own loss. The shape is that of y in `loss_and_gradients`.

    Notes
    -----
    An error inside a layer passes through, with a note that names the layer.

    Examples
    --------
    >>> import numpy as np, npformer as nf
    >>> layer = nf.layers.Linear(3, 2, seed=0)
    >>> nf.trace(layer, np.ones((4, 3), dtype="float32")).bytes_cached
    48
    """
    checks.instance("layer", layer, Layer)
    if dy is not None and labels is not None:
        raise ValueError("dy and labels are both given; expected one of the two to start from")
    inputs = prepare(layer, x, mask, types)
    if labels is not None:
        labels = _targets(layer, labels, inputs)
    observed: Any = copy.deepcopy(layer)
    recorder = Recorder(observed)
    y, cache = observed.forward(*arrays_of(inputs), within(inputs, Context()))
    recorder.weigh(
        cache,
        [array for sequences in inputs for array in (sequences.x, sequences.mask, sequences.types)],
    )
    if dy is None and labels is None:
        return Trace(recorder.stop())
    loss = None
    if labels is None:
        dy = _check_gradient(dy, y)
    else:
        value, loss_cache = observed.loss.forward(y, labels)
        dy = observed.loss.backward(1.0, loss_cache)
        loss = float(value)
    gradients = Gradients(observed)
    observed.backward(dy, cache, gradients)
    return Trace(recorder.stop(), recorder.backward, gradients, loss)


def prepare(layer: Layer, x: Inputs, mask: Inputs, types: Inputs = None) -> tuple[Sequences, ...]:
    """Return checked inputs; for a model, uploaded and with padding set to 0."""
    inputs = inputs_of_arrays(layer, x, mask, types)
    embed = layer if isinstance(layer, InputEmbedding) else getattr(layer, "embed", None)
    if layer.n_inputs == 1 and isinstance(embed, InputEmbedding):
        return inputs_of_arrays(layer, *embed.prepare(x, mask, types))
    if hasattr(layer, "check") and hasattr(layer, "upload"):  # a Model
        checked = layer.check(x, mask=mask, types=types)
        uploaded = layer.upload(checked).inputs
        # so that each layer hides padding, as by hand
        return inputs_of_arrays(layer, *user_arrays(uploaded))
    return check_inputs(inputs)


def _targets(layer: Layer, labels: Array, inputs: tuple[Sequences, ...]) -> Array:
    """Return labels checked and uploaded, for a model that has a loss."""
    if not hasattr(layer, "loss") or not hasattr(layer, "batch"):
        raise TypeError(
            f"labels are given and layer is {a_type(layer)}; expected an "
            "npformer.Model, which has a loss, such as a SequenceClassifier. For other layers pass "
            "dy, the gradient to start from"
        )
    x, mask, types = user_arrays(inputs)
    return layer.batch(x, labels, mask, types).y


def _check_gradient(dy: Any, y: Any) -> Any:
    """Return the gradient to start from, after checking it against the output."""
    if not isinstance(y, tuple):
        dy = asarray(dy, backend_of(y=y).name) if isinstance(dy, np.ndarray) else dy
        checks.gradient(dy, tuple(y.shape))
        return dy
    if not isinstance(dy, tuple) or len(dy) != len(y):
        raise TypeError(
            f"dy is {describe(dy)}; expected a tuple of {len(y)}, a gradient for each output: "
            f"{shapes(y)}. Pass None for an output that the loss does not depend on"
        )
    return tuple(
        None if d is None or output is None else _check_gradient(d, output)
        for d, output in zip(dy, y, strict=True)
    )
