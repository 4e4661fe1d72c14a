"""A mask that the forward pass applies and the backward pass does not."""

from __future__ import annotations

import numpy as np

from npformer.proof.evidence import Pattern, WrongGradient

FEWEST = 3
"""Of fewer entries without a derivative, or with one, nothing is concluded."""

ZERO = 1e-8
"""A derivative of at most this share of the largest is zero up to rounding."""


def find_mask(wrong: WrongGradient) -> Pattern | None:
    """Find a gradient that is right except where the derivative is 0, as if a mask were forgotten.

    In y = m f(x), with m of zeros and ones, x has no derivative where m is 0. A backward pass that
    leaves out m, or takes another mask, is right elsewhere.
    """
    numeric = np.abs(np.where(wrong.comparable, wrong.numeric, np.nan))
    if not wrong.comparable.any():
        return None
    is_zero = numeric <= ZERO * np.nanmax(numeric)
    is_other = wrong.comparable & ~is_zero
    wrong_entries = is_zero & (np.abs(wrong.analytic) > ZERO * np.nanmax(numeric))
    if min(wrong_entries.sum(), is_other.sum()) < FEWEST:
        return None
    if not wrong.explains(np.where(is_zero, wrong.analytic, wrong.numeric)):
        return None
    words = (
        f"right wherever there is a derivative, and not 0 in {wrong_entries.sum()} of the "
        f"{is_zero.sum()} entries without one, as where the mask of a dropout or a ReLU is left "
        "out, or is another one"
    )
    return Pattern("mask left out", words)
