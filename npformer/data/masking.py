"""Masked tokens: what a masked language model has to guess, and how it is hidden."""

from __future__ import annotations

import zlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from npformer.core import Context, backend_of, checks
from npformer.core.support.explained_errors import refuse_unknown_arguments
from npformer.data.lists import listed
from npformer.functional import NO_LABEL
from npformer.functional.embedding import check_ids
from npformer.models.batch import Batch

Hidden = tuple[np.ndarray, np.ndarray]
"""Inputs, in which some tokens are hidden, and targets: the ids of these, and -1 elsewhere."""


@dataclass(frozen=True)
class Masking:
    """BERT's choice of tokens, and what becomes of them (Devlin et al., 2019, section 3.1).

    In each row a share of the tokens is chosen, rounded, and at least one. Most of the chosen
    become the token [MASK], some become a random token, and the rest stay as they are: the model
    does not know which tokens it will be asked for, and so keeps them all in mind.

    Parameters
    ----------
    vocab_size : int
    mask_id : int
        The id of [MASK].
    mask_share : float
        How many of the tokens are chosen: 0.15 in BERT, 0.3 in ModernBERT.
    to_mask, to_random : float
        How many of the chosen become [MASK], and how many a random token.
    special_ids : collection of int
        Ids that are never chosen, and never drawn. `mask_id` is always among them.
    continues : collection of int
        The ids of tokens that continue a word. If there are any, whole words are chosen, until
        their tokens are enough: half a word is often too easy.
    """

    vocab_size: int
    mask_id: int
    mask_share: float = 0.15
    to_mask: float = 0.8
    to_random: float = 0.1
    special_ids: Collection[int] = ()
    continues: Collection[int] = ()

    def __post_init__(self) -> None:
        own = vars(self)
        for name, ids in {"special_ids": [self.mask_id], "continues": []}.items():
            ids += listed(name, own[name], "token ids")
            most = self.vocab_size - 1
            own[name] = sorted({checks.whole(f"an id in {name}", id, 0, most) for id in ids})
        if len(own["special_ids"]) == self.vocab_size:
            raise ValueError(f"all {self.vocab_size} ids are special; expected some to be hidden")
        names = "mask_share", "to_mask", "to_random"
        share, masked, random = (checks.not_negative(name, own[name]) for name in names)
        own |= {"mask_share": share, "to_mask": masked, "to_random": random}
        if not 0.0 < share <= 1.0 or masked + random > 1.0 + 1e-12:
            raise ValueError(
                f"mask_share is {share}, to_mask is {masked} and to_random {random}; "
                "expected a share of the tokens, above 0 and at most 1, and two shares of the "
                "hidden ones, at most 1 together"
            )

    def hide(self, ids: np.ndarray, kept: np.ndarray | None, draws: np.ndarray) -> Hidden:
        """Return inputs and targets; `draws`, (batch, length, 3), are uniform in [0, 1)."""
        ids, usual = ids.astype("int64"), np.ones(self.vocab_size, dtype=bool)
        usual[[*self.special_ids]] = False
        may = usual[ids] if kept is None else usual[ids] & kept
        chosen = self._chosen(ids, may, draws[..., 0])
        words, kind = usual.nonzero()[0], draws[..., 1]
        drawn = words[(draws[..., 2] * len(words)).astype("int64")]
        x = np.where(chosen & (kind < self.to_mask + self.to_random), drawn, ids)
        x = np.where(chosen & (kind < self.to_mask), self.mask_id, x)
        return x, np.where(chosen, ids, NO_LABEL)

    def _chosen(self, ids: np.ndarray, may: np.ndarray, draws: np.ndarray) -> np.ndarray:
        """Return which tokens are chosen: those of the words that draw the smallest numbers."""
        first = places = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
        if self.continues:  # first: where the word of each token begins
            begins = ~np.isin(ids, [*self.continues]) | ~may
            begins[:, 1:] |= ~may[:, :-1]
            first = np.maximum.accumulate(np.where(begins, places, 0), axis=1)
        draws = np.where(may, np.take_along_axis(draws, first, axis=1), np.inf)
        order = np.argsort(draws, axis=1, kind="stable")  # the tokens of a word stay together
        before = np.empty_like(order)  # how many tokens come before, in that order
        np.put_along_axis(before, order, places, axis=1)
        n = np.maximum(np.rint(self.mask_share * may.sum(axis=1, keepdims=True)), 1.0)
        chosen: np.ndarray = may & (np.take_along_axis(before, first, axis=1) < n)
        return chosen

    def fixed(self, ids: np.ndarray, kept: np.ndarray | None) -> Hidden:
        """Return inputs and targets for an evaluation: the same for a text wherever it stands."""
        draws = np.zeros((*ids.shape, 3))
        kept = np.ones(ids.shape, dtype=bool) if kept is None else kept
        for row, mask, numbers in zip(ids, kept, draws, strict=True):
            tokens = row[mask].astype("<i8")
            numbers[mask] = np.random.default_rng(zlib.crc32(tokens)).random((len(tokens), 3))
        return self.hide(ids, kept, draws)


