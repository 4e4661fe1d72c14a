"""The normal distribution: the area under the bell curve, and its height.

Both are right to a few units in the last place for every x, far out in the tails as well.
"""

import math

from npformer.core import Array, array_module, erfcx

FAR = 40.0
"""Further out than this from 0, the density is 0 in float64, too."""


def normal_distribution(x: Array) -> Array:
    """Phi(x): the probability that a standard normal number is below x.

    (1 + erf(x / sqrt 2)) / 2 is the textbook's form. In the lower tail erf is nearly -1, and the
    sum loses all digits: in float32 it is 57 % off at -5.5, and 0 at -6. So the tail beyond abs(x)
    is computed first, as a product:

        Phi(-|x|) = erfc(|x| / sqrt 2) / 2 = exp(-x^2 / 2) erfcx(|x| / sqrt 2) / 2,

    where erfcx(z) = exp(z^2) erfc(z) falls slowly, so that the rounding of z does not matter.
    """
    xp = array_module(x)
    distance = xp.minimum(xp.abs(x), FAR)
    tail = _bell(distance) * (0.5 * erfcx(distance * math.sqrt(0.5)))  # Phi(-|x|)
    return xp.where(x > 0.0, 1.0 - tail, tail)


def normal_density(x: Array) -> Array:
    """exp(-x^2 / 2) / sqrt(2 pi), the derivative of `normal_distribution`."""
    xp = array_module(x)
    return _bell(xp.minimum(xp.abs(x), FAR)) * (1.0 / math.sqrt(2.0 * math.pi))


def _bell(x: Array) -> Array:
    """exp(-x^2 / 2) for x from 0 to `FAR`.

    An exponential makes a relative error of the absolute one in its argument: x^2 / 2, rounded,
    would cost 50 units in the last place at x = 14. So x is split. The square of h, a multiple of
    1 / 64, is exact, and the rest of the exponent is small:

        x^2 = h^2 + (x - h) (x + h).
    """
    xp = array_module(x)
    h = xp.rint(x * 64.0) * (1.0 / 64.0)
    return xp.exp(-0.5 * (h * h)) * xp.exp(-0.5 * (x - h) * (x + h))
