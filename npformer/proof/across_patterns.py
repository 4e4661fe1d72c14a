"""Errors that several tensors show together: swapped gradients, and residuals left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from npformer.proof.evidence import Pattern, WrongGradient

Pairs = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""The analytic and the numeric gradient of each tensor, by name."""

FEW = 3
"""A tensor with fewer entries may resemble another one by chance."""


def find_across(wrong: WrongGradient, pairs: Pairs) -> Pattern | None:
    """Find another tensor whose gradient this is, or whose gradient is the error."""
    if wrong.comparable.sum() < FEW:
        return None
    return _find_other_gradient(wrong, pairs) or _find_residual_behind(wrong, pairs)


def _others(wrong: WrongGradient, pairs: Pairs) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield the name and both gradients of each other tensor of the same shape."""
    for name, (analytic, numeric) in pairs.items():
        if name != wrong.name and numeric.shape == wrong.numeric.shape:
            yield name, analytic, numeric


def _find_other_gradient(wrong: WrongGradient, pairs: Pairs) -> Pattern | None:
    for name, analytic, numeric in _others(wrong, pairs):
        if not wrong.explains(numeric):
            continue
        of_other = WrongGradient(name, analytic, numeric, wrong.evidence)
        swapped = of_other.explains(wrong.numeric)
        what = "the two are swapped" if swapped else f"{name} has it, too"
        return Pattern("swapped", f"it is the gradient of {name}; {what}")
    return None


def _find_residual_behind(wrong: WrongGradient, pairs: Pairs) -> Pattern | None:
    """Find a tensor whose gradient is missing, or is there too much.

    In h = h + b1 and y = h + f(h) + b2, the gradient of b1 is that of b2 plus what comes back
    through f. Without the residual connection, that of b2 is missing.
    """
    for name, analytic, numeric in _others(wrong, pairs):
        if analytic is not numeric or not np.any(numeric):  # a wrong one explains nothing
            continue
        if wrong.explains(wrong.numeric - numeric):
            words = (
                f"the gradient of {name} is missing from it, as if a residual connection around "
                "what lies between the two had been left out"
            )
            return Pattern("residual missing", words)
        if wrong.explains(wrong.numeric + numeric):
            words = (
                f"the gradient of {name} is added to it: that of a residual connection goes "
                "through what it goes around, or there is no such connection"
            )
            return Pattern("residual through", words)
    return None


def locate(names: Sequence[str], wrong: Sequence[str]) -> str:
    """Return where in a backward pass the error comes in; "" if the names do not say.

    `names` are all tensors from the input to the output. Going back, gradients are right up to some
    tensor, and wrong from there on; or one path of several is wrong.
    """
    n_wrong = len(wrong)
    if not 1 <= n_wrong < len(names):
        return ""
    if list(wrong) == [names[0]]:
        return (
            f"the gradient of {names[0]} alone is wrong: look at the last step of the backward "
            "pass, where the paths to it are added"
        )
    if list(names[:n_wrong]) == list(wrong):
        return (
            f"going back, the gradients are right as far as {names[n_wrong]}, and wrong from "
            f"{names[n_wrong - 1]} on: look between the two"
        )
    layer = _common_layer(wrong[1:])
    if layer and wrong[0] == names[0]:
        return (
            f"beside {names[0]}, the gradients of {layer} alone are wrong: look at the path that "
            "leads to it"
        )
    if list(wrong) == [names[0], wrong[-1]]:
        return (
            f"beside {names[0]}, the gradient of {wrong[-1]} alone is wrong: look at the path that "
            "leads to it"
        )
    return ""


def _common_layer(names: Sequence[str]) -> str:
    """Return the layer that several parameters belong to, such as key; "" if it is not one."""
    layers = {name.rpartition(".")[0] for name in names}
    return layers.pop() if len(names) > 1 and len(layers) == 1 else ""
