"""One-dimensional convolution over the sequence, channels last.

With a kernel of size 1 it is a linear map of every position. So Vaswani et al. (2017, section 3.3)
describe the feed-forward network as "two convolutions with kernel size 1".
"""

from typing import Any

from npformer.core import Array, array_module, checks
from npformer.functional.sums import lay_out, sum_along


def conv1d(x: Array, W: Array, b: Array | None = None, padding: str = "same") -> tuple[Array, Any]:
    """y_t = sum_k x_{t+k-p} W_k + b, a cross-correlation as in all deep-learning libraries.

    Parameters
    ----------
    x : array, shape (batch, length, d_in)
    W : array, shape (kernel, d_in, d_out)
        One matrix for each offset k.
    b : array, shape (d_out,), optional
    padding : {"same", "valid"}
        "same": kernel - 1 zeros around the sequence, p = (kernel - 1) // 2 of them in front, and
        length_out = length. "valid": p = 0, and length_out = length - kernel + 1 > 0.

    Returns
    -------
    y : array, shape (batch, length_out, d_out)
    """
    xp = checks.floating(x=x, W=W, b=W if b is None else b)
    checks.choice("padding", padding, ("same", "valid"))
    checks.shape("W", W, ("kernel", "d_in", "d_out"))
    checks.shape("x", x, ("batch", "length", W.shape[1]), "Channels are the last axis")
    if 0 in W.shape:
        raise ValueError(f"W has shape {tuple(W.shape)}; expected no axis of size 0")
    W = lay_out(W)
    kernel, _, d_out = W.shape
    checks.positive("the kernel's size", kernel)
    if b is not None:
        checks.shape("b", b, (d_out,), "One bias for each output channel")
    batch, length, d_in = x.shape
    # Zeros on both sides; an even kernel has one more after than before.
    before, after = ((kernel - 1) // 2, kernel // 2) if padding == "same" else (0, 0)
    length_out = length + before + after - kernel + 1  # places at which the whole kernel fits
    if length_out < 1:
        raise ValueError(
            f"x has length {length} and the kernel has size {kernel}; with padding={padding!r} no "
            "position is left. Use a longer sequence, a smaller kernel, or padding='same'"
        )
    # The tokens with their surroundings [batch, before + length + after, d_in].
    padded = xp.zeros((batch, before + length + after, d_in), dtype=x.dtype)
    padded[:, before : before + length] = x  # zeros around it

    # For each offset, a linear map of a shifted view of x.
    y = padded[:, :length_out].reshape(-1, d_in) @ W[0]  # [batch * length_out, d_out]
    for k in range(1, kernel):
        y += padded[:, k : k + length_out].reshape(-1, d_in) @ W[k]  # the token k places further
    if b is not None:
        y += b
    return y.reshape(batch, length_out, d_out), (padded, W, b is not None, before, length)


def conv1d_backward(dy: Array, cache: Any) -> tuple[Array, ...]:
    """Gradients of x, W and, if there was a bias, b: for each offset as in `linear_backward`.

    y_t contains x_s W_k wherever t + k - p = s, once for each offset k. The uses of x_s add up over
    k, and those of W_k over all samples and t:

        dx_s = sum_k dy_{s-k+p} W_k^T,    dW_k = sum_t x_{t+k-p}^T dy_t,    db = sum_t dy_t.
    """
    padded, W, has_bias, before, length = cache
    xp = array_module(padded)
    kernel, d_in, d_out = W.shape
    batch, length_out = len(padded), padded.shape[1] - kernel + 1  # as in the forward pass
    checks.gradient(dy, (batch, length_out, d_out))
    drows = lay_out(dy.reshape(-1, d_out))  # [batch * length_out, d_out]

    dpadded = xp.zeros_like(padded)  # a token is used by up to `kernel` outputs: a sum
    dW = xp.empty_like(W)
    for k in range(kernel):
        # y += padded[:, k : k + length_out] @ W[k]
        dpadded[:, k : k + length_out] += (drows @ W[k].T).reshape(-1, length_out, d_in)
        dW[k] = padded[:, k : k + length_out].reshape(-1, d_in).T @ drows  # [d_in, d_out]
    # padded[:, before : before + length] = x
    dx = dpadded[:, before : before + length]
    if not has_bias:
        return dx, dW
    # y += b
    return dx, dW, sum_along(drows, axis=0)
