"""A probe of a causal mixer: no later token may change an earlier output."""

from __future__ import annotations

from npformer.core import Context, generators
from npformer.mixers.mixer import Mixer

LENGTH = 6
"""Tokens of the probe, or fewer if the mixer takes fewer."""

ROUNDING = {"float32": 1e-4, "float64": 1e-10}
"""Largest change that rounding in a transform explains, for features of about 1."""


def check_looks_back(mixer: Mixer, d_model: int, max_len: int, dtype: str) -> None:
    """Raise ValueError if later tokens change the outputs for earlier ones.

    A model that sees the tokens it should predict has a loss near zero, and writes nonsense.
    """
    length = min(LENGTH, max_len)
    sequence = generators.from_seed(0).normal(size=(1, length, d_model)).astype(dtype)
    x = sequence.repeat(length, axis=0)
    for t in range(1, length):  # row t differs from row 0 in token t and all that follow
        x[t, t:] = 1.0 - 2.0 * x[0, t:]
    y, _ = mixer.forward(x, Context(keep=False))
    tolerance = ROUNDING[dtype] * max(1.0, float(abs(y[0]).max()))
    for t in range(1, length):
        change = float(abs(y[t, :t] - y[0, :t]).max())
        if change > tolerance:
            raise ValueError(
                f"{type(mixer).__name__} is not causal: token {t} and later ones change its "
                f"outputs for earlier tokens by {change:.3g}; expected no change. Its build gets "
                "settings.causal, which is True"
            )
