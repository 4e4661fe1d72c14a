"""Fourier mixing for a GPT, as two mixers: a triangle of the Fourier matrix, and a convolution."""

import numpy as np

from npformer import Parameter
from npformer.core import checks, constants, fft_module, generators, initializers
from npformer.mixers import Mixer


class CausalMixer(Mixer):
    """A linear map of the sequence in which token t takes only from tokens 0 to t."""

    dropout_follows = False

    def explain(self, x, context):
        """Return the matrix: each column is the result for one feature that is 1 at one token."""
        length = x.shape[1]
        impulses = np.zeros((length, length, x.shape[2]), x.dtype)
        impulses[np.arange(length), np.arange(length), 0] = 1.0
        matrix = self.forward(impulses, context)[0][:, :, 0].T  # row t: what token t takes
        return np.broadcast_to(matrix, (x.shape[0], 1, length, length))


class CausalFourier(CausalMixer):
    """y = Re(tril(F_seq) x F_hidden) / scale: no token takes from later ones.

    F_seq is the matrix for the longest sequence, and a shorter one uses its top left corner: with
    the matrix for its own length, its results would reveal how much text is still to come.

    Parameters
    ----------
    max_len : int
        Length of the longest sequence.
    unitary : bool
        Whether to divide by the square root of (max_len d_model); as published, there is no scale.
    """

    def __init__(self, max_len, unitary=False):
        self.max_len = max_len
        self.unitary = unitary

    @classmethod
    def build(cls, settings, *, seed, dtype, unitary=False):
        """Make this mixer for an encoder."""
        return cls(settings.max_len, unitary)

    def forward(self, x, context):
        """Return the result and no cache."""
        checks.shape("x", x, ("batch", "length", "d_model"))
        over_sequence, over_features = self.matrices(x)
        return (over_sequence @ x @ over_features).real, None

    def backward(self, dy, cache, gradients):
        """Return dx: it uses the other triangle, so this map is not its own backward pass."""
        over_sequence, over_features = self.matrices(dy)
        return (over_sequence.T @ dy @ over_features).real

    def matrices(self, x):
        """Return both matrices; the one for the features is symmetric."""
        _, length, d_model = x.shape
        dtype = np.result_type(x.dtype, np.complex64)
        over_sequence = np.tril(constants.fourier_matrix(self.max_len)[:length, :length])
        if self.unitary:
            over_sequence = over_sequence / np.sqrt(self.max_len * d_model)
        matrices = over_sequence, constants.fourier_matrix(d_model)
        return [matrix.astype(dtype) for matrix in matrices]


class CausalConvolution(CausalMixer):
    """y_t = sum over s <= t of k_(t-s) x_s, for each feature: a product of Fourier transforms.

    Attributes
    ----------
    kernel : Parameter, shape (max_len, d_model)
        Row j holds the weights of the token j steps back.
    """

    def __init__(self, d_model, max_len, *, seed, dtype="float32"):
        rng = generators.from_seed(seed)
        normal = initializers.normal(max_len**-0.5)
        self.kernel = Parameter(initializers.draw(normal, rng, (max_len, d_model), dtype))

    @classmethod
    def build(cls, settings, *, seed, dtype):
        """Make this mixer for an encoder."""
        return cls(settings.d_model, settings.max_len, seed=seed, dtype=dtype)

    def forward(self, x, context):
        """Return the result, and both transforms."""
        checks.shape("x", x, ("batch", "length", "d_model"))
        length = x.shape[1]
        kernel_f = self.transform(self.kernel.value[:length])
        x_f = self.transform(x)
        return self.inverse(kernel_f * x_f, length), (kernel_f, x_f)

    def backward(self, dy, cache, gradients):
        """Return dx; conjugate transforms sum over later tokens instead of earlier ones."""
        kernel_f, x_f = cache
        length = dy.shape[1]
        dy_f = self.transform(dy)
        dkernel = np.zeros_like(self.kernel.value)
        dkernel[:length] = self.inverse((dy_f * x_f.conj()).sum(axis=0), length)
        gradients.add(self.kernel, dkernel)
        return self.inverse(dy_f * kernel_f.conj(), length)

    @staticmethod
    def transform(x):
        """Return the transform over the tokens, zero-padded to twice the length: no wrap-around."""
        return fft_module(x).rfft(x, 2 * x.shape[-2], axis=-2)

    @staticmethod
    def inverse(x_f, length):
        """Return the inverse transform's first tokens."""
        return fft_module(x_f).irfft(x_f, 2 * length, axis=-2)[..., :length, :]
