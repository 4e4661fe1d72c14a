"""Stochastic gradient descent by hand, with momentum."""

from collections.abc import Mapping
from typing import Any, ClassVar

from npformer.core import Array, checks
from npformer.optim.optimizer import Buffer, GradientDescent
from npformer.optim.schedules import Schedule


def sgd_update(
    theta: Array, g: Array, u: Array, *, lr: float, momentum: float, nesterov: bool
) -> None:
    """Take a step of `SGD`: change a parameter `theta` and its velocity `u`, in place."""
    u[...] = momentum * u + g
    theta -= lr * (g + momentum * u if nesterov else u)


class SGD(GradientDescent):
    """Stochastic gradient descent, optionally with momentum.

    With gradient g and a velocity u, which starts from 0::

        u = momentum u + g
        theta = theta - lr u                       momentum (Polyak, 1964)
        theta = theta - lr (g + momentum u)        with nesterov=True

    The second is Nesterov's accelerated gradient as Sutskever et al. (2013) write it, with theta
    standing where they take the gradient. The learning rate is outside of u, as in PyTorch, so that
    a schedule acts on a step as a whole.

    Parameters
    ----------
    parameters : mapping of str to array
        From ``model.parameters()``; updated in place.
    lr : float
        Learning rate.
    momentum : float
        What is left of the velocity after a step: at least 0, below 1.
    nesterov : bool
        Whether the velocity looks one step ahead. It needs momentum.
    schedule : callable or str, optional
        As for `Adam`.

    Attributes
    ----------
    steps : int
        Steps taken.
    """

    settings: ClassVar[tuple[str, ...]] = ("lr", "momentum", "nesterov")
    kinds = ("velocity",)

    def __init__(
        self,
        parameters: Mapping[str, Array],
        lr: float,
        momentum: float = 0.0,
        nesterov: bool = False,
        schedule: Schedule | str | None = None,
    ) -> None:
        super().__init__(parameters, lr, schedule)
        self._set_options(momentum=momentum, nesterov=nesterov)

    def _set_options(self, *, momentum: float, nesterov: bool) -> None:
        self.momentum = checks.rate("momentum", momentum)
        self.nesterov = checks.flag("nesterov", nesterov)
        if self.nesterov and self.momentum == 0.0:
            raise ValueError("nesterov is True and momentum is 0; expected a momentum, such as 0.9")

    def _restore_options(self, values: Mapping[str, Any]) -> None:
        self._set_options(momentum=values["momentum"], nesterov=values["nesterov"])

    def _update(self, buffers: list[Buffer], lr: float) -> None:
        for name, theta, g in buffers:
            (u,) = self._moments.of(name, theta)
            sgd_update(theta, g, u, lr=lr, momentum=self.momentum, nesterov=self.nesterov)
