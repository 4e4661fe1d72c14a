"""Adam by hand."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from npformer.core import Array, checks, describe
from npformer.core.dispatch import faster
from npformer.core.support.explained_errors import refuse_unknown_arguments
from npformer.optim.layer_decay import layer_factors
from npformer.optim.optimizer import Buffer, GradientDescent
from npformer.optim.schedules import Schedule
from npformer.optim.weight_decay import check_patterns, fits_any


def adam_update(
    theta: Array,
    g: Array,
    m: Array,
    v: Array,
    *,
    t: int,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float = 0.0,
) -> None:
    """Take step t of `Adam`: change a parameter `theta` and its moments `m` and `v`, in place."""
    xp = checks.floating(theta=theta, g=g, m=m, v=v)
    if not theta.shape == g.shape == m.shape == v.shape:
        shapes = [x.shape for x in (theta, g, m, v)]
        raise ValueError(f"theta, g, m and v have the shapes {shapes}; expected one shape")
    beta1, beta2 = betas
    m[...] = beta1 * m + (1.0 - beta1) * g
    # g is squared with its factor, and v is corrected under the root: float32 holds g up to 5e20,
    # but g^2 only to 1e19.
    v[...] = beta2 * v + (math.sqrt(1.0 - beta2) * g) ** 2
    m_hat = m / (1.0 - beta1**t)
    root_of_v_hat = xp.sqrt(v) / math.sqrt(1.0 - beta2**t)
    theta *= 1.0 - lr * weight_decay
    theta -= lr * m_hat / (root_of_v_hat + eps)


def two_rates(name: str, value: Any) -> tuple[float, float]:
    """Return the decays of m and v, checked."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(f"{name} is {describe(value)}; expected two numbers, (0.9, 0.999)")
    return checks.rate(name, value[0]), checks.rate(name, value[1])


class Adam(GradientDescent):
    """Adam (Kingma and Ba, 2015, algorithm 1), optionally with the weight decay of AdamW.

    At step t, with gradient g::

        m = beta1 m + (1 - beta1) g
        v = beta2 v + (1 - beta2) g^2
        m_hat = m / (1 - beta1^t)
        v_hat = v / (1 - beta2^t)
        theta = (1 - lr weight_decay) theta
        theta = theta - lr m_hat / (sqrt(v_hat) + eps)

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
        Independently of the gradient, each step multiplies a parameter by 1 - lr weight_decay
        (Loshchilov and Hutter, 2019).
    no_decay : sequence of str
        Patterns such as ``"*.bias"``: parameters whose name matches one have no weight decay.
        `NORMS_AND_BIASES` has those that BERT leaves out.
    schedule : callable or str, optional
        A `Schedule`, or a name in `SCHEDULES` with its options: "cosine(total=1000, warmup=100)".
    layer_decay : float
        The learning rate of each block is that of the block above times this, and that of the
        embeddings is the lowest: pretrained layers near the input need to change least (Howard and
        Ruder, 2018, "discriminative fine-tuning"). 1: one rate for all. Frozen layers do not count.

    Attributes
    ----------
    steps : int
        Steps taken.
    """

    settings: ClassVar[tuple[str, ...]] = (
        "lr",
        "betas",
        "eps",
        "weight_decay",
        "layer_decay",
        "no_decay",
    )
    kinds = ("m", "v")

    @refuse_unknown_arguments
    def __init__(
        self,
        parameters: Mapping[str, Array],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        schedule: Schedule | str | None = None,
        no_decay: Sequence[str] = (),
        layer_decay: float = 1.0,
    ) -> None:
        super().__init__(parameters, lr, schedule)
        self._set_options(betas=betas, eps=eps, weight_decay=weight_decay, layer_decay=layer_decay)
        self.no_decay = () if no_decay == () else check_patterns(no_decay, parameters)

    def _set_options(
        self, *, betas: Any, eps: float, weight_decay: float, layer_decay: float
    ) -> None:
        self.betas = two_rates("betas", betas)
        self.eps = checks.number("eps", eps, above=0.0)
        self.weight_decay = checks.not_negative("weight_decay", weight_decay)
        self.layer_decay = checks.number("layer_decay", layer_decay, above=0.0)

    def _restore_options(self, values: Mapping[str, Any]) -> None:
        self._set_options(
            betas=values["betas"],
            eps=values["eps"],
            weight_decay=values["weight_decay"],
            layer_decay=values["layer_decay"],
        )

    def _update(self, buffers: list[Buffer], lr: float) -> None:
        if self.layer_decay != 1.0 or (self.no_decay and self.weight_decay):
            self._update_one_by_one(buffers, lr)
            return
        for name, theta, g in buffers:
            m, v = self._moments.of(name, theta)
            update = faster(adam_update, theta) or adam_update
            update(
                theta,
                g,
                m,
                v,
                t=self.steps,
                lr=lr,
                betas=self.betas,
                eps=self.eps,
                weight_decay=self.weight_decay,
            )

    def _update_one_by_one(self, buffers: list[Buffer], lr: float) -> None:
        """Update parameters, each with its own rate and weight decay."""
        factors = layer_factors(self.parameters, self.layer_decay)
        for name, theta, g, (m, v) in self._split_by_parameter(buffers):
            update = faster(adam_update, theta) or adam_update
            update(
                theta,
                g,
                m,
                v,
                t=self.steps,
                lr=lr * factors[name],
                betas=self.betas,
                eps=self.eps,
                weight_decay=0.0 if fits_any(name, self.no_decay) else self.weight_decay,
            )

    def _first_to_overflow(self, g: np.ndarray, moments: tuple[np.ndarray, ...]) -> np.ndarray:
        _, v = moments
        beta2 = self.betas[1]
        next_v: np.ndarray = beta2 * v + (math.sqrt(1.0 - beta2) * g) ** 2
        return next_v
