"""Adam by hand."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from npformer.core import Array, Gradients, Parameters, backend_of, checks, described
from npformer.engine.updates import update as kernel_of
from npformer.optim.clipping import (
    check_arrays,
    check_gradients,
    check_writable,
    non_finite_gradient,
)
from npformer.optim.moments import FLAT, Moments
from npformer.optim.schedules import Schedule, factor_at, schedule_of
from npformer.optim.weight_decay import checked_patterns, shrink_some

SETTINGS = ("lr", "betas", "eps", "weight_decay", "no_decay")
"""Adam's settings, besides its schedule."""

VALUES = (*SETTINGS, "steps", "schedule")
"""What `Adam.state` returns besides arrays."""


def adam_update(
    theta: Array,
    g: Array,
    m: Array,
    v: Array,
    *,
    step_size: float,
    betas: tuple[float, float],
    eps: float,
    shrink: float,
) -> None:
    """Update a parameter `theta` and its moments `m` and `v` with a gradient `g`, in place.

    `step_size` is lr sqrt(1 - beta2^t) / (1 - beta1^t), `eps` is Adam's times sqrt(1 - beta2^t),
    and `shrink` is 1 - lr weight_decay.
    """
    xp = checks.floating(theta=theta, g=g, m=m, v=v)
    if not theta.shape == g.shape == m.shape == v.shape:
        shapes = [x.shape for x in (theta, g, m, v)]
        raise ValueError(f"theta, g, m and v have the shapes {shapes}; expected one shape")
    beta1, beta2 = betas
    m *= beta1
    m += (1.0 - beta1) * g
    v *= beta2
    # Squared with its factor: for beta2 = 0.999, float32 holds g up to 5e20, but g^2 only to 1e19.
    root = math.sqrt(1.0 - beta2) * g
    v += root * root
    theta *= shrink
    theta -= step_size * (m / (xp.sqrt(v) + eps))


