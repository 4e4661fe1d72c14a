"""Masked tokens: choose the tokens that a masked language model has to guess, and hide them."""

from __future__ import annotations

import zlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from npformer.core import Context, backend_of, checks
from npformer.core.support.explained_errors import refuse_unknown_arguments
from npformer.data.lists import check_list
from npformer.functional import NO_LABEL
from npformer.functional.embedding import check_ids
from npformer.models.batch import Batch

Hidden = tuple[np.ndarray, np.ndarray]
"""Inputs with some tokens hidden, and targets: the ids of the hidden tokens, and -1 elsewhere."""


@dataclass(frozen=True)
class Masking:
    """How BERT chooses tokens and hides them (Devlin et al., 2019, section 3.1).

    In each row a fraction of the tokens is chosen, rounded, and at least one. Most of the chosen
    tokens become [MASK], some become a random token, and the rest stay as they are: the model does
    not know which tokens it has to predict, and so needs a good representation of all.

    Parameters
    ----------
    vocab_size : int
    mask_id : int
        The id of [MASK].
    mask_share : float
        The fraction of the tokens that is chosen: 0.15 in BERT, 0.3 in ModernBERT.
    to_mask, to_random : float
        The fractions of the chosen tokens that become [MASK] and a random token.
    special_ids : collection of int
        Ids that are never chosen, and never drawn as a random token. `mask_id` is always special.
    continues : collection of int
        The ids of tokens that continue a word. If there are any, all tokens of a word are chosen
        together, until there are enough: the rest of half a word is often too easy to guess.
    """

    vocab_size: int
    mask_id: int
    mask_share: float = 0.15
    to_mask: float = 0.8
    to_random: float = 0.1
    special_ids: Collection[int] = ()
    continues: Collection[int] = ()

    def __post_init__(self) -> None:
        self._set("special_ids", self._check_ids("special_ids", [self.mask_id]))
        self._set("continues", self._check_ids("continues", []))
        if len(self.special_ids) == self.vocab_size:
            raise ValueError(f"all {self.vocab_size} ids are special; expected some to be hidden")
        for name in ("mask_share", "to_mask", "to_random"):
            self._set(name, checks.not_negative(name, getattr(self, name)))
        if not 0.0 < self.mask_share <= 1.0 or self.to_mask + self.to_random > 1.0 + 1e-12:
            raise ValueError(
                f"mask_share is {self.mask_share}, to_mask is {self.to_mask} and to_random "
                f"{self.to_random}; expected a fraction of the tokens, above 0 and at most 1, and "
                "two fractions of the hidden ones, at most 1 together"
            )

    def _set(self, name: str, value: Any) -> None:
        """Set a field of this frozen dataclass."""
        object.__setattr__(self, name, value)

    def _check_ids(self, name: str, more_ids: list[int]) -> list[int]:
        """Return the ids of a field and some more, checked, sorted and each once."""
        ids = [*more_ids, *check_list(name, getattr(self, name), "token ids")]
        largest = self.vocab_size - 1
        return sorted({checks.whole(f"an id in {name}", id, 0, largest) for id in ids})

    def hide(self, ids: np.ndarray, mask: np.ndarray | None, draws: np.ndarray) -> Hidden:
        """Return inputs and targets.

        `mask` is False at padding; `draws`, (batch, length, 3), are uniform in [0, 1).
        """
        ids = ids.astype("int64")
        is_ordinary = np.ones(self.vocab_size, dtype=bool)
        is_ordinary[[*self.special_ids]] = False
        allowed = is_ordinary[ids] if mask is None else is_ordinary[ids] & mask
        chosen = self._choose(ids, allowed, draws[..., 0])
        fate = draws[..., 1]  # decides whether a chosen token becomes [MASK], random, or stays
        ordinary_ids = is_ordinary.nonzero()[0]
        random_ids = ordinary_ids[(draws[..., 2] * len(ordinary_ids)).astype("int64")]
        x = np.where(chosen & (fate < self.to_mask + self.to_random), random_ids, ids)
        x = np.where(chosen & (fate < self.to_mask), self.mask_id, x)
        return x, np.where(chosen, ids, NO_LABEL)

    def _choose(self, ids: np.ndarray, allowed: np.ndarray, draws: np.ndarray) -> np.ndarray:
        """Return True at the chosen tokens, whose words draw the smallest numbers."""
        positions = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
        word_start = positions  # where the word of each token begins
        if self.continues:
            begins_word = ~np.isin(ids, [*self.continues]) | ~allowed
            begins_word[:, 1:] |= ~allowed[:, :-1]
            word_start = np.maximum.accumulate(np.where(begins_word, positions, 0), axis=1)
        draws = np.where(allowed, np.take_along_axis(draws, word_start, axis=1), np.inf)
        order = np.argsort(draws, axis=1, kind="stable")  # the tokens of a word stay together
        rank = np.empty_like(order)  # how many tokens come before each one in that order
        np.put_along_axis(rank, order, positions, axis=1)
        n_chosen = np.rint(self.mask_share * allowed.sum(axis=1, keepdims=True))
        n_chosen = np.maximum(n_chosen, 1.0)
        chosen: np.ndarray = allowed & (np.take_along_axis(rank, word_start, axis=1) < n_chosen)
        return chosen

    def hide_for_evaluation(self, ids: np.ndarray, mask: np.ndarray | None) -> Hidden:
        """Return inputs and targets for an evaluation: a text always has the same tokens hidden.

        Neither its row nor its padding changes them.
        """
        draws = np.zeros((*ids.shape, 3))
        if mask is None:
            mask = np.ones(ids.shape, dtype=bool)
        for row_ids, row_mask, row_draws in zip(ids, mask, draws, strict=True):
            tokens = row_ids[row_mask].astype("<i8")
            rng = np.random.default_rng(zlib.crc32(tokens))
            row_draws[row_mask] = rng.random((len(tokens), 3))
        return self.hide(ids, mask, draws)


