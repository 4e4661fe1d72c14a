"""The update rules of optimizers, each with options for its published forms and for known faults.

A rule takes one step of one parameter. An option is a field and its value: ``("root", "twice")`` is
the Adam that takes the root of v twice. `kinds` has the words for them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

RuleState = dict[str, Any]
"""What is kept of one parameter from step to step, by name; empty before the first."""


@dataclass(frozen=True)
class Settings:
    """The numbers of an update rule. lr may be another at each step."""

    lr: float
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    momentum: float = 0.0
    rho: float = 0.9
    weight_decay: float = 0.0


@dataclass(frozen=True)
class Rule:
    """What all rules share: direction, weight decay, whose moments and whose count of steps.

    `moments` is "separate" or "shared" by all parameters, `counter` counts "steps" or "calls",
    one for each parameter; `optimcheck` reads both.
    """

    direction: str = field(default="down", kw_only=True)  # or "up"
    decay: str = field(default="l2", kw_only=True)  # or "decoupled", "without_lr", "after", "none"
    moments: str = field(default="separate", kw_only=True)
    counter: str = field(default="steps", kw_only=True)
    lr_power: str = field(default="once", kw_only=True)  # or "twice"

    def update(
        self, theta: np.ndarray, g: np.ndarray, state: RuleState, t: int, settings: Settings
    ) -> Any:
        """Return theta after step t with gradient g; change `state`."""
        lr, decay = settings.lr, settings.weight_decay
        if self.decay == "l2":
            g = g + decay * theta
        descent = self.descend(g, state, t, settings)
        if self.direction == "up":
            descent = -descent
        if self.lr_power == "twice":
            descent = lr * descent
        if self.decay == "decoupled":
            descent = descent + lr * decay * theta
        if self.decay == "without_lr":
            descent = descent + decay * theta
        theta = theta - descent
        if self.decay == "after":
            theta = theta - lr * decay * theta
        return theta

    def descend(self, g: np.ndarray, state: RuleState, t: int, settings: Settings) -> Any:
        """Return what step t subtracts, without weight decay; change `state`."""
        raise NotImplementedError


@dataclass(frozen=True)
class GradientDescent(Rule):
    """theta = theta - lr g (Robbins and Monro, 1951)."""

    def descend(self, g: np.ndarray, state: RuleState, t: int, settings: Settings) -> Any:
        """Return lr g."""
        return settings.lr * g


@dataclass(frozen=True)
class Momentum(Rule):
    """u = momentum u + g, theta = theta - lr u (Polyak, 1964), and its other forms."""

    velocity: str = "lr_outside"  # or "lr_inside", "averaged", "swapped", "without_momentum"
    lookahead: bool = False  # Nesterov's

    def descend(self, g: np.ndarray, state: RuleState, t: int, settings: Settings) -> Any:
        """Return lr u; with `lookahead` lr (g + momentum u)."""
        mu, lr = settings.momentum, settings.lr
        new_factors = {
            "lr_outside": 1.0,
            "lr_inside": lr,
            "averaged": 1.0 - mu,
            "swapped": mu,
            "without_momentum": 1.0,
        }
        old_factors = {"swapped": 1.0 - mu, "without_momentum": 1.0}
        new = new_factors[self.velocity] * g
        u = old_factors.get(self.velocity, mu) * state.get("u", 0.0) + new
        state["u"] = u
        rate = 1.0 if self.velocity == "lr_inside" else lr
        return rate * (new + mu * u if self.lookahead else u)


@dataclass(frozen=True)
class Adagrad(Rule):
    """v = v + g^2, theta = theta - lr g / (sqrt(v) + eps) (Duchi et al., 2011)."""

    root: str = "once"  # or "twice", "none"
    eps: str = "outside"  # or "inside", "none"

    def descend(self, g: np.ndarray, state: RuleState, t: int, settings: Settings) -> Any:
        """Return lr g / (sqrt(v) + eps)."""
        state["v"] = self.next_v(g, state.get("v", np.zeros(1)), settings)
        return settings.lr * g / divisor(state["v"], self.root, self.eps, settings.eps)

    def next_v(self, g: np.ndarray, v: np.ndarray, settings: Settings) -> Any:
        """Return the sum of squares."""
        return v + g * g


@dataclass(frozen=True)
class RMSProp(Adagrad):
    """v = rho v + (1 - rho) g^2, theta = theta - lr g / (sqrt(v) + eps) (Hinton, 2012)."""

    average: str = "paper"  # or "swapped", "sum", "first_power"

    def next_v(self, g: np.ndarray, v: np.ndarray, settings: Settings) -> Any:
        """Return the average of squares."""
        rho = settings.rho
        if self.average == "swapped":
            return (1.0 - rho) * v + rho * g * g
        if self.average == "sum":
            return rho * v + g * g
        if self.average == "first_power":
            return rho * v + (1.0 - rho) * g
        return rho * v + (1.0 - rho) * g * g


@dataclass(frozen=True)
class Adam(Rule):
    """Adam (Kingma and Ba, 2015, algorithm 1), its forms and its faults."""

    decay: str = field(default="decoupled", kw_only=True)
    correction: str = "both"  # or "none", "first", "second", "stored"
    count: str = "from_1"  # or "frozen", "from_0", "from_2"
    root: str = "once"
    eps: str = "outside"  # or "inside", "uncorrected", "none"
    betas: str = "paper"  # or "swapped", "first"
    average: str = "paper"  # or "sum_m", "sum_v", "forgotten", "first_power"
    largest: str = "none"  # or "v", "v_hat", "uncorrected": of AMSGrad

    def descend(self, g: np.ndarray, state: RuleState, t: int, settings: Settings) -> Any:
        """Return lr m_hat / (sqrt(v_hat) + eps)."""
        beta1, beta2 = self._two_betas(settings)
        m, v = self._average(g, state, beta1, beta2)
        t = {"frozen": 1, "from_0": t - 1, "from_2": t + 1}.get(self.count, t)
        correction1 = 1.0 - beta1**t if self.correction in ("both", "first", "stored") else 1.0
        correction2 = 1.0 - beta2**t if self.correction in ("both", "second", "stored") else 1.0
        m = m / np.float64(correction1)
        v_hat = v / np.float64(correction2)
        if self.correction == "stored":
            state["m"] = m
            state["v"] = v_hat
        if self.largest != "none":
            v_hat = self._largest_v(v, v_hat, state) / self._correction_of_largest(correction2)
        eps = settings.eps
        if self.eps == "uncorrected":
            eps = eps / math.sqrt(correction2) if correction2 > 0.0 else math.inf
        return settings.lr * m / divisor(v_hat, self.root, self.eps, eps)

    def _two_betas(self, settings: Settings) -> tuple[float, float]:
        if self.betas == "swapped":
            return settings.beta2, settings.beta1
        if self.betas == "first":
            return settings.beta1, settings.beta1
        return settings.beta1, settings.beta2

    def _average(
        self, g: np.ndarray, state: RuleState, beta1: float, beta2: float
    ) -> tuple[Any, Any]:
        """Return the next m and v."""
        if self.average == "forgotten":
            state.clear()
        square = g if self.average == "first_power" else g * g
        weight_m = 1.0 if self.average == "sum_m" else 1.0 - beta1
        weight_v = 1.0 if self.average == "sum_v" else 1.0 - beta2
        state["m"] = beta1 * state.get("m", 0.0) + weight_m * g
        state["v"] = beta2 * state.get("v", 0.0) + weight_v * square
        return state["m"], state["v"]

    def _largest_v(self, v: np.ndarray, v_hat: np.ndarray, state: RuleState) -> Any:
        """Return the largest v so far, corrected or not."""
        state["largest"] = np.maximum(
            state.get("largest", 0.0), v_hat if self.largest == "v_hat" else v
        )
        return state["largest"]

    def _correction_of_largest(self, correction: float) -> float:
        return correction if self.largest == "v" else 1.0


@dataclass(frozen=True)
class Lion(Rule):
    """theta = theta - lr sign(beta1 m + (1 - beta1) g) (Chen et al., 2023, algorithm 2)."""

    decay: str = field(default="decoupled", kw_only=True)
    sign: str = "mixture"  # or "moment": of m after its own update; "none"
    betas: str = "paper"  # or "swapped", "first"

    def descend(self, g: np.ndarray, state: RuleState, t: int, settings: Settings) -> Any:
        """Return lr sign(c)."""
        beta1, beta2 = settings.beta1, settings.beta2
        if self.betas == "swapped":
            beta1, beta2 = beta2, beta1
        if self.betas == "first":
            beta2 = beta1
        m = state.get("m", 0.0)
        state["m"] = beta2 * m + (1.0 - beta2) * g
        mixture = state["m"] if self.sign == "moment" else beta1 * m + (1.0 - beta1) * g
        return settings.lr * (mixture if self.sign == "none" else np.sign(mixture))


def divisor(v: np.ndarray, root: str, where_eps: str, eps: float) -> Any:
    """Return sqrt(v) + eps, or a form of it."""
    if where_eps == "inside":
        v = v + eps
    power = {"once": 0.5, "twice": 0.25, "none": 1.0}[root]
    result: np.ndarray = np.sqrt(v) if power == 0.5 else v**power
    if where_eps in ("inside", "none"):
        return result
    return result + eps
