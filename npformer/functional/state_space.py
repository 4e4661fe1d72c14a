"""Diagonal state spaces: a recurrence whose convolution is known (Gu et al., 2022, S4D)."""

from typing import Any

from npformer.core import Array, array_module, checks
from npformer.functional.sums import sum_along

Pair = tuple[Array, Array]
"""A complex number: its real and its imaginary part."""


def state_space_kernel(
    log_step: Array, log_decay: Array, frequency: Array, C: Array, length: int
) -> tuple[Array, Any]:
    """k_j = 2 Re sum_n C_n (e^{z_n} - 1) / A_n e^{j z_n}, with z_n = Delta A_n.

    It is the impulse response of h_t = e^{Delta A} h_{t-1} + (e^{Delta A} - 1) / A u_t,
    y_t = 2 Re sum_n C_n h_{tn}, the differential equation h' = A h + u with u held constant for a
    step (zero-order hold): y is the convolution of k with u. A_n = -exp(log_decay) + i frequency
    has a negative real part, so the state decays. Each number n stands for itself and for its
    conjugate, hence 2 Re.

    Parameters
    ----------
    log_step : array, shape (d_model,)
        log Delta: the time between two tokens.
    log_decay, frequency : arrays, shape (d_model, n_states)
        They make the complex numbers A.
    C : array, shape (2, d_model, n_states)
        The real and the imaginary parts of C.
    length : int

    Returns
    -------
    kernel : array, shape (length, d_model)

    Notes
    -----
    Everything is written with real numbers, as are parameters, optimizers and files. A complex
    number w is two arrays, its real and its imaginary part.
    """
    length = checks.whole("length", length, at_least=0)
    checks.floating(log_step=log_step, C=C)
    # w = C (e^z - 1) / A with z = step A: pairs of real and imaginary parts [d_model, n_states].
    w, e, factors = _weights(log_step, log_decay, frequency, C)
    E = _powers(factors["z"], length)  # e^{j z}: two of [length, d_model, n_states]
    # 2 Re of a sum over states [length, d_model]
    kernel = 2.0 * sum_along(w[0] * E[0] - w[1] * E[1], axis=-1)
    return kernel, (w, e, E, factors, C)


def state_space_kernel_backward(dkernel: Array, cache: Any) -> tuple[Array, Array, Array, Array]:
    """Return dlog_step, dlog_decay, dfrequency and dC.

    For a real loss and a complex number w = a + i b, the pair of gradients (dL/da, dL/db) is
    written as one complex number g_w. If v = f(w) is analytic, g_w = g_v conj(f'(w)): that is the
    chain rule for both parts at once. So with g_j = 2 dk_j, g_w = sum_j g_j conj(e^{j z}) and
    g_z = sum_j j g_j conj(w e^{j z}), and on through w = C (e^z - 1) / A and z = Delta A.
    """
    w, e, E, factors, C = cache
    A, f, step = (factors[name] for name in ("A", "f", "step"))
    xp = checks.gradient(dkernel, E[0].shape[:2], "dkernel")
    g = 2.0 * dkernel[..., None]  # [length, d_model, 1]
    # kernel = 2 Re sum_n w e^{j z}
    gw = sum_along(g * E[0], axis=0), -sum_along(g * E[1], axis=0)
    j = xp.arange(len(dkernel), dtype=dkernel.dtype)[:, None, None]  # d e^{j z} / dz = j e^{j z}
    of_powers = sum_along(j * g * E[0], axis=0), -sum_along(j * g * E[1], axis=0)
    gz = _times_conj(of_powers, w)  # [d_model, n_states], as all that follows
    # w = C f
    gC, gf = _times_conj(gw, f), _times_conj(gw, (C[0], C[1]))
    # f = (e^z - 1) / A: df/dz = e^z / A, df/dA = -f / A
    by_A = _divide_by_conjugate(gf, A)
    gz = _plus(gz, _times_conj(by_A, e))  # z is used twice: by the powers and by f
    gA = _times_conj((-by_A[0], -by_A[1]), f)
    # z = step A
    dstep = sum_along(gz[0] * A[0] + gz[1] * A[1], axis=-1)
    gA = _plus(gA, (step[:, None] * gz[0], step[:, None] * gz[1]))  # A, too: by f and by z
    # A = -exp(log_decay) + i frequency, step = exp(log_step)
    return dstep * step, gA[0] * A[0], gA[1], xp.stack(gC)


def state_space_step(log_step: Array, log_decay: Array, frequency: Array) -> tuple[Pair, Pair]:
    """Return e^{Delta A} and (e^{Delta A} - 1) / A, as pairs of real and imaginary parts.

    They are what a token does to the state: h becomes the first times h, plus the second times u.
    """
    _, e, factors = _weights(log_step, log_decay, frequency, None)
    return e, factors["f"]


def _weights(log_step: Array, log_decay: Array, frequency: Array, C: Array | None) -> Any:
    """Return w, e^z and the numbers that they are made of, all as pairs."""
    checks.floating(log_step=log_step, log_decay=log_decay, frequency=frequency)
    checks.shape("log_decay", log_decay, (*log_step.shape, "n_states"))
    checks.shape("frequency", frequency, log_decay.shape, "As many as decays")
    xp = array_module(log_step)
    step = xp.exp(log_step)
    A = -xp.exp(log_decay), frequency
    z = step[:, None] * A[0], step[:, None] * A[1]
    grown = xp.exp(z[0])
    e = grown * xp.cos(z[1]), grown * xp.sin(z[1])
    squared = A[0] * A[0] + A[1] * A[1]
    # e^z - 1, whose real part is e^a cos b - 1 for z = a + i b: steps and decays are often small,
    # and then the difference would lose most of its digits. cos b = 1 - 2 sin^2(b / 2).
    half = xp.sin(0.5 * z[1])
    over = xp.expm1(z[0]) - 2.0 * grown * half * half, e[1]
    f = (
        (over[0] * A[0] + over[1] * A[1]) / squared,
        (over[1] * A[0] - over[0] * A[1]) / squared,
    )
    factors = {"A": A, "z": z, "f": f, "step": step}
    if C is None:
        return None, e, factors
    checks.shape("C", C, (2, *log_decay.shape), "Real and imaginary parts")
    return (C[0] * f[0] - C[1] * f[1], C[0] * f[1] + C[1] * f[0]), e, factors


def _powers(z: Pair, length: int) -> Pair:
    """Return e^{j z} for j from 0 to length - 1."""
    real, imaginary = z
    xp = array_module(real)
    j = xp.arange(length, dtype=real.dtype)[:, None, None]
    size, angle = xp.exp(j * real), j * imaginary
    return size * xp.cos(angle), size * xp.sin(angle)


def _times_conj(g: Pair, w: Pair) -> Pair:
    """Return g conj(w)."""
    return g[0] * w[0] + g[1] * w[1], g[1] * w[0] - g[0] * w[1]


def _divide_by_conjugate(g: Pair, w: Pair) -> Pair:
    """Return g / conj(w)."""
    squared = w[0] * w[0] + w[1] * w[1]
    return (g[0] * w[0] - g[1] * w[1]) / squared, (g[1] * w[0] + g[0] * w[1]) / squared


def _plus(one: Pair, other: Pair) -> Pair:
    return one[0] + other[0], one[1] + other[1]
