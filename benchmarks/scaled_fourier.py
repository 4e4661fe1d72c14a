"""Fourier mixing whose output is as large as its input."""

from npformer.mixers import Fourier


class ScaledFourier(Fourier):
    """y = Re(F_seq x F_hidden) / sqrt(L d / 2): as large as x, where x is noise."""

    name = "scaled_fourier"

    def mix(self, x, context):
        """Return sequences mixed and scaled."""
        y, cache = super().mix(x, context)
        return y * self.scale(x), cache

    def mix_backward(self, dy, cache, gradients):
        """Gradient of `mix`."""
        return super().mix_backward(dy * self.scale(dy), cache, gradients)

    @staticmethod
    def scale(x):
        """Return the factor for the size of x."""
        length, d_model = x.shape[-2:]
        return (2.0 / (length * d_model)) ** 0.5
