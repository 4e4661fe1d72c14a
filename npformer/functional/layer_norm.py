"""Layer normalisation over the features of each position."""

from typing import Any

from npformer.core import Array, array_module, checks
from npformer.functional.sums import mean_along, sum_along


def layer_norm(x: Array, gamma: Array, beta: Array | None, eps: float = 1e-5) -> tuple[Array, Any]:
    """y = gamma (x - mean) / sqrt(var + eps) + beta (Ba, Kiros and Hinton, 2016).

    Parameters
    ----------
    x : array, shape (..., d)
        Mean and variance are taken over the last axis.
    gamma, beta : array, shape (d,)
        Without a shift beta is None, as in ModernBERT.
    eps : float
        Keeps a constant row finite. BERT and FNet use 1e-12, PyTorch 1e-5. The gradient of such a
        row is multiplied by 1 / sqrt(eps), which is 1e6 for 1e-12: see `token_dropout`.

    Notes
    -----
    Squares of float32 numbers overflow beyond 1.8e19. Rows as large as that become 0, and
    NaN in PyTorch.
    """
    check_layer_norm(x, gamma, beta, eps)
    # The variance is divided by d, not d - 1. It is computed from x - mean, because E[x^2] - E[x]^2
    # loses all digits in float32 if the mean is large.
    centred = x - mean_along(x, axis=-1, keepdims=True)  # [..., d]
    # All of them still carry the rounding of a large mean: about 1e-3 in float32 at 10,000. Their
    # own mean is small and takes it out: a constant row becomes exact zeros.
    centred = centred - mean_along(centred, axis=-1, keepdims=True)
    variance = mean_along(centred * centred, axis=-1, keepdims=True)  # [..., 1]
    inverse_std = 1.0 / array_module(x).sqrt(variance + float(eps))  # [..., 1]
    normalised = centred * inverse_std  # [..., d]
    y = gamma * normalised  # [d], [..., d]: the same gamma for each token
    if beta is not None:
        y += beta
    return y, (normalised, inverse_std, gamma, beta is not None)


def layer_norm_backward(dy: Array, cache: Any) -> tuple[Array, ...]:
    """dx, dgamma and, if there was a shift, dbeta.

    With n = (x - mean) / s, s = sqrt(var + eps) and g = dy gamma:

        dx = (g - mean(g) - n mean(g n)) / s.

    In a row of d features, n_j depends on x_i directly (if i = j), through the mean and through s.
    The derivatives by x_i are:

        of the mean  1 / d
        of var       (2 / d) (x_i - mean), as differences from the mean add up to 0
        of s         (1 / 2s) (2 / d) (x_i - mean) = n_i / d
        of n_j       ([i = j] - 1 / d) / s - (x_j - mean) / s^2 n_i / d
                     = ([i = j] - 1 / d - n_i n_j / d) / s.

    Multiplied by g_j, the loss's gradient with respect to n_j, and summed over j, this is the
    formula above.
    """
    normalised, inverse_std, gamma, has_shift = cache
    checks.gradient(dy, normalised.shape)

    # y = gamma * normalised + beta, the same gamma and beta in every row
    dbeta = sum_along(dy.reshape(-1, len(gamma)), axis=0)
    dgamma = sum_along((dy * normalised).reshape(-1, len(gamma)), axis=0)  # over all tokens [d]
    g = dy * gamma  # the gradient of `normalised` [..., d]
    # normalised = (x - mean) * inverse_std
    # Moving x as a whole changes nothing [..., 1], nor does stretching it.
    along_constant = mean_along(g, axis=-1, keepdims=True)
    along_normalised = mean_along(g * normalised, axis=-1, keepdims=True)
    dx = (g - along_constant - normalised * along_normalised) * inverse_std  # g without both
    return (dx, dgamma, dbeta) if has_shift else (dx, dgamma)


def check_layer_norm(x: Array, gamma: Array, beta: Array | None, eps: float) -> None:
    """Check that scale and shift fit the features of x."""
    beta = gamma if beta is None else beta
    checks.floating(x=x, gamma=gamma, beta=beta)
    if not (x.shape[-1:] == gamma.shape == beta.shape and type(eps) is float and 0.0 <= eps < 1.0):
        checks.not_negative("eps", eps)
        d = x.shape[-1] if x.ndim else 0
        checks.shape("gamma", gamma, (d,), "One scale for each feature of x")
        checks.shape("beta", beta, (d,), "One shift for each feature of x")
