"""Central differences written only for these layers, so that gradcheck is not its own judge."""

import inspect
from copy import deepcopy

import numpy as np

import npformer as nf

WRONG = 1.5e-7
"""A relative error above this is a mistake."""

RIGHT = 1e-7
"""A relative error below this comes from the differences."""


def apply(target, arrays, options, gradients=None):
    """Run a forward pass; return y, and a function from dy to the gradients by name."""
    options = deepcopy(options)  # a wrong layer may change a mask
    if not isinstance(target, nf.Layer):
        forward, backward = target
        names = options.pop("wrt", None)
        known = list(inspect.signature(forward).parameters)
        names = names or [n for n, x in zip(known, arrays, strict=False) if x.dtype == float]
        y, cache = forward(*arrays, **options)

        def back(dy):
            found = backward(dy, cache)
            return dict(zip(names, found if isinstance(found, tuple) else (found,), strict=True))

        return y, back
    masks = options.get("mask")
    masks = masks if isinstance(masks, tuple) else (masks, None)
    given = {"mask": masks[0], "types": options.get("types")}
    if target.n_inputs == 2:
        given["memory_mask"] = masks[1]
    training = options.get("training", False)
    context = nf.Context(training, np.random.default_rng(5), **given)
    y, cache = target.forward(*arrays, context)

    def back(dy):
        sums = nf.Gradients(target) if gradients is None else gradients
        found = target.backward(dy, cache, sums)
        found = found if isinstance(found, tuple) else (found,)
        return {f"input {i}": dx for i, dx in enumerate(found)} | dict(sums)

    return y, back


def largest_error(case, setting):
    """Return the largest relative error of a backward pass, over inputs and parameters."""
    target, arrays = case.build(setting), setting.arrays()
    y, back = apply(target, arrays, setting.options)
    v = np.random.default_rng(7).normal(size=np.shape(y))
    try:
        gradients = back(v.copy() if v.ndim else float(v))
    except (IndexError, KeyError, ValueError):
        return np.inf

    def loss():
        return float((apply(target, arrays, setting.options)[0] * v).sum())

    if isinstance(target, nf.Layer):
        tensors = {f"input {i}": x for i, x in enumerate(arrays)} | dict(target.parameters())
    else:
        names = setting.options.get("wrt") or list(gradients)
        known = list(inspect.signature(target[0]).parameters)
        tensors = {n: arrays[known.index(n)] for n in names}
    errors = [0.0]
    for name, tensor in tensors.items():
        if tensor.dtype != float or not tensor.size:
            continue
        got, numeric = gradients[name], np.zeros(tensor.shape)
        got = np.zeros(tensor.shape) if got is None else got
        if np.shape(got) != tensor.shape:
            return np.inf
        for index in np.ndindex(*tensor.shape):
            numeric[index] = slope(loss, tensor, index, setting.step)
        size = max(abs(numeric).max(), setting.floor)
        error = abs(got - numeric).max() / size
        errors.append(np.inf if np.isnan(error) else error)
    return max(errors)


def slope(loss, tensor, index, step):
    """Return the derivative with respect to one entry, to fourth order."""
    before = tensor[index]
    values = []
    for k in (1, -1, 2, -2):
        tensor[index] = before + k * step
        values.append(loss())
    tensor[index] = before
    return (8.0 * (values[0] - values[1]) - (values[2] - values[3])) / (12.0 * step)


def complex_disagrees(case):
    """Whether the complex step, exact enough for small mistakes, is more than 1e-9 from dx."""
    layer, (x,) = case.build(), case.given.arrays()
    y, back = apply(layer, [x], {})
    v = np.random.default_rng(7).normal(size=y.shape)
    got, numeric = back(v.copy())["input 0"], np.zeros(x.shape)
    for index in np.ndindex(*x.shape):
        z = x.astype(complex)
        z[index] += 1e-30j
        numeric[index] = (layer.forward(z, nf.Context())[0] * v).sum().imag / 1e-30
    return abs(got - numeric).max() > 1e-9 * abs(numeric).max()


def between_the_slopes(case):
    """Whether dx lies between the slopes at both sides of a corner, along entries and 1, .., 1."""
    layer, (x,) = case.build(), case.given.arrays()
    y, back = apply(layer, [x], {})
    dx = back(np.ones_like(y))["input 0"]
    along = [np.ones(x.shape), *np.eye(x.size).reshape(-1, *x.shape)]
    for u in along:
        slopes = [(layer.forward(x + h * u, nf.Context())[0] - y).sum() / h for h in (1e-6, -1e-6)]
        if not min(slopes) - 1e-6 < (dx * u).sum() < max(slopes) + 1e-6:
            return False
    return True


def is_wrong(case, setting=None):
    """Return whether the mistake shows, either anywhere or with these inputs."""
    if callable(case.shows):
        return bool(case.shows(case))
    with np.errstate(all="ignore"):
        return bool(largest_error(case, setting or case.shows) > WRONG)


def reached(case):
    """Return whether the mistake shows with the inputs of the author's check."""
    return not case.elsewhere and is_wrong(case, case.given)


def is_right(case):
    """Return whether a right layer is indeed right."""
    if callable(case.shows):
        return bool(case.shows(case))
    return largest_error(case, case.given) < RIGHT
