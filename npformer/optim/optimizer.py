"""An optimizer: what training asks of one, and what Adam and SGD share and keep."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from npformer.core import (
    Array,
    Gradients,
    Parameters,
    array_module,
    asarray,
    backend_of,
    checks,
    describe,
    to_numpy,
)
from npformer.core.gradients import flat_of
from npformer.core.support.explained_errors import drop_class_from_names
from npformer.optim.clipping import (
    NonFiniteGradientError,
    check_arrays,
    check_gradients,
    check_writable,
    non_finite_gradient,
)
from npformer.optim.schedules import Schedule, constant, factor_at, schedule_of

FLAT = ""
"""The name of the flat buffer in which all parameters lie."""


class Buffer(NamedTuple):
    """What one call of a formula updates: all parameters, in their flat buffer, or one of them."""

    name: str
    """FLAT, or the parameter's name."""
    theta: Array
    g: Array
    """The gradient."""


@runtime_checkable
class Optimizer(Protocol):
    """What `fit`, callbacks and checkpoints ask of an optimizer.

    Attributes
    ----------
    parameters : mapping of str to array
        What `step` updates in place: the ``model.parameters()`` that it was made with.
    lr : float
        The learning rate, before the schedule; callbacks may set it.
    schedule : callable
        A `Schedule`.
    steps : int
        Steps taken.
    settings : tuple of str
        Names of the attributes that say how it updates, such as "lr".
    """

    parameters: Mapping[str, Array]
    lr: float
    schedule: Schedule
    steps: int
    settings: ClassVar[tuple[str, ...]]

    def step(self, gradients: Mapping[str, Array]) -> None:
        """Update every parameter once, in place, by the gradients of these names."""

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all that `restore` needs: values for JSON, and host arrays by name."""
        ...

    def restore(self, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Restore what `state` returned."""