class Adam:
    """Adam (Kingma and Ba, 2015, algorithm 1), optionally with the weight decay of AdamW.

    At step t, with gradient g::

        m = beta1 m + (1 - beta1) g
        v = beta2 v + (1 - beta2) g^2
        theta = theta - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)

    m and v start from 0, so they are too small in the first steps; the two divisions correct
    exactly that.

    Parameters
    ----------
    parameters : mapping of str to array
        From ``model.parameters()``; updated in place. If they are views of one flat buffer, as in a
        model, the buffer is updated as a whole.
    lr : float
        Learning rate.
    betas : (float, float)
        Decay of m and v. Vaswani et al. use (0.9, 0.98).
    eps : float
        Keeps the division finite. Vaswani et al. use 1e-9.
    weight_decay : float
        Independently of the gradient, each step multiplies theta by 1 - lr weight_decay (Loshchilov
        and Hutter, 2019).
    no_decay : sequence of str
        Patterns such as ``"*.bias"``: parameters whose name matches one have no weight decay.
        `NORMS_AND_BIASES` has those that BERT leaves out.
    schedule : callable or str, optional
        A `Schedule`, or a name in `SCHEDULES` with its options: "cosine(total=1000, warmup=100)".

    Attributes
    ----------
    steps : int
        Steps taken.
    """

    def __init__(
        self,
        parameters: Mapping[str, Array],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        schedule: Schedule | str | None = None,
        no_decay: Sequence[str] = (),
    ) -> None:
        check_arrays("parameter", "parameters", parameters, "Write Adam(model.parameters())")
        check_writable("parameter", parameters.items())
        checks.number("lr", lr, above=0.0)
        self._set(lr, betas, eps, weight_decay)
        self.schedule = schedule_of(schedule)
        self.no_decay = checked_patterns(no_decay, parameters)
        self.parameters = parameters
        self.steps = 0
        self._moments = Moments(parameters)

    def _set(self, lr: Any, betas: Any, eps: Any, weight_decay: Any) -> None:
        """Check all of these, and then set them."""
        checks.not_negative("lr", lr)  # a callback may have set it to 0
        checks.number("eps", eps, above=0.0)
        if not isinstance(betas, tuple | list) or len(betas) != 2:
            raise ValueError(f"betas is {betas!r}; expected two numbers, such as (0.9, 0.999)")
        for beta in betas:
            checks.rate("betas", beta)
        checks.not_negative("weight_decay", weight_decay)
        # Python's numbers, because NumPy's would turn float32 arrays into float64.
        self.lr, self.eps, self.weight_decay = float(lr), float(eps), float(weight_decay)
        self.betas = (float(betas[0]), float(betas[1]))

    def current_lr(self) -> float:
        """Return the learning rate of the next step."""
        checks.not_negative("lr", self.lr)
        return float(self.lr * factor_at(self.schedule, self.steps + 1))

    def step(self, gradients: Mapping[str, Array]) -> None:
        """Update every parameter once, in place.

        `gradients` holds one for each parameter, under the same name and of the same shape; if not,
        this raises TypeError or ValueError. A gradient on the host that is NaN, infinite, or too
        large to be squared raises NonFiniteGradientError, which names it; on a GPU gradients are
        not checked, because that would wait. After an error nothing has changed.
        """
        pieces = self._pieces(gradients)
        lr = self.current_lr()
        if problem := self._not_finite(pieces):
            raise problem
        self.steps += 1
        beta1, beta2 = self.betas
        # The step of the docstring, its numerator and denominator times root = sqrt(1 - beta2^t),
        # is size m / (sqrt(v) + eps root).
        root = math.sqrt(1.0 - beta2**self.steps)
        size, eps = lr * root / (1.0 - beta1**self.steps), self.eps * root
        shrink = 1.0 - lr * self.weight_decay
        if self.no_decay and shrink != 1.0:
            for name, theta, _ in pieces:
                shrink_some(self._moments.parts(name, theta), self.no_decay, shrink)
            shrink = 1.0
        for name, theta, g in pieces:
            m, v = self._moments.of(name, theta)
            update = kernel_of("adam_update", theta) or adam_update
            update(theta, g, m, v, step_size=size, betas=self.betas, eps=eps, shrink=shrink)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return all that `restore` needs: values for JSON, and host arrays by name.

        The arrays are copies of m and v of each parameter: ``"m.NAME"`` and ``"v.NAME"``. The
        schedule is given by its repr.
        """
        schedule = re.sub(" at 0x[0-9a-fA-F]+", "", repr(self.schedule))
        of_self = {name: getattr(self, name) for name in VALUES}
        lists = {"betas": list(self.betas), "no_decay": list(self.no_decay)}
        return {**of_self, **lists, "schedule": schedule}, self._moments.save()

    def restore(self, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Restore what `state` returned, for parameters of the same names, shapes and dtypes.

        Everything is set except schedule and no_decay, which stay this optimizer's own: ``values``
        only says what they were. ValueError says what does not fit; nothing has changed then.
        """
        if not isinstance(values, Mapping) or set(values) != set(VALUES):
            found = [*values] if isinstance(values, Mapping) else described(values)
            raise ValueError(f"the optimizer's values are {found}; expected {list(VALUES)}")
        steps = checks.whole("steps", values["steps"], at_least=0)
        if problem := self._moments.misfit(arrays):
            raise ValueError(
                f"the optimizer's moments are not those of these parameters: {problem}. Restore "
                "the model they were saved with as well"
            )
        self._set(*(values[name] for name in ("lr", "betas", "eps", "weight_decay")))
        self._moments.load(arrays)
        self.steps = steps

    def _pieces(self, gradients: Mapping[str, Array]) -> list[tuple[str, Array, Array]]:
        """Return (name, parameter, gradient) of each parameter, or FLAT and the flat buffers."""
        if not isinstance(self.parameters, Parameters) or (flat := self.parameters.flat) is None:
            self._check(gradients)
            return [(name, theta, gradients[name]) for name, theta in self.parameters.items()]
        if isinstance(gradients, Gradients) and gradients.shapes == self.parameters.shapes:
            checks.floating(parameters=flat, gradients=gradients.flat)
            return [(FLAT, flat, gradients.flat)]
        self._check(gradients)
        return [(FLAT, flat, self.parameters.gather(gradients))]

    def _not_finite(self, pieces: list[tuple[str, Array, Array]]) -> ArithmeticError | None:
        """Return the error if gradients on the host, or what they make of v, are not finite."""
        # One check is enough: the sum of all squares overflows if one of them does.
        if all(math.isfinite(np.vdot(g, g)) for _, _, g in pieces if type(g) is np.ndarray):
            return None
        beta2 = self.betas[1]
        for place, theta, g in (piece for piece in pieces if type(piece[2]) is np.ndarray):
            of_v = self._moments.parts(place, self._moments.of(place, theta)[1])
            for name, part in self._moments.parts(place, g).items():
                with np.errstate(over="ignore", invalid="ignore"):
                    v = beta2 * of_v[name] + (math.sqrt(1.0 - beta2) * part) ** 2
                if not np.isfinite(v).all():
                    return non_finite_gradient(name, part, "its square")
        return None

    def _check(self, gradients: Mapping[str, Array]) -> None:
        """Check that there is one gradient for each parameter, of its shape, dtype and backend."""
        check_gradients(gradients)
        if problem := checks.misfits(gradients, self.parameters):
            raise ValueError(
                f"gradients do not fit the parameters: {problem}. Take both from one model"
            )
        for name, theta in self.parameters.items():  # on one backend
            backend_of(**{f"parameter {name}": theta, f"the gradient of {name}": gradients[name]})
