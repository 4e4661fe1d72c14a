"""What counts alone achieve on a text: interpolated n-grams of characters."""

from __future__ import annotations

import numpy as np

ORDERS = (1, 2, 5)
"""Orders of n-grams that a model is compared with. Order n sees the n - 1 characters before."""


def ngram_loss(train: str, test: str, order: int) -> float:
    r"""Return the mean of -log p of a text's characters, in nats, from counts in another text.

    Interpolated n-grams after Witten and Bell (1991): with c(h, w) for how often w follows h,
    c(h) for its sum over w, and T(h) for how many different characters follow h,

        p(w | h) = (c(h, w) + T(h) p(w | h')) / (c(h) + T(h)),

    where h' is h without its first character, and below order 1 every character is equally likely.

    Parameters
    ----------
    train, test : str
        The first characters of `test` are preceded by the last ones of `train`.
    order : int
    """
    codes = np.frombuffer((train + test).encode("utf-32-le"), dtype="<u4")
    alphabet, codes = np.unique(codes, return_inverse=True)
    n, size = len(train), len(alphabet)
    p = np.full(len(test), 1.0 / size)
    history = np.zeros(len(codes), dtype="int64")  # a number for what precedes each character
    for length in range(order):
        if length:  # one character more: the pairs are renumbered, so the numbers stay small
            before = np.concatenate([[0], history[:-1]]) * size
            before[1:] += codes[:-1]
            before[:length] = -1 - np.arange(length)[: len(before)]  # their history is cut off
            _, history = np.unique(before, return_inverse=True)
        pairs = history * size + codes
        known, counts = np.unique(pairs[:n], return_counts=True)
        of_history = np.bincount(known // size, counts, minlength=history.max(initial=0) + 1)
        kinds = np.bincount(known // size, minlength=len(of_history))
        place = np.searchsorted(known, pairs[n:]).clip(max=max(len(known) - 1, 0))
        seen_counts = np.where(known[place] == pairs[n:], counts[place], 0) if len(known) else 0
        total, follow = of_history[history[n:]], kinds[history[n:]]
        new = total == 0  # not followed by anything in `train`: the shorter history's p stays
        p = np.where(new, p, (seen_counts + follow * p) / np.where(new, 1, total + follow))
    return float(-np.log(p).mean())
