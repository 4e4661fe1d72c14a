"""Beam search: a decoder follows several sequences at a time, to find the best score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer.core import Context, asarray, to_numpy
from npformer.engine import EngineContext, fast
from npformer.models.losses import SoftmaxCrossEntropy
from npformer.training.generation.choosing import refuse_nan

EXPANDED = 2
"""Candidates looked at for each beam: half of them may have ended."""


def penalty(n: int, alpha: float) -> float:
    """Return ((5 + n) / 6)^alpha, by which log P of n tokens is divided (Wu et al., 2016)."""
    return float(((5.0 + n) / 6.0) ** alpha)


class Search:
    """The beams of one source: the sequences still being written, and those that have ended.

    score = log P / ((5 + n) / 6)^alpha for n tokens, the end included. The search is over if the
    worst of `beams` ended sequences is at least as good as the best that may still come:
    log P / ((5 + max_len) / 6)^alpha of the best beam.
    """

    def __init__(self, beams: int, max_len: int, alpha: float, end: int) -> None:
        self.beams, self.max_len, self.alpha, self.end = beams, max_len, alpha, end
        self.tokens: list[list[int]] = [[] for _ in range(beams)]
        # At first all beams are the same: only the first may be continued.
        self.log_p = np.array([0.0] + [-np.inf] * (beams - 1))
        self.ended: list[tuple[float, list[int]]] = []  # scores and tokens, the best first
        self.over = False

    def go_on(self, log_p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take the best candidates; return which beams they continue, and their new tokens.

        `log_p` has a row of log-probabilities for each beam.
        """
        n, vocab_size = len(self.tokens[0]) + 1, log_p.shape[1]
        total = (self.log_p[:, None] + log_p).reshape(-1)
        # One beam is greedy: it takes the likeliest token, and ends if that is the end.
        n_best = 1 if self.beams == 1 else EXPANDED * self.beams
        best = np.argsort(-total, kind="stable")[:n_best]
        parents, tokens = np.divmod(best, vocab_size)
        ends = tokens == self.end
        for parent, log_p_of in zip(parents[ends], total[best][ends], strict=True):
            if log_p_of > -np.inf:
                score = float(log_p_of / penalty(n, self.alpha))
                self.ended.append((score, self.tokens[parent]))
        self.ended = sorted(self.ended, key=lambda each: -each[0])[: self.beams]
        live = np.flatnonzero(~ends)[: self.beams]
        parents, tokens, self.log_p = parents[live], tokens[live], total[best][live]
        pairs = zip(parents.tolist(), tokens.tolist(), strict=True)
        self.tokens = [[*self.tokens[parent], token] for parent, token in pairs]
        possible = self.log_p.max(initial=-np.inf) / penalty(self.max_len, self.alpha)
        enough = len(self.ended) == self.beams and self.ended[-1][0] >= possible
        self.over = enough or n == self.max_len
        return parents, tokens

    def best(self) -> list[int]:
        """Return the tokens of the best sequence: an ended one if there is any."""
        return self.ended[0][1] if self.ended else self.tokens[int(self.log_p.argmax())]


def beam_search(
    model: Any,
    source: np.ndarray,
    mask: np.ndarray,
    max_len: int,
    beams: int,
    alpha: float,
    never: Sequence[int] = (),
) -> list[list[int]]:
    """Return the target that a model writes for each source, without the begin and end tokens.

    Parameters
    ----------
    model : EncoderDecoder
        Its `padding_id` is never written: it would not see it.
    source : int array, shape (batch, length)
    mask : bool array, shape (batch, length)
    max_len : int
        At most this many tokens, the end included.
    beams, alpha
        See `Search`. One beam is greedy.
    never : sequence of int
        Tokens that are not written.
    """
    twin, backend = fast(model), model.backend
    every = [Search(beams, max_len, alpha, model.end_id) for _ in source]
    rows = np.repeat(np.arange(len(source)), beams)
    context = Context(mask=asarray(mask, backend), keep=False)
    states = twin.start(asarray(source, backend), max_len, context).select(rows)
    newest, going, context = np.full(len(rows), model.begin_id), every, EngineContext(keep=False)
    while going:
        ids = asarray(newest[:, None], backend)
        logits, states = twin.next_logits(ids, states, context)
        logits = to_numpy(logits)
        refuse_nan(logits)
        logits[:, [model.padding_id, *never]] = -np.inf
        log_p = SoftmaxCrossEntropy().log_probabilities(logits)
        chosen, tokens, still = [], [], []
        for k, search in enumerate(going):
            first = k * beams
            parents, newest = search.go_on(log_p[first : first + beams])
            if not search.over:
                still.append(search)
                chosen.append(first + parents)
                tokens.append(newest)
        going = still
        if going:
            newest = np.concatenate(tokens)
            states = states.select(np.concatenate(chosen))
    return [search.best() for search in every]
