"""Adam by hand, learning-rate schedules, clipping."""

import math
from collections.abc import Callable, Mapping

from npformer.core import (
    Array,
    Gradients,
    Parameters,
    Registry,
    array_module,
    asarray,
    backend_of,
    checks,
)
from npformer.engine.updates import update as kernel_of

Schedule = Callable[[int], float]
"""Takes the number of a step, counted from 1, and returns a factor for the learning rate."""


def constant() -> Schedule:
    """Return the schedule that is always 1."""
    return lambda step: 1.0


def warmup_inverse_sqrt(warmup: int) -> Schedule:
    """Return a linear warm-up over `warmup` steps, then decay with the inverse square root.

    factor(s) = min(s / warmup, sqrt(warmup / s)), which is 1 at s = warmup. Vaswani et al. (2017,
    section 5.3) have lr = d_model^-0.5 min(s^-0.5, s warmup^-1.5) with warmup = 4000. This is the
    same with ``lr = (d_model * warmup) ** -0.5``.
    """
    checks.positive("warmup", warmup)
    return lambda step: min(step / warmup, math.sqrt(warmup / step))


def cosine(total: int, warmup: int = 0, final: float = 0.0) -> Schedule:
    """Return a linear warm-up over `warmup` steps, then half a cosine from 1 down to `final`.

    Step `total` and all later ones have the factor `final`; if it is 0, they change nothing.
    """
    checks.positive("total", total)
    if total == 1 and final == 0.0:
        raise ValueError(
            "total is 1 and final 0.0; expected at least 2 steps, or a factor above 0 at the end: "
            "the only step would change nothing"
        )
    if not 0 <= warmup < total:
        raise ValueError(f"warmup is {warmup}; expected from 0 up to, not including, {total}")

    def factor(step: int) -> float:
        if step <= warmup:
            return step / warmup
        progress = min((step - warmup) / (total - warmup), 1.0)
        return final + (1.0 - final) * 0.5 * (1.0 + math.cos(math.pi * progress))

    return factor


SCHEDULES: Registry[Schedule] = Registry(
    "schedule",
    {"constant": constant, "warmup_inverse_sqrt": warmup_inverse_sqrt, "cosine": cosine},
    table="npformer.optim.SCHEDULES",
    function="a function of the step that returns a factor",
)
"""What ``Adam(schedule=...)`` takes by name. Builders get nothing but their options, and return a
`Schedule`."""


def schedule_of(schedule: Schedule | str | None) -> Schedule:
    """Return the schedule that `Adam` was given as a function, as a name, or as None."""
    if schedule is None:
        return constant()
    if isinstance(schedule, str):
        return SCHEDULES.make(schedule)
    if not callable(schedule):
        raise TypeError(
            f"schedule is {schedule!r}; expected a function of the step that returns a factor, "
            "such as npformer.optim.cosine(total), or its name: 'cosine(total=1000)'"
        )
    return schedule


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
    xp = array_module(theta)
    beta1, beta2 = betas
    m *= beta1
    m += (1.0 - beta1) * g
    v *= beta2
    v += (1.0 - beta2) * (g * g)
    theta *= shrink
    theta -= step_size * m / (xp.sqrt(v) + eps)


