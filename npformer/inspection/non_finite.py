"""The search for the first NaN or infinity."""

from __future__ import annotations

from npformer.core import Array, Layer, array_module
from npformer.engine import fast
from npformer.inspection.trace import Call, prepared, trace


def first_non_finite(layer: Layer, x: Array, mask: Array | None = None) -> str | None:
    """Return the name of the first tensor that holds NaN or infinity; None if there is none.

    Looks at the input, then at the parameters, then at each layer's output in the order in which
    they are computed.

    Parameters
    ----------
    layer : Layer
    x : array
        On the layer's backend.
    mask : bool array, shape (batch, length), optional
    """
    x, mask, _ = prepared(layer, x, mask)
    if x.dtype.kind == "f" and not _finite(x):
        return "the input x"
    if (parameter := non_finite_parameter(layer)) is not None:
        return parameter
    # Inner layers end before outer ones begin to be wrong: the innermost first wrong one is meant.
    calls = trace(layer, x, mask)
    wrong = [call for call in calls if not all(_finite(y) for y in call.outputs())]
    for i, call in enumerate(wrong):
        if _is_innermost(call, wrong[i + 1 : i + 2]):
            return f"the output of {call.name} ({type(call.layer).__name__})"
    return _non_finite_twin(layer, calls)


def _is_innermost(call: Call, next_one: list[Call]) -> bool:
    """Return whether a call is not the one around the call that comes next."""
    return not next_one or not next_one[0].name.startswith(f"{call.name}." if call.name else "")


def _non_finite_twin(model: Layer, calls: list[Call]) -> str | None:
    """Return the name of the first layer whose twin gives what the layer itself does not."""
    layers, wrong = dict(model.layers()), []
    for call in calls:
        layer = layers[call.name]
        twin = fast(layer)
        if twin is not layer:
            y, _ = twin.forward(call.input, call.context)
            parts = y if isinstance(y, tuple) else (y,)
            if not all(part is None or _finite(part) for part in parts):
                wrong.append(call)
    for i, call in enumerate(wrong):
        if _is_innermost(call, wrong[i + 1 : i + 2]):
            return (
                f"the output of {call.name} ({type(call.layer).__name__}), of the engine alone: as "
                "written, the layer gives finite numbers. Train inside "
                "`with npformer.use_kernels(False):`, and report it"
            )
    return None


def non_finite_parameter(layer: Layer) -> str | None:
    """Return the name of the first parameter that holds NaN or infinity; None if there is none.

    Parameters
    ----------
    layer : Layer
    """
    parameters = layer.parameters()
    if parameters.flat is not None and _finite(parameters.flat):  # on a GPU each look waits
        return None
    for name, array in parameters.items():
        if not _finite(array):
            return f"parameter {name}"
    return None


def _finite(x: Array) -> bool:
    return bool(array_module(x).isfinite(x).all())
