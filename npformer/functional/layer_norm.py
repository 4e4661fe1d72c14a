"""Layer normalisation over the features of each position."""

from __future__ import annotations

from typing import Any

from npformer.core import Array, Module, checks


def layer_norm(x: Array, gamma: Array, beta: Array, eps: float = 1e-5) -> tuple[Array, Any]:
    """y = gamma (x - mean) / sqrt(var + eps) + beta (Ba, Kiros and Hinton, 2016).

    Parameters
    ----------
    x : array, shape (..., d)
        Mean and variance are taken over the last axis.
    gamma, beta : array, shape (d,)
        Scale and shift.
    eps : float
        Keeps a constant row finite. BERT and FNet use 1e-12, PyTorch 1e-5.

    Returns
    -------
    y : array, shape (..., d)
    cache : opaque
        For `layer_norm_backward`.

    Notes
    -----
    The variance is that of the row itself (divided by d, not d - 1), computed in two passes: the
    short cut E[x^2] - E[x]^2 loses every digit in float32 once the mean is large.
    """
    xp = check_layer_norm(x, gamma, beta, eps)
    centred = x - x.mean(axis=-1, keepdims=True)  # [..., d]
    variance = (centred * centred).mean(axis=-1, keepdims=True)  # [..., 1]
    inverse_std = 1.0 / xp.sqrt(variance + float(eps))  # [..., 1]
    normalised = centred * inverse_std  # [..., d]
    y = gamma * normalised + beta
    return y, (normalised, inverse_std, gamma)


def layer_norm_backward(dy: Array, cache: Any) -> tuple[Array, Array, Array]:
    """Gradients of `layer_norm`.

    Parameters
    ----------
    dy : array, shape (..., d)
        Gradient of the loss with respect to y.
    cache : opaque
        From `layer_norm`.

    Returns
    -------
    dx : array, shape (..., d)
    dgamma, dbeta : array, shape (d,)

    Notes
    -----
    Write n for the normalised row and g for the gradient that reaches it. n does not change when x
    is shifted, nor (up to eps) when it is scaled, so the gradient that reaches x can have no part
    along a constant row and none along n: both are taken out of g,

        dx = (g - mean(g) - n mean(g n)) / sqrt(var + eps).

    Term by term: x_i moves n_i itself, and every n_j through the mean and through the variance,

        dn_j / dx_i = ([i = j] - 1 / d - n_i n_j / d) / sqrt(var + eps).
    """
    normalised, inverse_std, gamma = cache
    d = normalised.shape[-1]

    # y = gamma * normalised + beta
    dbeta = dy.reshape(-1, d).sum(axis=0)
    dgamma = (dy * normalised).reshape(-1, d).sum(axis=0)
    g = dy * gamma
    # normalised = (x - mean) * inverse_std
    along_constant = g.mean(axis=-1, keepdims=True)
    along_normalised = (g * normalised).mean(axis=-1, keepdims=True)
    dx = (g - along_constant - normalised * along_normalised) * inverse_std
    return dx, dgamma, dbeta


def check_layer_norm(x: Array, gamma: Array, beta: Array, eps: float) -> Module:
    """Check that scale and shift fit the features of x; return the module of the arrays."""
    xp = checks.floating(x=x, gamma=gamma, beta=beta)
    if x.shape[-1:] == gamma.shape == beta.shape and eps >= 0.0:
        return xp  # as it is nearly always: what follows says what is wrong
    if not eps >= 0.0:
        raise ValueError(f"eps is {eps!r}; expected 0 or more, such as 1e-5")
    d = x.shape[-1] if x.ndim else 0
    checks.shape("gamma", gamma, (d,), "One scale for each feature of x")
    checks.shape("beta", beta, (d,), "One shift for each feature of x")
    return xp