@drop_class_from_names
class GradientDescent:
    """What the optimizers here share: all but the formula, which is `_update`.

    `kinds` names the arrays that it keeps for each parameter.
    """

    settings: ClassVar[tuple[str, ...]]
    kinds: ClassVar[tuple[str, ...]]

    def __init__(self, parameters: Mapping[str, Array], lr: float, schedule: Any) -> None:
        if flat_of(parameters) is None:  # a model has checked its own
            advice = f"Write {type(self).__name__}(model.parameters())"
            check_arrays("parameter", "parameters", parameters, advice)
            check_writable("parameter", parameters.items())
        self.schedule = constant() if schedule is None else schedule_of(schedule)
        self.parameters = parameters
        self.steps = 0
        self._moments = Moments(parameters, self.kinds)
        self.lr = checks.number("lr", lr, above=0.0)

    def current_lr(self) -> float:
        """Return the learning rate of the next step."""
        return checks.not_negative("lr", self.lr) * factor_at(self.schedule, self.steps + 1)

    def step(self, gradients: Mapping[str, Array]) -> None:
        """Update every parameter once, in place.

        `gradients` holds one for each parameter, under the same name and of the same shape; if not,
        this raises TypeError or ValueError. A gradient on the host that is NaN or infinite, or for
        Adam too large to be squared, raises NonFiniteGradientError, which names it; on a GPU
        gradients are not checked, because that would wait. After an error nothing has changed.
        """
        buffers = self._buffers(gradients)
        lr = self.current_lr()
        self._check_finite(buffers)
        self.steps += 1
        self._update(buffers, lr)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all that `restore` needs: values for JSON, and host arrays by name.

        The arrays are copies of what is kept for each parameter, such as Adam's ``"m.NAME"`` and
        ``"v.NAME"``. The schedule is given by its repr.
        """
        values = {name: getattr(self, name) for name in self.settings}
        lists = {name: list(value) for name, value in values.items() if isinstance(value, tuple)}
        schedule = re.sub(" at 0x[0-9a-fA-F]+", "", repr(self.schedule))
        return {**values, **lists, "steps": self.steps, "schedule": schedule}, self._moments.save()

    def restore(self, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Restore what `state` returned, for parameters of the same names, shapes and dtypes.

        Everything is set except schedule and no_decay, which stay this optimizer's own: ``values``
        only says what they were. ValueError says what does not fit; nothing has changed then.
        """
        expected = [*self.settings, "steps", "schedule"]
        if not isinstance(values, Mapping) or set(values) != set(expected):
            names = [*values] if isinstance(values, Mapping) else describe(values)
            raise ValueError(f"the optimizer's values are {names}; expected {expected}")
        steps = checks.whole("steps", values["steps"], at_least=0)
        problem = self._moments.misfit(arrays)
        if problem:
            raise ValueError(
                f"the optimizer's moments are not those of these parameters: {problem}. Restore "
                "the model they were saved with as well"
            )
        lr = checks.not_negative("lr", values["lr"])  # a callback may have set it to 0
        copy.copy(self)._restore_options(values)  # an error in here changes only the copy
        self._restore_options(values)
        self.lr = lr
        self._moments.load(arrays)
        self.steps = steps

    def _update(self, buffers: list[Buffer], lr: float) -> None:
        """Update all parameters by their gradients, which have been checked."""
        raise NotImplementedError

    def _restore_options(self, values: Mapping[str, Any]) -> None:
        """Check and set the settings that `state` returned, other than lr and no_decay."""
        raise NotImplementedError

    def _buffers(self, gradients: Mapping[str, Array]) -> list[Buffer]:
        """Return the flat buffer with its gradients, or each parameter with its own."""
        if not isinstance(self.parameters, Parameters) or (flat := self.parameters.flat) is None:
            self._check(gradients)
            named = self.parameters.items()
            return [Buffer(name, theta, g=gradients[name]) for name, theta in named]
        if isinstance(gradients, Gradients) and gradients.shapes == self.parameters.shapes:
            checks.floating(parameters=flat, gradients=gradients.flat)
            return [Buffer(FLAT, flat, g=gradients.flat)]
        self._check(gradients)
        return [Buffer(FLAT, flat, g=self.parameters.gather(gradients))]

    def _split_by_parameter(
        self, buffers: list[Buffer]
    ) -> Iterator[tuple[str, Array, Array, tuple[Array, ...]]]:
        """Yield the name of each parameter, its array, its gradient and its moments."""
        for buffer_name, buffer_theta, buffer_g in buffers:
            moments = self._moments.of(buffer_name, buffer_theta)
            thetas = self._moments.split(buffer_name, buffer_theta)
            gradients = self._moments.split(buffer_name, buffer_g)
            split_moments = [self._moments.split(buffer_name, moment) for moment in moments]
            for name, theta in thetas.items():
                yield name, theta, gradients[name], tuple(moment[name] for moment in split_moments)

    def _check_finite(self, buffers: list[Buffer]) -> None:
        """Raise NonFiniteGradientError if a gradient on the host is not finite, or too large."""
        for buffer in buffers:
            # One check is enough: the sum of all squares overflows if one of them does.
            if type(buffer.g) is np.ndarray and not np.isfinite(np.vdot(buffer.g, buffer.g)):
                problem = self._first_problem([buffer])
                if problem is not None:
                    raise problem

    def _first_problem(self, buffers: list[Buffer]) -> NonFiniteGradientError | None:
        """Return an error for the first gradient that is not finite, or too large for a step."""
        for name, _, g, moments in self._split_by_parameter(buffers):
            with np.errstate(over="ignore", invalid="ignore"):
                intermediate = self._first_to_overflow(g, moments)
            if not np.isfinite(intermediate).all():
                return non_finite_gradient(name, g, "its square")
        return None

    def _first_to_overflow(self, g: np.ndarray, moments: tuple[np.ndarray, ...]) -> np.ndarray:
        """Return what is not finite if a gradient is too large for a step."""
        return g

    def _check(self, gradients: Mapping[str, Array]) -> None:
        """Check that there is one gradient for each parameter, of its shape, dtype and backend."""
        check_gradients(gradients)
        problem = checks.misfits(gradients, self.parameters)
        if problem:
            raise ValueError(
                f"gradients do not fit the parameters: {problem}. Take both from one model"
            )
        for name, theta in self.parameters.items():  # on one backend
            backend_of(**{f"parameter {name}": theta, f"the gradient of {name}": gradients[name]})


