"""The global norm of gradients, clipping by it, and an error for gradients that are not finite."""

import math
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from npformer.core import Array, Parameters, array_module, backend_of, checks
from npformer.core.dispatch import faster
from npformer.core.gradients import flat_of


class NonFiniteGradientError(ArithmeticError):
    """A gradient is NaN or infinite, or too large to be squared. Nothing was changed.

    Attributes
    ----------
    parameter : str
        The first parameter that has such a gradient.
    """

    def __init__(self, message: str, parameter: str = "") -> None:
        super().__init__(message)
        self.parameter = parameter


def non_finite_gradient(name: str, g: np.ndarray, what: str) -> NonFiniteGradientError:
    """Return the error for a gradient; `what` overflows if the gradient itself is finite."""
    if np.isfinite(g).all():
        problem = f"reaches {np.abs(g).max():.3g}: {what} is more than {g.dtype} can hold"
    else:
        problem = f"holds {'NaN' if np.isnan(g).any() else 'infinity'}"
    return NonFiniteGradientError(
        f"the gradient of {name} {problem}; expected moderate numbers, and nothing was changed. "
        "Use a smaller learning rate or a warm-up, and look for NaN or huge numbers in data and "
        "weights: npformer.trace(model, x) shows where they begin",
        name,
    )


def global_norm(gradients: Mapping[str, Array]) -> Array:
    """Return the square root of the sum of all squares, as an array with no axes.

    It neither overflows nor vanishes where the squares would. It is NaN or infinite if a gradient
    is.
    """
    return norm_together(_arrays(gradients))


def clip_by_global_norm(gradients: Mapping[str, Array], max_norm: float) -> Array:
    """Scale all gradients, in place, so that their global norm is at most `max_norm`.

    The direction does not change (Pascanu et al., 2013). Returns the norm before clipping, an array
    with no axes. If it is not finite, this raises NonFiniteGradientError and changes nothing.

    On a GPU nothing waits for the norm: if it is not finite, all gradients become NaN instead.
    """
    max_norm = checks.number("max_norm", max_norm, above=0.0)
    if isinstance(gradients, Parameters):  # as elsewhere, where parameters hold their gradients
        raise TypeError("gradients is Parameters; expected what model.loss_and_gradients returns")
    arrays = _arrays(gradients)
    check_writable("the gradient of", zip(gradients, arrays, strict=False))
    if flat_of(gradients) is not None:
        fast_clip = faster(clip_by_global_norm, arrays[0])
        if fast_clip is not None:
            return fast_clip(arrays[0], max_norm)
    norm = norm_together(arrays)
    if is_on_host(norm) and not norm < math.inf:
        raise largest(gradients)[1]
    factor = clipping_factor(norm, max_norm)
    for array in arrays:
        array *= factor
    return norm


def largest(gradients: Mapping[str, Array]) -> tuple[float, NonFiniteGradientError]:
    """Return how large gradients are, infinity if one is NaN, and the error for the largest."""
    # NaN is not less than infinity, which comes first.
    sizes = {
        name: min(math.inf, float(np.abs(g).max(initial=0.0))) for name, g in gradients.items()
    }
    name = max(sizes, key=lambda name: sizes[name], default="")
    if not name:
        return 0.0, NonFiniteGradientError("this rank has no gradients")
    return sizes[name], non_finite_gradient(name, gradients[name], "the norm of all gradients")


def clipping_factor(norm: Array, max_norm: float) -> Array:
    """Return what gradients are multiplied by; NaN if their norm is not finite."""
    xp = array_module(norm)
    # The small number, which is PyTorch's, keeps the factor finite for a norm of 0.
    factor = xp.minimum(float(max_norm) / (norm + 1e-6), 1.0)
    return xp.where(norm < math.inf, factor, math.nan)


def norm_together(arrays: list[Array]) -> Array:
    """Return the global norm of arrays, as `global_norm` says."""
    filled = [array for array in arrays if array.size]
    if not filled:
        return arrays[0].sum()
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if is_on_host(filled[0]):
            total = sum((array * array).sum() for array in filled)
            info = np.finfo(total.dtype)
            # Far above the smallest number, so that no square that matters was rounded to 0.
            if info.tiny / info.eps**2 < total < math.inf:
                return np.sqrt(total)
        return norm_after_scaling(filled)  # always on a GPU, because looking at the sum would wait


def norm_after_scaling(arrays: list[Array]) -> Array:
    """Return the global norm of arrays, divided by the largest entry before they are squared."""
    xp = array_module(arrays[0])
    maximum = reduce(xp.maximum, [xp.abs(array).max() for array in arrays])
    has_scale = (maximum > 0.0) & (maximum < math.inf)
    # A power of 2 rounds nothing.
    _, exponent = xp.frexp(xp.where(has_scale, maximum, 1.0))
    scale = xp.ldexp(xp.ones_like(maximum), exponent - 1)
    return scale * xp.sqrt(sum(((array / scale) ** 2).sum() for array in arrays))


def is_on_host(x: Array) -> bool:
    """Return whether an array is NumPy's, so that looking at it does not wait."""
    return isinstance(x, np.ndarray | np.generic)


def _arrays(gradients: Mapping[str, Array]) -> list[Array]:
    """Return the flat buffer of gradients, or else each array, after checking them."""
    flat = flat_of(gradients)
    if flat is not None:
        return [flat]
    check_gradients(gradients)
    return list(gradients.values())


def check_gradients(gradients: object) -> None:
    """Check ``gradients`` with `check_arrays`."""
    advice = "Pass what loss_and_gradients returns: arrays by name"
    check_arrays("the gradient of", "gradients", gradients, advice)


def check_arrays(entry: str, mapping: str, named: Any, advice: str) -> None:
    """Check that a mapping has arrays of float32 or float64, on one backend.

    `mapping` is what the user calls it, and `entry` comes before the name of an array in errors.
    """
    checks.instance(mapping, named, Mapping, advice)
    if not named:
        raise ValueError(f"{mapping} is empty; expected at least one array")
    described = {f"{entry} {name}": array for name, array in named.items()}
    for name, array in described.items():
        checks.floating(**{name: array})
        if isinstance(array, np.generic):
            raise TypeError(f"{name} is a NumPy number, {array!r}; expected an array")
    backend_of(**described)


def check_writable(what: str, named: Iterable[tuple[str, Array]]) -> None:
    """Check that arrays may be changed in place."""
    for name, array in named:
        if not getattr(array.flags, "writeable", True):
            message = "is read-only; expected an array to change in place. Pass a copy"
            raise ValueError(f"{what} {name} {message}")
