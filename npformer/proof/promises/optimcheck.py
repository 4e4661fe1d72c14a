"""optimcheck: does an optimizer take the steps of its formula?

An optimizer of any style is run for ten steps with parameters and gradients in float64, and each
step is compared with that of the formula with the same settings. If they differ, a table of known
faults says which formula it is that the optimizer follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.core import checks
from npformer.optim.adam import two_rates
from npformer.proof.promises.conventions import alternatives_to, target_of
from npformer.proof.promises.courses import STEPS
from npformer.proof.promises.identification import Identification
from npformer.proof.promises.kinds import KINDS
from npformer.proof.promises.optimizer_report import (
    TOLERANCE,
    OptimcheckError,
    OptimcheckReport,
)

STATED = "lr", "beta1", "beta2", "eps", "momentum", "rho", "weight_decay"


def optimcheck(
    optimizer: Any,
    *,
    kind: str | None = None,
    step: Callable[[Any, list[np.ndarray], list[np.ndarray]], Any] | None = None,
    parameters: Any = None,
    lr: float | None = None,
    betas: tuple[float, float] | None = None,
    eps: float | None = None,
    momentum: float | None = None,
    rho: float | None = None,
    weight_decay: float | None = None,
    steps: int = STEPS,
    seed: int = 0,
    tolerance: float = TOLERANCE,
) -> OptimcheckReport:
    """Compare the steps of an optimizer, written by anybody, with those of its formula.

    Parameters
    ----------
    optimizer : class, object, or function
        A class, whose objects are made with the settings below and, if it asks for them, with
        parameters; an object that has not taken a step yet, of which copies are used; a function
        without arguments that makes one; or an update function such as
        ``adam(w, dw, config) -> (w, config)``. Its steps are taken by ``step(params, grads)``,
        ``update(w, dw)``, ``update_params(layer)``, ``step()`` and others alike.
    kind : str, optional
        What it should be: "sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "adamw",
        "amsgrad" or "lion". By default, what its name says; if it says nothing, any of them passes.
    step : callable, optional
        ``step(optimizer, parameters, gradients)``, for an optimizer that is called in another way:
        takes lists of arrays, and changes the first in place or returns a list of new ones.
    parameters : dict, list or array, optional
        What the optimizer was made for, if it takes only parameters of certain names and shapes.
    lr, betas, eps, momentum, rho, weight_decay : float, optional
        Settings of the formula. By default, those of the optimizer: its attributes, or defaults of
        its arguments, under one of the usual names. A class is made with those that are given here.
    steps : int
        Steps of each run.
    seed : int
        Seed of the parameters and gradients.
    tolerance : float
        The largest error that passes, relative to the largest change of a parameter in a step.
        Where parameters are float32, at least 1e-3.

    Returns
    -------
    OptimcheckReport
        Which formula it is, and the error of each run: with drawn and with constant gradients, of
        very different sizes, as small as epsilon, and 0.

    Raises
    ------
    OptimcheckError
        It follows another formula than that of its kind; the message is the report, which names
        the known fault if it is one.
    TypeError
        There is no learning rate under a usual name, or no usual way to call it.

    Notes
    -----
    Momentum with lr inside the velocity and outside of it differs only where lr changes; weight
    decay is compared only if it is not 0: pass a class with ``weight_decay=0.1``, too. An optimizer
    that is called with one array at a time may keep one set of moments: then one object for each
    parameter is right, and the report has a note.

    Examples
    --------
    >>> import numpy as np, npformer as nf
    >>> class SGD:
    ...     def __init__(self, lr=0.1):
    ...         self.lr = lr
    ...     def step(self, params, grads):
    ...         for p, g in zip(params, grads):
    ...             p -= self.lr * g
    >>> nf.optimcheck(SGD).diagnosis
    'gradient descent'
    """
    if kind is not None:
        checks.choice("kind", kind, KINDS)
    checks.positive("steps", steps)
    checks.whole("seed", seed, at_least=0)
    checks.number("tolerance", tolerance, above=0.0)
    stated = _collect_settings(lr, betas, eps, momentum, rho, weight_decay)
    target = target_of(optimizer, stated)
    check = Identification(target, kind, stated, steps, seed, tolerance)
    stepper = check.stepper_of_user(step) if step else check.first_stepper(parameters)
    report = check.report(stepper)
    if report.passed:
        return report
    for alternative in () if step else alternatives_to(stepper):
        report_of_alternative = check.report(alternative)
        if report_of_alternative.passed:
            return report_of_alternative
    raise OptimcheckError(report)


def _collect_settings(
    lr: float | None,
    betas: tuple[float, float] | None,
    eps: float | None,
    momentum: float | None,
    rho: float | None,
    weight_decay: float | None,
) -> dict[str, float]:
    """Return the settings that are not None, by name, checked."""
    beta1, beta2 = (None, None) if betas is None else two_rates("betas", betas)
    values = (lr, beta1, beta2, eps, momentum, rho, weight_decay)
    named = zip(STATED, values, strict=True)
    return {n: checks.not_negative(n, x) for n, x in named if x is not None}
