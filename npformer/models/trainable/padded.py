"""Padded: a model of one input that handles padding, and remembers the id of padding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from npformer.core import Array, Padding, check_ends_in_padding
from npformer.core.inputs import Sequences
from npformer.core.support.explained_errors import drop_class_from_names, refuse_unknown_arguments
from npformer.core.support.warn_once import warn_once
from npformer.layers import Pooling
from npformer.mixers import WholeSequenceMixer
from npformer.models.batch import Batch
from npformer.models.trainable.model import Model


@drop_class_from_names
class Padded(Model):
    """A model of one input, ids or vectors, whose rows may end in padding.

    Attributes
    ----------
    padding_id : int or None
        The token id of padding: without a mask, one is made from this id.
    expects_mask : bool
        Whether inputs are expected to come with a mask.
    """

    config: Any
    embed: Any
    vocab_size: Any
    padding_id: int | None
    expects_mask: bool
    pool: Any = None
    pooling: str = ""

    @property
    def targets_of(self) -> int | None:  # type: ignore[override]
        """0 without pooling, when each token has an answer; None with it."""
        return 0 if isinstance(self.pool, Pooling) and self.pool.per_token else None

    @refuse_unknown_arguments
    def __call__(self, x: Array, mask: Array | None = None, types: Array | None = None) -> Array:  # type: ignore[override]
        """Return the outputs at evaluation.

        Parameters
        ----------
        x : int array (batch, length), or float array (batch, length, n_features)
            On the host or on the model's backend; host arrays are uploaded.
        mask : bool array, shape (batch, length), optional
            True = keep, False = padding.
        types : int array, shape (batch, length), optional
            Token types, from 0 to n_token_types - 1; 0 if not given.

        Returns
        -------
        outputs : array, shape (batch, n_classes), or (batch, length, n_classes)
            The latter if each token has an answer. On the model's backend. With
            ``output="sigmoid"`` the last axis has size 1.
        """
        return super().__call__(x, mask=mask, types=types)

    def check_inputs(self, inputs: tuple[Sequences, ...]) -> tuple[Sequences, ...]:
        """Check ids or vectors, masks and types; without a mask, make one from `padding_id`."""
        x, mask = inputs[0].x, inputs[0].mask
        self.embed.check(x, mask, inputs[0].types)
        if mask is None and (self.padding_id is not None or self.expects_mask):
            mask = self.mask_for(x)
        if getattr(self.pool, "full_length", False) and x.shape[1] != self.config.max_len:
            raise ValueError(
                f"x has length {x.shape[1]}; expected max_len = {self.config.max_len}, because "
                f"pooling={self.pooling!r} needs every sequence at full length. Pad them and pass "
                "a mask, or use pooling='mean'"
            )
        return inputs if mask is None else self._add_mask(inputs[0], mask)

    def _add_mask(self, sequences: Sequences, mask: Array) -> tuple[Sequences]:
        """Return an input with its mask, after checking that the mixers can take it."""
        mixes_all = any(isinstance(layer, WholeSequenceMixer) for _, layer in self.layers())
        # A mask on a GPU is left to the layers, because looking at it waits for the device.
        if mixes_all and self.config.padding == "per_length" and isinstance(mask, np.ndarray):
            check_ends_in_padding(mask)
        return (replace(sequences, padding=sequences.padding or Padding(mask)),)

    def mask_for(self, x: Array) -> Array | None:
        """Return a mask for inputs without one, True where x is not `padding_id`, and warn once.

        A forgotten mask costs much accuracy, and raises no error.
        """
        if self.padding_id is None:
            warn_once(
                self,
                "there is no mask, and the model was trained with masks: padding is taken for "
                "tokens. Pass mask=..., True at every token, even if there is no padding",
            )
            return None
        mask = x != self.padding_id
        if isinstance(x, np.ndarray) and mask.all():  # on a device this would wait
            return None
        warn_once(
            self,
            f"there is no mask, so tokens with the id {self.padding_id}, the model's padding_id, "
            "are taken for padding. Pass mask=... to decide this yourself",
        )
        return mask

    def note(self, batch: Batch, before: PaddingNote | None = None) -> PaddingNote:
        """Return whether samples have padding, and the ids of padding and of tokens."""
        note = before or PaddingNote()
        sequences = batch.inputs[0]
        if sequences.padding is None:
            return note
        mask = sequences.padding.on_host()
        note.masked |= not mask.all()
        if self.vocab_size is not None and self.padding_id is None:
            if note.ids is None:
                note.ids = np.zeros((2, self.vocab_size), dtype=bool)
            note.ids[0, sequences.x[~mask]] = True
            note.ids[1, sequences.x[mask]] = True
        return note

    def remember(self, notes: list[PaddingNote]) -> None:
        """Remember whether there was padding, and its id, if it has one id that no token has."""
        if not any(note.masked for note in notes):
            return
        self.expects_mask = True
        ids_of_ranks = [note.ids for note in notes if note.ids is not None]
        if self.padding_id is None and ids_of_ranks:
            at_padding, elsewhere = np.any(ids_of_ranks, axis=0)
            ids = at_padding.nonzero()[0]
            if len(ids) == 1 and not elsewhere[ids[0]]:
                self.padding_id = int(ids[0])


@dataclass
class PaddingNote:
    """The padding in some samples, as `Padded.note` collects it."""

    masked: bool = False  # whether any token is padding
    ids: np.ndarray | None = None  # rows: whether padding has an id, and whether a token has it
