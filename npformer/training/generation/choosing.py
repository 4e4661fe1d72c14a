"""Which token follows: the likeliest one, or one that is drawn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npformer.core import checks
from npformer.core.generators import child_of_seed
from npformer.functional import softmax


class Choice:
    """How a token is chosen from logits.

    The logits are divided by the temperature; then the `top_k` likeliest tokens stay, and of these
    the fewest whose probabilities sum to at least `top_p` (Holtzman et al., 2020).

    Parameters
    ----------
    temperature : float
        0: the likeliest token, the first if there are several. Above 1, tokens become more alike.
    top_k : int, optional
        None: all.
    top_p : float, optional
        Above 0 and at most 1. None: all.
    never : sequence of int
        Tokens that are not chosen.
    """

    def __init__(
        self,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        never: Sequence[int] = (),
    ) -> None:
        self.temperature = checks.not_negative("temperature", temperature)
        self.top_k = None if top_k is None else checks.positive("top_k", top_k)
        if top_p is not None:
            checks.number("top_p", top_p, above=0.0)
            if top_p > 1.0:
                raise ValueError(f"top_p is {top_p}; expected a number above 0 and at most 1")
        self.top_p = top_p
        self.never = list(never)

    def allowed(self, logits: np.ndarray) -> np.ndarray:
        """Return the logits of the tokens that may be chosen, and -inf for those that may not.

        Raises ValueError if a logit is NaN.
        """
        refuse_nan(logits)
        if not self.never:
            return logits
        allowed = logits.copy()
        allowed[:, self.never] = -np.inf
        return allowed

    def probabilities(self, logits: np.ndarray) -> np.ndarray:
        """Return the distribution to draw from, (batch, vocab_size), in float64."""
        logits = self.allowed(logits).astype("float64")
        if self.temperature == 0.0:
            likeliest = np.arange(logits.shape[1]) == logits.argmax(axis=1)[:, None]
            return np.asarray(likeliest, dtype="float64")
        with np.errstate(over="ignore"):  # the others are -inf then, and exp(-inf) is 0
            p, _ = softmax((logits - logits.max(axis=1, keepdims=True)) / self.temperature)
        if self.top_k is None and self.top_p is None:
            return np.asarray(p)
        order = np.argsort(-p, axis=1, kind="stable")
        likeliest = np.take_along_axis(p, order, axis=1)
        is_kept = np.ones(p.shape, dtype=bool)
        if self.top_k is not None:
            is_kept[:, self.top_k :] = False
            likeliest = np.where(is_kept, likeliest, 0.0)
            likeliest /= likeliest.sum(axis=1, keepdims=True)
        if self.top_p is not None:
            before = likeliest.cumsum(axis=1) - likeliest  # the first token always stays
            is_kept &= before < self.top_p
        np.put_along_axis(p, order, np.where(is_kept, likeliest, 0.0), axis=1)
        p /= p.sum(axis=1, keepdims=True)
        return np.asarray(p)

    def draw(self, logits: np.ndarray, generators: Sequence[np.random.Generator]) -> np.ndarray:
        """Return a token for each row, (batch,), each drawn by the generator of its row."""
        if self.temperature == 0.0:
            return np.asarray(self.allowed(logits).argmax(axis=1))
        p = self.probabilities(logits)
        below = p.cumsum(axis=1)
        numbers = np.array([generator.random() for generator in generators])
        # Token t is drawn if the number lies between the sums up to it, without it and with it.
        drawn = (below <= (numbers * below[:, -1])[:, None]).sum(axis=1)
        last = p.shape[1] - 1 - (p[:, ::-1] > 0.0).argmax(axis=1)  # rounding may lead beyond it
        return np.asarray(np.minimum(drawn, last))


def refuse_nan(logits: np.ndarray) -> None:
    """Raise ValueError if a logit is NaN: the largest of them would be token 0, or none."""
    rows = np.flatnonzero(np.isnan(logits).any(axis=1))
    if len(rows):
        raise ValueError(
            f"the logits of the next token are NaN in row {rows[0]} of the batch; expected "
            "numbers, to choose a token by. A weight of the model is NaN, or a number became too "
            "large: nf.trace(model, ids) shows after which layer"
        )


def generators_of(seed: int, n: int) -> list[np.random.Generator]:
    """Return a generator for each row: row i draws from child i of the seed, whatever follows."""
    seed = checks.whole("seed", seed, at_least=0)
    return [np.random.default_rng(child_of_seed(seed, number=row)) for row in range(n)]
