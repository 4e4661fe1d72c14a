"""The numbers of an Adam step that the kernels for NumPy and for CuPy both take."""

import math


def adam_numbers(
    t: int, lr: float, betas: tuple[float, float], eps: float, weight_decay: float = 0.0
) -> tuple[float, float, float]:
    """Return (size, eps, shrink) with theta = shrink theta - size m / (sqrt(v) + eps) at step t.

    This is the step of `npformer.Adam` with numerator and denominator multiplied by
    sqrt(1 - beta2^t): it divides once where the formula divides three times.
    """
    beta1, beta2 = betas
    root = math.sqrt(1.0 - math.pow(beta2, t))
    return lr * root / (1.0 - math.pow(beta1, t)), eps * root, 1.0 - lr * weight_decay