Masking.__init__ = refuse_unknown_arguments(Masking.__init__)  # type: ignore[method-assign]


def mask_tokens(
    ids: Any, mask: Any, vocab_size: int, mask_id: int, rng: Any, **hiding: Any
) -> Hidden:
    """Choose tokens that a masked language model has to guess, and hide them as BERT does.

    Parameters
    ----------
    ids : int array, shape (batch, length)
    mask : bool array, shape (batch, length), or None
        False at padding, which is never chosen.
    vocab_size, mask_id : int
    rng : numpy.random.Generator
    **hiding
        mask_share, to_mask, to_random, special_ids, continues: parameters of `Masking`.

    Returns
    -------
    inputs : int array, shape (batch, length)
        With some of the chosen tokens replaced.
    targets : int64 array, shape (batch, length)
        The ids of the chosen tokens, and -1 elsewhere.
    """
    if mask is None:
        backend_of(ids=ids)
    else:
        backend_of(ids=ids, mask=mask)
    checks.instance("rng", rng, np.random.Generator, "Write numpy.random.default_rng(0)")
    vocab_size = checks.positive("vocab_size", vocab_size)
    mask_id = checks.whole("mask_id", mask_id, 0, vocab_size - 1)
    checks.shape("ids", ids, ("batch", "length"))
    check_ids("ids", ids, vocab_size, f"vocab_size is {vocab_size}")
    if mask is not None:
        checks.mask("mask", mask, ids.shape)
    masking = Masking(vocab_size, mask_id, **hiding)
    return masking.hide(ids, mask, rng.random((*ids.shape, 3)))


@dataclass(frozen=True)
class MaskedBatch(Batch):
    """Samples whose outputs are computed only at tokens with a target.

    `masking` chooses these tokens; None if the user has chosen them.
    """

    masking: Masking | None = None

    def restore_hidden(self) -> Self:
        """Return the samples, on the host, as they were before some tokens were hidden."""
        sequences = self.inputs[0]
        ids = np.where(self.y == NO_LABEL, sequences.x, self.y)
        return replace(self, inputs=(replace(sequences, x=ids),))

    def anew(self, key: int, first: int) -> Self:
        """Return the samples with other tokens hidden, unless the user has chosen them."""
        if self.masking is None:
            return self
        sequences = self.restore_hidden().inputs[0]
        shape = (first + len(sequences.x), sequences.length, 3)
        draws = np.random.default_rng(key).random(shape)[first:]
        mask = None if sequences.padding is None else sequences.padding.on_host()
        x, y = self.masking.hide(sequences.x, mask, draws)
        return replace(self, inputs=(replace(sequences, x=x),), y=y, counts=None)

    def within(self, context: Context) -> Context:
        """Return `context` with padding and types, and with True at the tokens to predict."""
        return replace(super().within(context), chosen=self.y != NO_LABEL)

    def targets(self) -> tuple[Any, ...]:
        """Return the targets of these tokens, and their weights if there are any: (n,)."""
        has_target = self.y != NO_LABEL
        return tuple(array[has_target] for array in super().targets())
