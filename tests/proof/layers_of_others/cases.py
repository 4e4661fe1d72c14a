"""A case: a layer, the inputs with which its author checks it, and whether it is right."""

import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

import npformer as nf

CASES = []


def normal(*shape, scale=1.0):
    """Return normal numbers for inputs of an unusual size."""
    return scale * np.random.default_rng(0).normal(size=shape)


@dataclass(frozen=True)
class Case:
    """A layer, or a function that returns a pair (forward, backward).

    A tuple among the inputs stands for normal numbers of that shape; options are gradcheck's.
    """

    target: Callable[..., Any]
    right: bool
    inputs: tuple
    options: dict

    @property
    def name(self):
        """The file and the name, by which a test is found."""
        return f"{self.target.__module__.rpartition('.')[2]}.{self.target.__name__}"

    def built(self):
        """Return a layer whose parameters have moved from their initial values, or the pair."""
        made = self.target()
        if isinstance(made, nf.Layer):
            rng = np.random.default_rng(1)
            for parameter in made.named_parameters().values():
                parameter.value[...] += 0.5 * rng.normal(size=parameter.shape)
        return made

    def passes(self):
        """Return whether gradcheck finds nothing wrong; a user would see any error of the layer."""
        rng = np.random.default_rng(0)
        arrays = [rng.normal(size=x) if isinstance(x, tuple) else np.array(x) for x in self.inputs]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                nf.gradcheck(self.built(), *arrays, **deepcopy(self.options))
            except (nf.GradcheckError, IndexError):  # one empties its cache
                return False
        return True


def right(*inputs, **options):
    """Register a right layer."""
    return _register(True, inputs, options)


def wrong(*inputs, **options):
    """Register a wrong layer."""
    return _register(False, inputs, options)


def _register(is_right, inputs, options):
    def register(target):
        CASES.append(Case(target, is_right, inputs, options))
        return target

    return register
