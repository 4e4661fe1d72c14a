"""The search for the first tensor that holds NaN or infinity."""

from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np

from npformer.core import Array, Layer, Parameters, array_module
from npformer.core.inputs import Inputs, names_of, user_arrays
from npformer.engine import fast
from npformer.training.inspection.calls import Call, who
from npformer.training.inspection.trace import prepare, trace

LOSS_ITSELF = "the loss itself (every layer's output is finite at evaluation)"
"""Named in place of a tensor if all tensors are finite."""


def first_non_finite(
    layer: Layer, x: Inputs, mask: Inputs = None, types: Inputs = None
) -> str | None:
    """Return the name of the first tensor that holds NaN or infinity; None if there is none.

    It looks at the input, then at the parameters, then at each layer's output in the order of
    computation. The arguments are those of `trace`.
    """
    inputs = prepare(layer, x, mask, types)
    for name, sequences in zip(names_of(inputs), inputs, strict=True):
        if sequences.x.dtype.kind == "f" and not _finite(sequences.x):
            return f"the input {name}"
    if (parameter := non_finite_parameter(layer)) is not None:
        return parameter
    calls = trace(layer, *user_arrays(inputs))
    if problem := _first_non_finite_output(calls):
        return problem
    layers, of_twins = dict(layer.layers()), []
    for call in calls:
        plain = layers[call.name]
        twin: Any = fast(plain)
        if twin is not plain:
            y, _ = twin.forward(*call.inputs(), call.context)
            of_twins.append(replace(call, output=y))
    if problem := _first_non_finite_output(of_twins):
        return (
            f"{problem}, computed by the engine only: the plain layer gives finite numbers. Train "
            "inside `with npformer.use_kernels(False):`, and report this bug"
        )
    return None


def non_finite_tensor(model: Layer, samples: Any) -> str:
    """Return the name of the first tensor with NaN or infinity when a model evaluates samples."""
    batches = [slice(start, start + 256) for start in range(0, len(samples), 256)]
    for batch in batches:
        inputs = samples.select(batch).inputs
        for name, sequences in zip(names_of(inputs), inputs, strict=True):
            # padding may hold NaN
            values = sequences.x if sequences.padding is None else sequences.x[sequences.mask]
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                return f"the input {name}"
    with np.errstate(all="ignore"):
        for batch in batches:
            if problem := first_non_finite(model, *user_arrays(samples.select(batch).inputs)):
                return problem
    return LOSS_ITSELF


def _first_non_finite_output(calls: list[Call]) -> str | None:
    """Return the first layer with a non-finite output whose inner layers have finite outputs."""
    wrong = [call for call in calls if not all(map(_finite, call.outputs()))]
    for call, following in zip_longest(wrong, wrong[1:]):
        inside = f"{call.name}." if call.name else ""
        if following is None or not following.name.startswith(inside):
            return f"the output of {who(call)}"
    return None


def non_finite_parameter(layer: Layer) -> str | None:
    """Return the name of the first parameter that holds NaN or infinity; None if there is none."""
    for parameters in (layer.parameters(), Parameters(layer.frozen())):
        if parameters.flat is not None and _finite(parameters.flat):  # each look waits for a GPU
            continue
        for name, array in parameters.items():
            if not _finite(array):
                return f"parameter {name}"
    return None


def _finite(x: Array) -> bool:
    return bool(array_module(x).isfinite(x).all())
