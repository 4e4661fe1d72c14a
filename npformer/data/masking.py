"""Masked tokens: what a masked language model has to guess, and how it is hidden."""

from __future__ import annotations

import zlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from npformer.core import Array, Context, checks
from npformer.data.samples import Batch
from npformer.functional import NO_LABEL
from npformer.functional.embedding import check_ids


@dataclass(frozen=True)
class Masking:
    """BERT's choice of tokens, and what becomes of them (Devlin et al., 2019, section 3.1).

    In each row, a share of the tokens is chosen, rounded, and at least one. Most of the chosen
    become the token [MASK], some become a random token, and the rest stay as they are: the model
    does not know which tokens it will be asked for, and so keeps them all in mind.

    Parameters
    ----------
    vocab_size : int
    mask_id : int
        The id of [MASK].
    share : float
        Of the tokens, how many are chosen: 0.15 in BERT, 0.3 in ModernBERT.
    to_mask, to_random : float
        Of the chosen, how many become [MASK], and how many a random token.
    never : collection of int
        Ids that are never chosen, and never drawn. `mask_id` always is one.
    continues : bool array, shape (vocab_size,), optional
        Whether a token continues a word. If given, whole words are chosen, until their tokens are
        enough: what hides a word, hides all of it.
    """

    vocab_size: int
    mask_id: int
    share: float = 0.15
    to_mask: float = 0.8
    to_random: float = 0.1
    never: Collection[int] = ()
    continues: np.ndarray | None = None

    def __call__(
        self, ids: np.ndarray, kept: np.ndarray | None, draws: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs and targets; `draws`, (batch, length, 3), are uniform in [0, 1)."""
        usual = np.ones(self.vocab_size, dtype=bool)
        usual[self.special()] = False
        may = usual[ids] if kept is None else usual[ids] & kept
        chosen = self._chosen(ids, may, draws[..., 0])
        words = np.flatnonzero(usual)
        drawn = words[(draws[..., 2] * len(words)).astype("int64")]
        kind = draws[..., 1]
        inputs = np.where(chosen & (kind < self.to_mask + self.to_random), drawn, ids)
        inputs = np.where(chosen & (kind < self.to_mask), self.mask_id, inputs).astype(ids.dtype)
        return inputs, np.where(chosen, ids, NO_LABEL).astype("int64")

    def special(self) -> list[int]:
        """Return the ids that are never chosen, and never drawn."""
        return sorted({self.mask_id, *self.never})

    def _chosen(self, ids: np.ndarray, may: np.ndarray, draws: np.ndarray) -> np.ndarray:
        """Return which tokens are chosen: those of the words that draw the smallest numbers."""
        places = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
        first = places  # of the word that a token belongs to
        if self.continues is not None:
            begins = ~self.continues[ids] | ~may
            begins[:, 1:] |= ~may[:, :-1]
            first = np.maximum.accumulate(np.where(begins, places, 0), axis=1)
        draws = np.where(may, np.take_along_axis(draws, first, axis=1), np.inf)
        order = np.argsort(draws, axis=1, kind="stable")  # the tokens of a word stay together
        before = np.empty_like(order)  # how many tokens come before, in that order
        np.put_along_axis(before, order, places, axis=1)
        n = np.maximum(np.rint(self.share * may.sum(axis=1, keepdims=True)), 1.0)
        chosen: np.ndarray = may & (np.take_along_axis(before, first, axis=1) < n)
        return chosen

    def anew(self, batch: MaskedBatch, key: int, first: int) -> MaskedBatch:
        """Return samples with tokens chosen anew.

        They depend on the step's `key`, and on the samples' place in the batch: `first` is the
        place of the first one in the batch of all ranks.
        """
        one, y = batch.inputs[0], batch.y
        ids = np.where(y == NO_LABEL, one.x, y)  # as they were before some were hidden
        rng, length = np.random.default_rng(key), ids.shape[1]
        draws = rng.random((first + len(ids), length, 3))[first:]
        x, y = self(ids, _on_host(one), draws)
        return replace(batch, inputs=(replace(one, x=x),), y=y, counts=None)

    def fixed(self, ids: np.ndarray, kept: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs and targets for an evaluation: the same for a text wherever it stands."""
        draws = np.zeros((*ids.shape, 3))
        for i, row in enumerate(ids):
            tokens = row if kept is None else row[kept[i]]
            rng = np.random.default_rng(zlib.crc32(tokens.astype("<i8").tobytes()))
            draws[i, : len(tokens)] = rng.random((len(tokens), 3))
        if kept is not None:  # the numbers belong to the tokens, wherever padding is
            order = np.argsort(~kept, axis=1, kind="stable")
            placed = np.empty_like(draws)
            np.put_along_axis(placed, order[..., None], draws, axis=1)
            draws = placed
        return self(ids, kept, draws)


def mask_tokens(
    ids: np.ndarray,
    kept: np.ndarray | None,
    vocab_size: int,
    mask_id: int,
    rng: np.random.Generator,
    *,
    share: float = 0.15,
    to_mask: float = 0.8,
    to_random: float = 0.1,
    never: Collection[int] = (),
    continues: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Choose tokens for a masked language model to guess, and hide them as BERT does.

    Parameters
    ----------
    ids : int array, shape (batch, length)
    kept : bool array, shape (batch, length), or None
        The mask: False at padding, which is never chosen.
    rng : numpy.random.Generator
    vocab_size, mask_id, share, to_mask, to_random, never, continues
        See `Masking`.

    Returns
    -------
    inputs : int array, shape (batch, length)
        What the model sees.
    targets : int64 array, shape (batch, length)
        The ids of the chosen tokens, and -1 elsewhere.
    """
    checks.shape("ids", ids, ("batch", "length"))
    check_ids("ids", ids, vocab_size, f"vocab_size is {vocab_size}")
    if kept is not None:
        checks.mask("kept", kept, ids.shape)
    masking = checked_masking(vocab_size, mask_id, share, to_mask, to_random, never, continues)
    return masking(ids, kept, rng.random((*ids.shape, 3)))


def checked_masking(
    vocab_size: int,
    mask_id: int,
    share: float,
    to_mask: float,
    to_random: float,
    never: Collection[int],
    continues: Any,
) -> Masking:
    """Return a `Masking` of checked settings; `continues` may also be a list of ids."""
    most = vocab_size - 1
    mask_id = checks.whole("mask_id", mask_id, at_least=0, at_most=most)
    share = checks.number("mask_share", share, above=0.0)
    if share > 1.0:
        raise ValueError(f"mask_share is {share}; expected a share of the tokens, at most 1")
    to_mask, to_random = (
        checks.not_negative(name, value)
        for name, value in (("to_mask", to_mask), ("to_random", to_random))
    )
    if to_mask + to_random > 1.0 + 1e-12:
        raise ValueError(
            f"to_mask is {to_mask} and to_random {to_random}; expected shares of the chosen "
            "tokens, which are at most 1 together. The rest stay as they are"
        )
    never = tuple(checks.whole("a special id", id, 0, most) for id in never)
    if len({mask_id, *never}) == vocab_size:
        raise ValueError(f"all {vocab_size} ids are special; expected some that can be chosen")
    if continues is not None:
        continues = np.asarray(continues)
        if continues.dtype != bool:
            check_ids("continues", continues, vocab_size, f"vocab_size is {vocab_size}")
            continues = np.isin(np.arange(vocab_size), continues)
        checks.shape("continues", continues, (vocab_size,), "One entry for each token id")
    return Masking(vocab_size, mask_id, share, to_mask, to_random, never, continues)


@dataclass(frozen=True)
class MaskedBatch(Batch):
    """Samples of which only the tokens that have a target are asked for.

    `drawn` says that the model has chosen them, and may choose others.
    """

    drawn: bool = False

    def within(self, context: Context) -> Context:
        """Return `context` with padding and types, and with the tokens that are asked for."""
        return replace(super().within(context), chosen=self.y != NO_LABEL)

    def targets(self) -> tuple[Array, ...]:
        """Return the targets of these tokens, and their weights if there are any: (n,)."""
        chosen = self.y != NO_LABEL
        return tuple(each[chosen] for each in super().targets())


def _on_host(one: Any) -> np.ndarray | None:
    return None if one.padding is None else one.padding.on_host()
