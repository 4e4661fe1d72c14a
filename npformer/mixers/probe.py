"""A probe of a causal mixer: no later token may change an earlier output."""

from __future__ import annotations

from npformer.core import Context, generators
from npformer.mixers.mixer import Mixer

LENGTH = 6
"""Tokens of the probe, or fewer if the mixer takes fewer."""

ROUNDING = {"float32": 1e-4, "float64": 1e-10}
"""What a transform may change by rounding, for features of about 1."""


def check_looks_back(mixer: Mixer, d_model: int, max_len: int, dtype: str) -> None:
    """Raise ValueError if later tokens change what a mixer makes of earlier ones.

    A model that sees what it should predict has a loss near zero, and writes nonsense.
    """
    length = min(LENGTH, max_len)
    one = generators.from_seed(0).normal(size=(1, length, d_model)).astype(dtype)
    x = one.repeat(length, axis=0)
    for t in range(1, length):  # row t differs from row 0 in token t and all that follow
        x[t, t:] = 1.0 - 2.0 * x[0, t:]
    y, _ = mixer.forward(x, Context(keep=False))
    least = ROUNDING[dtype] * max(1.0, float(abs(y[0]).max()))
    for t in range(1, length):
        change = float(abs(y[t, :t] - y[0, :t]).max())
        if change > least:
            raise ValueError(
                f"{type(mixer).__name__} is not causal: token {t} and those after it change what "
                f"it makes of earlier ones by {change:.3g}; expected no change. Its build is given "
                "settings.causal, which is True"
            )
