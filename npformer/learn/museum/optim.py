"""Wrong optimizers."""

# ruff: noqa: D102 -- documented in Adam

from collections.abc import Mapping

import numpy as np

from npformer.core import Array
from npformer.learn.museum.table import plain
from npformer.optim import Adam
from npformer.optim.adam import adam_update
from npformer.optim.optimizer import Buffer


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


@plain(29, "each_step_of_adam_is_lr_long")
class AdamWithAFrozenStep(Adam):
    """Adam corrects every step as if it were the first.

    Who: 6 of 26 public hand-written NumPy Transformers have a wrong Adam: t is never raised,
    nothing is corrected, the root is taken twice, or epsilon is under it.
    Why: After t steps with the gradient g, m is (1 - beta1^t) g. Divided by 1 - beta1, it grows
    from g to 10 g. The root of v grows as well, to 30 |g|, but later.
    Cost: Within a dozen steps they are twice as long as lr, and in the end a third of it.
    Caught: With a constant gradient each step is lr long. The first step alone is right.
    """

    def _update(self, buffers: list[Buffer], lr: float) -> None:
        for name, theta, g in buffers:
            m, v = self._moments.of(name, theta)
            adam_update(theta, g, m, v, t=1, lr=lr, betas=self.betas, eps=self.eps)


@plain(29, "each_step_of_adam_is_lr_long", "adams_first_step_has_size_lr")
class AdamWithoutCorrection(Adam):
    """Adam divides neither m by 1 - beta1^t nor v by 1 - beta2^t.

    Who: 6 of 26 public hand-written NumPy Transformers have a wrong Adam, of this kind or another
    with the same number.
    Why: m and v start from 0, and v needs a thousand steps to forget it: sqrt(v) is |g| sqrt(1 -
    beta2^t).
    Cost: The first steps are three to seven times too long, just where a warm-up makes them short.
    Caught: With a constant gradient each step is lr long.
    """

    def _update(self, buffers: list[Buffer], lr: float) -> None:
        beta1, beta2 = self.betas
        for name, theta, g in buffers:
            m, v = self._moments.of(name, theta)
            m += (1.0 - beta1) * (g - m)
            v += (1.0 - beta2) * (g * g - v)
            theta -= lr * m / (np.sqrt(v) + self.eps)


@plain(29, "each_step_of_adam_is_lr_long", "adams_first_step_has_size_lr")
class AdamWithTwoRoots(Adam):
    """Adam takes the root of v twice.

    Who: 6 of 26 public hand-written NumPy Transformers have a wrong Adam, of this kind or another
    with the same number.
    Why: v is a mean of squares, so one root gives it the unit of g. After two, a step is lr g /
    sqrt(|g|).
    Cost: The length of a step depends on the size of the gradient again. Small gradients hardly
    train.
    Caught: With a constant gradient of any size but 1, each step is lr long.
    """

    def _update(self, buffers: list[Buffer], lr: float) -> None:
        beta1, beta2 = self.betas
        for name, theta, g in buffers:
            m, v = self._moments.of(name, theta)
            m += (1.0 - beta1) * (g - m)
            v += (1.0 - beta2) * (g * g - v)
            root = np.sqrt(v / (1.0 - beta2**self.steps))
            theta -= lr * (m / (1.0 - beta1**self.steps)) / (np.sqrt(root) + self.eps)


@plain(29, "each_step_of_adam_is_lr_long")
class AdamWithEpsilonUnderTheRoot(Adam):
    """Adam adds epsilon to v, under the root.

    Who: 6 of 26 public hand-written NumPy Transformers have a wrong Adam, of this kind or another
    with the same number. Some optimizers of libraries do so on purpose, with another epsilon.
    Why: sqrt(v + 1e-8) is at least 1e-4, where sqrt(v) + 1e-8 is at least 1e-8.
    Cost: Parameters whose gradients are smaller than 1e-4 train too slowly: those of a large model,
    of rare words, of the first layers.
    Caught: With a constant gradient, even a small one, each step is lr long. No check with
    gradients near 1.
    """

    def _update(self, buffers: list[Buffer], lr: float) -> None:
        beta1, beta2 = self.betas
        for name, theta, g in buffers:
            m, v = self._moments.of(name, theta)
            m += (1.0 - beta1) * (g - m)
            v += (1.0 - beta2) * (g * g - v)
            v_hat = v / (1.0 - beta2**self.steps)
            theta -= lr * (m / (1.0 - beta1**self.steps)) / np.sqrt(v_hat + self.eps)


@plain(32, "a_missing_gradient_is_refused")
class AdamThatFillsInZeros(Adam):
    """A parameter without a gradient of its name gets a gradient of 0.

    Who: 4 of 26 public hand-written NumPy Transformers have parameters that are never trained,
    because their gradients have other names.
    Why: A gradient that is missing says that a name is wrong, or that a backward pass is
    incomplete. A gradient of 0 says that the parameter makes no difference.
    Cost: W_q stays as it was drawn, because its gradient is called Wq. The loss falls all the same,
    by the other parameters.
    Caught: A step with gradients of other names must be refused. Comparing every parameter before
    and after training. No gradient check, because the gradient itself is right.
    """

    def step(self, gradients: Mapping[str, Array]) -> None:
        filled_gradients = {
            name: gradients.get(name, np.zeros_like(theta))
            for name, theta in self.parameters.items()
        }
        super().step(filled_gradients)
