import cmath
import math

import numpy as np
import pytest

from npformer import functional as F


@pytest.mark.parametrize(("step", "decay"), [(1e-3, 1e-3), (1e-5, 1e-2), (1.0, 1.0), (0.1, 0.5)])
def test_what_a_token_adds_keeps_its_digits_for_small_steps(step, decay):
    parameters = [
        np.array(value, "float32") for value in ([math.log(step)], [[math.log(decay)]], [[1e-3]])
    ]
    _, (real, imaginary) = F.state_space_step(*parameters)
    log_step, log_decay, frequency = (float(parameter.flat[0]) for parameter in parameters)
    A = complex(-math.exp(log_decay), frequency)
    z = math.exp(log_step) * A
    # (e^z - 1) / A, by its series where z is small
    series = sum(z**k / math.factorial(k + 1) for k in range(20)) * math.exp(log_step)
    expected = series if abs(z) < 1.0 else (cmath.exp(z) - 1.0) / A
    np.testing.assert_allclose(real[0, 0], expected.real, rtol=5e-7)
    np.testing.assert_allclose(imaginary[0, 0], expected.imag, rtol=0, atol=5e-7 * abs(expected))
