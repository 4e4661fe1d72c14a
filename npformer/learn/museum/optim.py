"""Wrong optimizers."""

# ruff: noqa: D102 -- documented in Adam

from collections.abc import Mapping

import numpy as np

from npformer.core import Array
from npformer.learn.museum.table import plain
from npformer.optim import Adam
from npformer.optim.adam import adam_update


@plain(5, "adams_first_step_has_size_lr")
class AdamWithTheLayersNumber(Adam):
    """Adam uses the number of the layer in place of the number of the step.

    Who: Someone who calls both of them t, or i.
    Why: m / (1 - beta1^t) corrects m, which starts at 0, only if t counts the updates of m.
    Cost: The first steps have different sizes, and later steps are wrong for every tensor.
    Caught: The size of the first step.
    """

    def step(self, gradients: Mapping[str, Array]) -> None:
        for t, (name, theta, g) in enumerate(self._buffers(gradients), start=1):
            m, v = self._moments.of(name, theta)
            adam_update(theta, g, m, v, t=t, lr=self.lr, betas=self.betas, eps=self.eps)


@plain(5, "adam_counts_steps_and_not_tensors")
class AdamThatCountsTensors(Adam):
    """Adam's step counter goes up once for each tensor.

    Who: Someone who updates each parameter in a separate method, with one counter for all.
    Why: In the warm-up factor(s) = min(s / warmup, sqrt(warmup / s)), s is the number of optimizer
    steps.
    Cost: The warm-up ends too early.
    Caught: Counting the steps, with more than one tensor.
    """

    def step(self, gradients: Mapping[str, Array]) -> None:
        for name, theta, g in self._buffers(gradients):
            lr = self.current_lr()
            self.steps += 1
            m, v = self._moments.of(name, theta)
            adam_update(theta, g, m, v, t=self.steps, lr=lr, betas=self.betas, eps=self.eps)


@plain(6, "adams_first_step_has_size_lr")
class AdamWithOneBeta(Adam):
    """Adam uses beta1 in place of beta2.

    Who: Anyone: the names differ in one digit, and training still makes progress, slowly.
    Why: v = beta2 v + (1 - beta2) g^2. With beta1 = 0.9 in place of beta2 = 0.999, v / (1 -
    beta2^t) is 100 times too large at t = 1, and its root 10 times.
    Cost: The first steps are too short.
    Caught: The size of the first step.
    """

    def step(self, gradients: Mapping[str, Array]) -> None:
        lr, (beta1, beta2) = self.current_lr(), self.betas
        self.steps += 1
        for name, theta, g in self._buffers(gradients):
            m, v = self._moments.of(name, theta)
            m += (1.0 - beta1) * (g - m)
            v += (1.0 - beta1) * (g * g - v)
            root = np.sqrt(v / (1.0 - beta2**self.steps))
            theta -= lr * (m / (1.0 - beta1**self.steps)) / (root + self.eps)