Masking.__init__ = refuse_unknown_arguments(Masking.__init__)  # type: ignore[method-assign]


def mask_tokens(
    ids: Any, kept: Any, vocab_size: int, mask_id: int, rng: Any, **hiding: Any
) -> Hidden:
    """Choose tokens for a masked language model to guess, and hide them as BERT does.

    Parameters
    ----------
    ids : int array, shape (batch, length)
    kept : bool array, shape (batch, length), or None
        The mask: False at padding, which is never chosen.
    vocab_size, mask_id : int
    rng : numpy.random.Generator
    **hiding
        mask_share, to_mask, to_random, special_ids, continues: those of `Masking`.

    Returns
    -------
    inputs : int array, shape (batch, length)
        What the model sees.
    targets : int64 array, shape (batch, length)
        The ids of the chosen tokens, and -1 elsewhere.
    """
    backend_of(ids=ids) if kept is None else backend_of(ids=ids, kept=kept)
    checks.instance("rng", rng, np.random.Generator, "Write numpy.random.default_rng(0)")
    vocab_size = checks.positive("vocab_size", vocab_size)
    mask_id = checks.whole("mask_id", mask_id, 0, vocab_size - 1)
    checks.shape("ids", ids, ("batch", "length"))
    check_ids("ids", ids, vocab_size, f"vocab_size is {vocab_size}")
    if kept is not None:
        checks.mask("kept", kept, ids.shape)
    return Masking(vocab_size, mask_id, **hiding).hide(ids, kept, rng.random((*ids.shape, 3)))


@dataclass(frozen=True)
class MaskedBatch(Batch):
    """Samples of which only the tokens that have a target are asked for.

    `masking` says how they are chosen; None if the user has done that.
    """

    masking: Masking | None = None

    def shown(self) -> Self:
        """Return the samples, on the host, as they were before some tokens were hidden."""
        one = self.inputs[0]
        ids = np.where(self.y == NO_LABEL, one.x, self.y)
        return replace(self, inputs=(replace(one, x=ids),))

    def anew(self, key: int, first: int) -> Self:
        """Return the samples with other tokens hidden, unless the user has chosen them."""
        if self.masking is None:
            return self
        one = self.shown().inputs[0]
        draws = np.random.default_rng(key).random((first + len(one.x), one.length, 3))[first:]
        kept = None if one.padding is None else one.padding.on_host()
        x, y = self.masking.hide(one.x, kept, draws)
        return replace(self, inputs=(replace(one, x=x),), y=y, counts=None)

    def within(self, context: Context) -> Context:
        """Return `context` with padding and types, and with the tokens that are asked for."""
        return replace(super().within(context), chosen=self.y != NO_LABEL)

    def targets(self) -> tuple[Any, ...]:
        """Return the targets of these tokens, and their weights if there are any: (n,)."""
        return tuple(each[self.y != NO_LABEL] for each in super().targets())
