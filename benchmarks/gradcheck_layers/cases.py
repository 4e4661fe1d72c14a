"""A case: a layer, the inputs with which its author checks it, and the expected verdict."""

import inspect
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import npformer as nf

CASES = []


@dataclass(frozen=True)
class Setting:
    """The inputs and options of a check; a tuple stands for normal numbers of that shape."""

    inputs: tuple
    options: dict = field(default_factory=dict)
    moved: bool = True  # parameters, from their initial values, as the documentation advises
    settings: dict = field(default_factory=dict)  # arguments of the layer
    step: float = 1e-4  # for our own differences
    floor: float = 1e-30  # for the size that their errors are relative to

    def arrays(self, seed=0):
        """Return fresh inputs."""
        rng = np.random.default_rng(seed)
        return [rng.normal(size=x) if isinstance(x, tuple) else np.array(x) for x in self.inputs]


def at(*inputs, moved=True, settings=None, step=1e-4, floor=1e-30, **options):
    """Return a setting."""
    return Setting(inputs, options, moved, settings or {}, step, floor)


def normal(*shape, scale=1.0, seed=0):
    """Return normal numbers for inputs of an unusual size."""
    return scale * np.random.default_rng(seed).normal(size=shape)


@dataclass(frozen=True)
class Case:
    """A layer, or a function that returns a pair (forward, backward).

    Attributes
    ----------
    given : Setting
        The author's check.
    shows : Setting or function
        For a wrong layer, where the mistake shows: our own central differences disagree, or the
        function returns True. For a right layer at a corner, a function that confirms it.
    elsewhere : bool
        Whether that function uses the layer differently from its author's check.
    passes : bool
        The expected verdict of gradcheck. Not equal to `right` for a miss or a false alarm.
    """

    target: Any
    right: bool
    given: Setting
    shows: Setting | Callable
    passes: bool
    elsewhere: bool = False

    @property
    def name(self):
        """Theme and name."""
        return f"{self.target.__module__.rpartition('.')[2]}.{self.target.__name__}"

    @property
    def says(self):
        """What is wrong, or what is unusual."""
        return " ".join(inspect.getdoc(self.target).split())

    def build(self, setting=None, dtype="float64"):
        """Return a fresh layer or pair."""
        setting = setting or self.given
        known = inspect.signature(self.target).parameters
        made = self.target(**({"dtype": dtype} if "dtype" in known else {}), **setting.settings)
        if isinstance(made, nf.Layer) and setting.moved:
            rng = np.random.default_rng(1)
            for parameter in made.named_parameters().values():
                if parameter.dtype.kind == "f":
                    parameter.value[...] += 0.5 * rng.normal(size=parameter.shape)
        return made

    def gradcheck(self):
        """Return the verdict, and the message unless it is a pass."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                nf.gradcheck(self.build(), *self.given.arrays(), **deepcopy(self.given.options))
        except nf.GradcheckError as error:
            marks = ("<-- wrong", "rule broken")
            said = [line for line in str(error).splitlines() if any(m in line for m in marks)]
            return "failed", "; ".join(" ".join(line.split()) for line in said)
        except Exception as error:  # a user would see it, so it is a verdict
            return f"raised {type(error).__name__}", str(error)
        return "passed", ""


def wrong(*inputs, shows=None, elsewhere=False, missed=False, **options):
    """Register a wrong layer; `missed` means that gradcheck passes it."""
    return _register(False, at(*inputs, **options), shows, missed, elsewhere)


def right(*inputs, shows=None, false_alarm=False, **options):
    """Register a right layer; `false_alarm` means that gradcheck does not pass it."""
    return _register(True, at(*inputs, **options), shows, not false_alarm)


def _register(is_right, given, shows, passes, elsewhere=False):
    def register(target):
        CASES.append(Case(target, is_right, given, shows or given, passes, elsewhere))
        return target

    return register
