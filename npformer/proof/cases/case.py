"""What a case is, and how cases of functions and of layers are made."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from npformer.core import Layer
from npformer.layers import Sequential
from npformer.models import EncoderConfig
from npformer.proof.gradcheck import gradcheck
from npformer.proof.report import GradcheckReport

SEEDED: dict[str, Any] = {"seed": 0, "dtype": "float64"}

MODEL: dict[str, Any] = {"group": "models", "max_entries": 1, "directions": 2}
"""Of a whole model: most tensors are checked along two random directions, in which any wrong entry
shows. Its layers have cases of their own, entry by entry."""


@dataclass(frozen=True)
class Case:
    """One gradient check; `run` raises `GradcheckError` if it fails."""

    name: str  # what is checked, and with which settings
    group: str  # one of GROUPS
    covers: tuple[str, ...]  # the functions, classes and names in MIXERS that it proves
    run: Callable[[], GradcheckReport]


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    """Return normally distributed numbers."""
    return np.random.default_rng(seed).standard_normal(shape)


def keep(lengths: list[int], length: int) -> np.ndarray:
    """Return a mask that keeps the first tokens of each sequence."""
    return np.arange(length) < np.array(lengths)[:, None]


def small(**changes: Any) -> EncoderConfig:
    """Return a small configuration."""
    sizes = {"d_model": 4, "n_layers": 2, "n_heads": 2, "d_ff": 6, "max_len": 4}
    return EncoderConfig(**(sizes | changes))


def pair(label: str, target: Any, *inputs: Any, title: str = "", **options: Any) -> Case:
    """Return a case for a forward function, or (forward, backward).

    A tuple among the inputs is the shape of an array of normally distributed numbers.
    """
    normal = np.random.default_rng(0).standard_normal
    arguments = [normal(value) if isinstance(value, tuple) else value for value in inputs]
    forward = target[0] if isinstance(target, tuple) else target
    title = title or forward.__name__
    backward = target[1].__name__ if isinstance(target, tuple) else f"{title}_backward"
    run = partial(gradcheck, target, *arguments, **options)
    return Case(f"{title}: {label}", "functional", (title, backward), run)


def layer(
    label: str,
    checked_layer: Layer,
    *inputs: np.ndarray,
    group: str = "layers",
    title: str = "",
    covers: tuple[str, ...] = (),
    **options: Any,
) -> Case:
    """Return a case for a layer, after changing its initial parameters."""
    # With gamma = 1 and bias = 0, a backward pass that forgets them would pass.
    rng = np.random.default_rng(1)
    for array in checked_layer.parameters().values():
        array += 0.3 * rng.standard_normal(array.shape)
    name = type(checked_layer).__name__
    run = partial(gradcheck, checked_layer, *inputs, **options)
    return Case(f"{title or name}: {label}", group, (name, *covers), run)


def twice(shared_layer: Layer, x: np.ndarray, *, title: str = "", **options: Any) -> Case:
    """Return a case for one layer used twice: it has two caches, and its gradients add up."""
    name = type(shared_layer).__name__
    chain = Sequential(shared_layer, shared_layer)
    return layer("applied twice", chain, x, title=title or name, covers=(name,), **options)


def classes(instance: Layer, top: type[Layer]) -> tuple[str, ...]:
    """Return the names of a layer's class and its bases, up to but without `top`."""
    bases = type(instance).__mro__
    return tuple(base.__name__ for base in bases[: bases.index(top)])
