"""Causal convolutions, feature by feature: y_t depends on x_0 to x_t and on nothing later."""

from typing import Any

from npformer.core import Array, array_module, checks, fft_module
from npformer.functional.sums import sum_along


def causal_convolution(x: Array, kernel: Array) -> tuple[Array, Any]:
    """y_t = sum_{j=0}^t k_j x_{t-j}: each feature with its own kernel, as long as x.

    Parameters
    ----------
    x : array, shape (..., length, d_model)
    kernel : array, shape (max_len, d_model)
        k_j weighs the token j places back. The first `length` rows are used.

    Notes
    -----
    A product of transforms is a convolution on a circle: it would add the end of x to the beginning
    of y. With as many zeros after both, the circle is long enough, and only the first `length`
    entries are kept. This takes O(length log length) steps, where the sum takes length^2.
    """
    length = check_convolution(x, kernel)
    fft, n = fft_module(x), 2 * length  # half of the circle stays empty: nothing comes round
    x_hat = fft.rfft(x, n, axis=-2)  # [.., length + 1, d_model], complex
    k_hat = fft.rfft(kernel[:length], n, axis=0)  # [length + 1, d_model]
    # A product of transforms is the transform of the convolution.
    y = fft.irfft(x_hat * k_hat, n, axis=-2)[..., :length, :]
    return y, (x_hat, k_hat, x.shape, kernel.shape)


def causal_convolution_backward(dy: Array, cache: Any) -> tuple[Array, Array]:
    """dx_s = sum_{t>=s} k_{t-s} dy_t, and dk_j = sum_t x_{t-j} dy_t, summed over the batch.

    In y_t = sum_s k_{t-s} x_s, x_s is in every y_t that is not before it, times k_{t-s}, and k_j in
    every y_t, times x_{t-j}. Both sums run forwards in time, which the complex conjugate does.
    """
    x_hat, k_hat, x_shape, kernel_shape = cache
    xp = checks.gradient(dy, x_shape)
    fft, length = fft_module(dy), x_shape[-2]
    n = 2 * length
    dy_hat = fft.rfft(dy, n, axis=-2)  # [.., length + 1, d_model]
    # y = irfft(x_hat * k_hat)[:length]
    dx = fft.irfft(k_hat.conj() * dy_hat, n, axis=-2)[..., :length, :]
    # All samples use the same kernel: their gradients add up, before one transform back.
    of_batch = sum_along((x_hat.conj() * dy_hat).reshape(-1, *x_hat.shape[-2:]), axis=0)
    dkernel = xp.zeros(kernel_shape, dtype=dy.dtype)
    dkernel[:length] = fft.irfft(of_batch, n, axis=0)[:length]  # rows that were not used keep 0
    return dx, dkernel


def short_convolution(x: Array, kernel: Array) -> tuple[Array, Any]:
    """y_t = sum_j k_j x_{t-j} as in `causal_convolution`, for kernels of a few tokens.

    Parameters
    ----------
    x : array, shape (..., length, d_model)
    kernel : array, shape (size, d_model)
        What comes before the first token is 0.
    """
    checks.floating(x=x, kernel=kernel)
    checks.shape("x", x, (None, "length", "d_model"))
    checks.shape("kernel", kernel, ("size", x.shape[-1]), "One kernel for each feature")
    # The token itself, then the tokens j places back.
    y = x * kernel[0] if len(kernel) else array_module(x).zeros_like(x)
    for j in range(1, min(len(kernel), x.shape[-2])):
        y[..., j:, :] += x[..., :-j, :] * kernel[j]  # the first j tokens have none so far back
    return y, (x, kernel)


def short_convolution_backward(dy: Array, cache: Any) -> tuple[Array, Array]:
    """dx_s = sum_j k_j dy_{s+j}, and dk_j = sum_t x_{t-j} dy_t, summed over the batch."""
    x, kernel = cache
    xp = checks.gradient(dy, x.shape)
    dx, dkernel = xp.zeros_like(x), xp.zeros_like(kernel)
    length, d_model = x.shape[-2:]
    for j in range(min(len(kernel), length)):
        # y[j:] += x[:length - j] * kernel[j]
        later, earlier = dy[..., j:, :], x[..., : length - j, :]
        dx[..., : length - j, :] += later * kernel[j]  # x_s is in y_s, y_(s+1), ...
        dkernel[j] = sum_along(
            (earlier * later).reshape(-1, d_model), axis=0
        )  # over batch and time
    return dx, dkernel


def check_convolution(x: Array, kernel: Array) -> int:
    """Return the length of x after checking that the kernel is long enough."""
    checks.floating(x=x, kernel=kernel)
    checks.shape("x", x, (None, "length", "d_model"))
    checks.filled("x", x, "An empty array has no transform")
    checks.shape("kernel", kernel, ("max_len", x.shape[-1]), "One kernel for each feature")
    if x.shape[-2] > len(kernel):
        raise ValueError(
            f"x has length {x.shape[-2]}; expected at most {len(kernel)}, the length of the kernel"
        )
    return int(x.shape[-2])