@dataclass(eq=False)
class Moments:
    """Some arrays of each parameter, 0 at first, laid out like it and on its backend.

    Layout and backend may change between steps: parameters are flattened, or moved to a GPU.
    `kinds` names them.
    """

    parameters: Mapping[str, Array]
    kinds: tuple[str, ...]
    _arrays: dict[str, tuple[Array, ...]] = field(default_factory=dict, init=False)

    def of(self, name: str, theta: Array) -> tuple[Array, ...]:
        """Return the arrays, one of each kind, for one of the `buffers`."""
        arrays = self._arrays.get(name)
        if arrays is None or backend_of(x=arrays[0]) is not backend_of(theta=theta):
            self.load(self._moments_by_name(self._arrays) if self._arrays else {})
        return self._arrays[name]

    def buffers(self) -> list[tuple[str, Array]]:
        """Return (FLAT, buffer) if parameters lie in one buffer, else (name, array) of each."""
        flat = flat_of(self.parameters)
        return list(self.parameters.items()) if flat is None else [(FLAT, flat)]

    def split(self, buffer: str, x: Array) -> dict[str, Array]:
        """Return what an array that is laid out like one of the `buffers` holds by parameter."""
        if buffer == FLAT and isinstance(self.parameters, Parameters):
            return dict(zip(self.parameters, self.parameters.split(x).values(), strict=True))
        return {buffer: x}

    def save(self) -> dict[str, np.ndarray]:
        """Return host copies, ``"KIND.NAME"`` for each kind and parameter."""
        self._arrays = {name: self.of(name, theta) for name, theta in self.buffers()}
        on_host = {
            name: tuple(np.array(to_numpy(x)) for x in arrays)
            for name, arrays in self._arrays.items()
        }
        return self._moments_by_name(on_host)  # a buffer comes from a GPU in one copy

    def misfit(self, arrays: Any) -> str:
        """Return why `load` cannot take these arrays; "" if it can."""
        if not isinstance(arrays, Mapping) or {type(x) for x in arrays.values()} - {np.ndarray}:
            return "expected a mapping of names to NumPy arrays"
        expected = {
            f"{kind}.{name}": x for kind in self.kinds for name, x in self.parameters.items()
        }
        problem = checks.misfits(arrays, expected)
        if problem:
            return problem
        for name, x in arrays.items():
            least = 0.0 if name.startswith("v.") else -math.inf
            if not (np.isfinite(x) & (x >= least)).all():
                return f"{name} holds NaN, infinity or a negative square"
        return ""

    def load(self, named: Mapping[str, Array]) -> None:
        """Put back what `save` returned, bit for bit; zeros if `named` is empty."""
        self._arrays.clear()
        for name, theta in self.buffers():
            self._arrays[name] = tuple(array_module(theta).zeros_like(theta) for _ in self.kinds)
        if named:
            for name, x in self._moments_by_name(self._arrays).items():
                x[...] = asarray(named[name], backend_of(x=x).name)

    def _moments_by_name(self, buffers: Mapping[str, tuple[Array, ...]]) -> dict[str, Array]:
        """Return what buffers hold for each parameter, under the names it is saved with."""
        named: dict[str, Array] = {}
        for buffer, arrays in buffers.items():
            for kind, x in zip(self.kinds, arrays, strict=True):
                for name, array in self.split(buffer, x).items():
                    named[f"{kind}.{name}"] = array
        return named
