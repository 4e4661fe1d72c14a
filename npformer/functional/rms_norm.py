"""RMS norm: each row of features gets a root mean square of 1."""

from typing import Any

from npformer.core import Array, array_module, checks
from npformer.functional.sums import mean_along, sum_along


def rms_norm(x: Array, gamma: Array, eps: float = 1e-5) -> tuple[Array, Any]:
    """y = gamma x / sqrt(mean(x^2) + eps) (Zhang and Sennrich, 2019, arXiv 1910.07467).

    Layer norm without the mean and without the shift: what it takes out of a row is its size alone.

    Parameters
    ----------
    x : array, shape (..., d)
        The mean of squares is taken over the last axis.
    gamma : array, shape (d,)
    eps : float
        Keeps a row of zeros finite. Llama has 1e-5 or 1e-6.

    Notes
    -----
    Squares of float32 numbers overflow beyond 1.8e19. Rows as large as that become 0, as in
    PyTorch.
    """
    checks.floating(x=x, gamma=gamma)
    checks.shape("gamma", gamma, x.shape[-1:] or (0,), "One scale for each feature of x")
    checks.not_negative("eps", eps)
    mean_square = mean_along(x * x, axis=-1, keepdims=True)  # [..., 1]
    inverse_rms = 1.0 / array_module(x).sqrt(mean_square + float(eps))  # [..., 1]
    normalised = x * inverse_rms  # [..., d]
    return gamma * normalised, (normalised, inverse_rms, gamma)


def rms_norm_backward(dy: Array, cache: Any) -> tuple[Array, Array]:
    """Gradients of `rms_norm`. With s = sqrt(mean(x^2) + eps), n = x / s and g = dy gamma:

        dx = (g - n mean(g n)) / s.

    In a row of d features, n_j depends on x_i directly (if i = j) and through s, whose derivative
    is (1 / 2s) (2 / d) x_i = n_i / d. So the derivative of n_j by x_i is

        [i = j] / s - x_j / s^2 n_i / d = ([i = j] - n_i n_j / d) / s.

    Multiplied by g_j, the loss's gradient with respect to n_j, and summed over j, this is the
    formula above: the gradient without its component along the row, whose length is fixed.
    """
    normalised, inverse_rms, gamma = cache
    checks.gradient(dy, normalised.shape)
    # y = gamma * normalised, the same gamma in every row
    dgamma = sum_along((dy * normalised).reshape(-1, len(gamma)), axis=0)
    g = dy * gamma  # the gradient of `normalised` [..., d]
    # normalised = x * inverse_rms
    along_normalised = mean_along(g * normalised, axis=-1, keepdims=True)  # stretching x: nothing
    return (g - normalised * along_normalised) * inverse_rms, dgamma
