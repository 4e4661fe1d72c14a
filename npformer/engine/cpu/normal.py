"""The normal distribution at the cost of one vectorised exponential: for passes, and for loops.

SciPy's functions, which are used for few numbers, are not vectorised.
"""

import math
from typing import Any

import numpy as np
from scipy.special import ndtr

from npformer.core import Array
from npformer.engine.cpu.loops import LN_2, LOG2_E, exp2_of_fraction, scalar
from npformer.engine.cpu.rows import UNIT

# For passes --------------------------------------------------------------------------------------

LOG_ODDS = (
    1.59577053e00,
    7.26638836e-02,
    -6.31179886e-05,
    -1.11323962e-04,
    8.03620964e-06,
    -2.71678994e-07,
    3.68725406e-09,
)
"""Phi(x) = 1 / (1 + exp(-x P(x^2))): P's coefficients, the constant first.

log(Phi / (1 - Phi)) / x is a smooth function of x^2, fitted so that the largest relative error of
Phi is smallest from `TAIL` to -TAIL, and further out the largest error of Phi (iteratively
reweighted least squares on 20000 points from 0 to 7.5; the last digits are those found to round
best). The first is 3e-7, 5 units in the last place of float32, and the second 3e-8 max(1, x / 3). x
P(x^2) grows without bound, so Phi stays 1 beyond 7.5.
"""

TAIL = -2.1
"""Below this, where few numbers lie, rounding x P(x^2) alone loses too many digits of Phi."""

EXPONENT = [-UNIT * coefficient for coefficient in LOG_ODDS]
"""The coefficients of -P in the units of `EXP`: EXP(x times this polynomial) is e^(-x P(x^2))."""


def log_odds(square: Array, out: Array) -> None:
    """Write -P(x^2), in the units of `EXP`, into `out`."""
    np.multiply(square, EXPONENT[-1], out=out)
    for coefficient in EXPONENT[-2:0:-1]:
        out += coefficient
        out *= square
    out += EXPONENT[0]


def compute_in_float64(x: Array) -> tuple[Array, Array]:
    """Return gelu(x) and its derivative for float32 numbers, both right to the last digit."""
    z = x.astype(np.float64)
    phi = ndtr(z)
    z_phi = z * phi
    density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return z_phi, phi + z * density


# For loops ---------------------------------------------------------------------------------------

ABOVE = tuple(map(np.float32, (0.5, 0.441106503, 0.185327483, 0.0413410945, 0.00422202921)))
BELOW = tuple(map(np.float32, (1.0, 1.68009806, 1.21117369, 0.474996076, 0.103632295, 0.01058296)))
"""Phi(-x) exp(x^2 / 2) for x >= 0, as a quotient of polynomials, their constants first.

It falls from 1 / 2 as 1 / x does. The largest relative error from 0 to 16 is 7e-9 (iteratively
reweighted least squares), and no coefficient is negative, so that nothing cancels.
"""

HALF, GRID = np.float32(0.5), np.float32(64.0)
LN_2_HIGH = np.float32(round(LN_2 * 8192.0) / 8192.0)  # 13 bits
LN_2_LOW = np.float32(LN_2 - round(LN_2 * 8192.0) / 8192.0)
PER_LN_2, LOWEST = np.float32(LOG2_E), np.float32(-127.0)
ROOT_HALF = math.sqrt(0.5)
ROOT_2_HIGH = round(math.sqrt(2.0) * 33554432.0) / 33554432.0  # 25 bits
ROOT_2_LOW = -5.599088178737374e-09
DENSITY = 1.0 / math.sqrt(2.0 * math.pi)


def _bell_of_float32(x: Any) -> Any:
    h = np.floor(x * GRID + HALF) / GRID
    square, rest = HALF * (h * h), HALF * ((x - h) * (x + h))
    k = max(np.floor(HALF - square * PER_LN_2), LOWEST)
    f = (-square - k * LN_2_HIGH) - (rest + k * LN_2_LOW)  # the first difference is exact
    return exp2_of_fraction(f * PER_LN_2) * np.int32((np.int32(k) + 127) << 23).view(np.float32)


@scalar(_bell_of_float32)
def bell(x: Any) -> Any:
    """exp(-x^2 / 2) for x from 0 to `FAR`, by the same split of x as in `functional.normal`.

    In float32 as e^f 2^k, and 0 below the smallest normal number.
    """
    h = np.floor(x * 64.0 + 0.5) / 64.0
    return math.exp(-0.5 * (h * h)) * math.exp(-0.5 * ((x - h) * (x + h)))


def _tail_of_float32(x: Any, height: Any) -> Any:
    above = ABOVE[4]
    above = above * x + ABOVE[3]
    above = above * x + ABOVE[2]
    above = above * x + ABOVE[1]
    above = above * x + ABOVE[0]
    below = BELOW[5]
    below = below * x + BELOW[4]
    below = below * x + BELOW[3]
    below = below * x + BELOW[2]
    below = below * x + BELOW[1]
    below = below * x + BELOW[0]
    return height * (above / below)


@scalar(_tail_of_float32)
def tail(x: Any, height: Any) -> Any:
    """Phi(-x) for x from 0 to `FAR`, where `height` is bell(x).

    In float64 erfc(x / sqrt 2) / 2, less what the rounding of x / sqrt 2 makes of it: the density
    times x - sqrt(2) z, which is computed with z and the root of 2 each in two pieces.
    """
    z = x * ROOT_HALF
    high = np.floor(z * 1048576.0) / 1048576.0
    rest = ((x - high * ROOT_2_HIGH) - (z - high) * ROOT_2_HIGH) - z * ROOT_2_LOW
    return 0.5 * math.erfc(z) - DENSITY * height * rest