class Adam:
    """Adam (Kingma and Ba, 2015, algorithm 1), optionally with the weight decay of AdamW.

    At step t, with gradient g::

        m = beta1 m + (1 - beta1) g
        v = beta2 v + (1 - beta2) g^2
        theta = theta - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)

    m and v are 0 before the first step, and so too small in the first ones; the two divisions undo
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
    ) -> None:
        if not isinstance(parameters, Mapping):
            raise TypeError(
                f"parameters is a {type(parameters).__name__}; expected a mapping of names to "
                "arrays. Write Adam(model.parameters())"
            )
        if not parameters:
            raise ValueError("parameters is empty; expected at least one array to train")
        for name, value in (("lr", lr), ("eps", eps)):
            checks.number(name, value, above=0.0)
        if not isinstance(betas, tuple | list) or len(betas) != 2:
            raise ValueError(f"betas is {betas!r}; expected two numbers, such as (0.9, 0.999)")
        for beta in betas:
            checks.rate("betas", beta)
        checks.not_negative("weight_decay", weight_decay)
        self.schedule = schedule_of(schedule)
        self.parameters = parameters
        # Python's numbers, because NumPy's would turn float32 arrays into float64.
        self.lr = float(lr)
        self.betas = (float(betas[0]), float(betas[1]))
        self.eps = float(eps)
        self.weight_decay = float(weight_decay)
        self.steps = 0
        self._moments: dict[str, tuple[Array, Array]] = {}

    def current_lr(self) -> float:
        """Return the learning rate of the next step."""
        return float(self.lr * self.schedule(self.steps + 1))

    def step(self, gradients: Mapping[str, Array]) -> None:
        """Update every parameter once, in place.

        `gradients` holds one for each parameter, under the same name and of the same shape; if not,
        this raises KeyError or ValueError and changes nothing.
        """
        pieces = self._pieces(gradients)
        lr = self.current_lr()
        self.steps += 1
        beta1, beta2 = self.betas
        # The step of the docstring, multiplied above and below by root = sqrt(1 - beta2^t), is
        # size m / (sqrt(v) + eps root).
        root = math.sqrt(1.0 - beta2**self.steps)
        size, eps = lr * root / (1.0 - beta1**self.steps), self.eps * root
        shrink = 1.0 - lr * self.weight_decay
        for name, theta, g in pieces:
            m, v = self._moments_of(name, theta)
            update = kernel_of("adam_update", theta) or adam_update
            update(theta, g, m, v, step_size=size, betas=self.betas, eps=eps, shrink=shrink)

    def _moments_of(self, name: str, theta: Array) -> tuple[Array, Array]:
        if name not in self._moments:
            zeros = array_module(theta).zeros_like
            self._moments[name] = zeros(theta), zeros(theta)
        m, v = self._moments[name]
        if backend_of(m=m) is not backend_of(theta=theta):  # the model moved since the last step
            owner = backend_of(theta=theta).name
            self._moments[name] = asarray(m, owner), asarray(v, owner)
        return self._moments[name]

    def _pieces(self, gradients: Mapping[str, Array]) -> list[tuple[str, Array, Array]]:
        """Return (name, parameter, gradient) of each parameter, or of the one flat buffer."""
        if not isinstance(self.parameters, Parameters) or (flat := self.parameters.flat) is None:
            self._check(gradients)
            return [(name, theta, gradients[name]) for name, theta in self.parameters.items()]
        if isinstance(gradients, Gradients) and gradients.shapes == self.parameters.shapes:
            checks.floating(parameters=flat, gradients=gradients.flat)
            return [("", flat, gradients.flat)]
        self._check(gradients)
        return [("", flat, self.parameters.gather(gradients))]

    def _check(self, gradients: Mapping[str, Array]) -> None:
        """Check that there is one gradient for each parameter, of its shape, dtype and backend."""
        missing = [name for name in self.parameters if name not in gradients]
        unknown = [name for name in gradients if name not in self.parameters]
        for names, problem in ((missing, "no gradient for"), (unknown, "no parameter called")):
            if names:
                raise KeyError(
                    f"{problem} {', '.join(names[:3])}{' ...' if names[3:] else ''}; expected one "
                    f"gradient for each of the {len(self.parameters)} parameters. Take parameters "
                    "and gradients from one model"
                )
        for name, theta in self.parameters.items():
            g = gradients[name]
            checks.floating(**{name: theta, f"the gradient of {name}": g})
            if g.shape != theta.shape:
                raise ValueError(
                    f"the gradient of {name} has shape {g.shape}; expected {theta.shape}, the "
                    "parameter's"
                )


def global_norm(gradients: Mapping[str, Array]) -> Array:
    """Return the square root of the sum of all squares, as an array with no axes."""
    flat = getattr(gradients, "flat", None)
    pieces = list(gradients.values()) if flat is None else [flat]
    if not pieces:
        raise ValueError("gradients is empty; expected at least one array")
    xp = array_module(pieces[0])
    return xp.sqrt(sum((piece * piece).sum() for piece in pieces))


def clip_by_global_norm(gradients: Mapping[str, Array], max_norm: float) -> Array:
    """Scale all gradients, in place, so that their global norm is at most `max_norm`.

    The direction does not change (Pascanu et al., 2013). Returns the norm before clipping, an array
    with no axes. On a GPU it stays there, so nothing waits for it.
    """
    checks.number("max_norm", max_norm, above=0.0)
    flat = getattr(gradients, "flat", None)
    kernel = None if flat is None else kernel_of("clip_by_global_norm", flat)
    if kernel is not None:
        return kernel(flat, float(max_norm))
    norm = global_norm(gradients)
    xp = array_module(norm)
    # The small number, which is PyTorch's, keeps the factor finite for a norm of 0.
    factor = xp.minimum(float(max_norm) / (norm + 1e-6), 1.0)
    for piece in gradients.values() if flat is None else [flat]:
        piece *= factor
    return norm
