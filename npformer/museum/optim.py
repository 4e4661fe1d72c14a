"""Wrong optimizers."""

# ruff: noqa: D102 -- documented in Adam

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from npformer.core import Array
from npformer.optim import Adam


class AdamWithTheLayersNumber(Adam):
    """Adam's step counter is fed with the number of the layer.

    Parameters
    ----------
    parameters, lr, betas, eps, weight_decay, schedule
        As in `Adam`; without weight decay.

    Notes
    -----
    Who: Someone whose loop over layers and whose step are both called t, or i.

    Why: m / (1 - beta1^t) undoes that m began at 0 only if t counts the steps that m has taken.

    Cost: Later layers learn more slowly at first, and earlier ones wrongly ever after.

    Caught: By the length of the first step: `adams_first_step_has_size_lr`.
    """

    def step(self, gradients: Mapping[str, Array]) -> None:
        beta1, beta2 = self.betas
        for t, (name, theta, g) in enumerate(self._pieces(gradients), start=1):
            m, v = self._moments_of(name, theta)
            m += (1.0 - beta1) * (g - m)
            v += (1.0 - beta2) * (g * g - v)
            root = np.sqrt(v / (1.0 - beta2**t))
            theta -= self.lr * (m / (1.0 - beta1**t)) / (root + self.eps)


class AdamThatCountsTensors(Adam):
    """The warm-up counts tensors: the counter goes up inside the loop over parameters.

    Parameters
    ----------
    parameters, lr, betas, eps, weight_decay, schedule
        As in `Adam`; without weight decay.

    Notes
    -----
    Who: Someone whose update is a method of each parameter, with one counter for all.

    Why: factor(s) = min(s / warmup, sqrt(warmup / s)) with s the number of optimizer steps.

    Cost: A warm-up that is over after a fraction of its steps.

    Caught: By a count of steps, with more than one tensor: `adam_counts_steps_and_not_tensors`.
    """

    def step(self, gradients: Mapping[str, Array]) -> None:
        beta1, beta2 = self.betas
        for name, theta, g in self._pieces(gradients):
            lr = self.current_lr()
            self.steps += 1
            m, v = self._moments_of(name, theta)
            m += (1.0 - beta1) * (g - m)
            v += (1.0 - beta2) * (g * g - v)
            root = np.sqrt(v / (1.0 - beta2**self.steps))
            theta -= lr * (m / (1.0 - beta1**self.steps)) / (root + self.eps)


class AdamWithOneBeta(Adam):
    """Adam has beta1 where beta2 belongs.

    Parameters
    ----------
    parameters, lr, betas, eps, weight_decay, schedule
        As in `Adam`; without weight decay.

    Notes
    -----
    Who: Anyone: two names that differ in a digit, and training that still goes down, slowly.

    Why: v = beta2 v + (1 - beta2) g^2; with beta1 in it, v / (1 - beta2^t) is 100 times too large
    at t = 1, and its root 10 times.

    Cost: First steps a tenth as long as they should be.

    Caught: By the length of the first step: `adams_first_step_has_size_lr`.
    """

    def step(self, gradients: Mapping[str, Array]) -> None:
        lr, (beta1, beta2) = self.current_lr(), self.betas
        self.steps += 1
        for name, theta, g in self._pieces(gradients):
            m, v = self._moments_of(name, theta)
            m += (1.0 - beta1) * (g - m)
            v += (1.0 - beta1) * (g * g - v)
            root = np.sqrt(v / (1.0 - beta2**self.steps))
            theta -= lr * (m / (1.0 - beta1**self.steps)) / (root + self.eps)
