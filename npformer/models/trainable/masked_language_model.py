"""MaskedLanguageModel: the model that learns from texts without labels, as users call it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from npformer.core import Seed, checks, to_numpy
from npformer.data.masking import MaskedBatch, Masking
from npformer.data.stored_samples import BYTES_AT_ONCE
from npformer.functional import NO_LABEL
from npformer.models import EncoderConfig, MaskedTokens
from npformer.models.batch import Batch
from npformer.models.losses import Loss, SoftmaxCrossEntropy
from npformer.models.sequence_model import check_padding_id
from npformer.models.trainable.model import Answers
from npformer.models.trainable.padded import Padded, PaddingNote
from npformer.models.trainable.predictions import outputs
from npformer.training.storage.models import MODELS


class MaskedLanguageModel(Padded, MaskedTokens):
    """A model that guesses hidden tokens from both sides: BERT, with the task that it learns from.

    ``model(ids)`` takes (batch, length) and returns logits, (batch, length, vocab_size). Texts are
    all that it needs to learn: there is no y, because the model hides tokens and guesses them::

        model = npformer.MaskedLanguageModel(config, vocab_size=8000, mask_id=2, padding_id=0)
        npformer.fit(model, (ids, None, mask))

    In training it hides other tokens in each step, drawn from the seed; in an evaluation always
    the same ones of a text, so that losses can be compared. Loss and accuracy are computed for the
    hidden tokens. To choose them yourself, pass (inputs, targets): see `npformer.data.mask_tokens`.

    Parameters
    ----------
    config : EncoderConfig
        Of any mixer; not causal.
    vocab_size : int
        Token ids run from 0 to vocab_size - 1.
    mask_id : int, optional
        The id of [MASK], which replaces a hidden token. None: the last id.
    padding_id : int, optional
        The id of padding: without a mask, one is made from this id. Padding is never hidden.
    head_bias : bool, optional
        Whether the head's map has a bias. None: as in `config`.
    output_bias : bool
        Whether a bias is added to the logits.
    head_activation : str, optional
        The name of the head's activation. None: as in `config`.
    tied : bool
        Whether the logits multiply by the table of the embedding (Press & Wolf, 2017). If not, the
        head has a separate matrix for them.
    expects_mask : bool
        Whether inputs are expected to come with a mask; training sets it.
    seed : int or numpy.random.Generator
        For the initial weights.
    dtype : {"float32", "float64"}
    **hiding
        Settings of `npformer.data.masking.Masking`, by default those of BERT: mask_share=0.15, the
        fraction of tokens that are hidden; to_mask=0.8 and to_random=0.1, the fractions of these
        that become [MASK] and a random token; special_ids=(), ids that are never
        hidden and never drawn, such as those of [CLS] and [SEP]; and continues=(), the ids of
        tokens that continue a word, if whole words are to be hidden.
    """

    loss: Loss = SoftmaxCrossEntropy()
    targets_of = 0
    self_supervised = True

    def __init__(
        self,
        config: EncoderConfig,
        vocab_size: int,
        *,
        mask_id: int | None = None,
        padding_id: int | None = None,
        head_bias: bool | None = None,
        output_bias: bool = True,
        head_activation: str | None = None,
        tied: bool = True,
        expects_mask: bool = False,
        seed: Seed = 0,
        dtype: str = "float32",
        **hiding: Any,
    ) -> None:
        super().__init__(
            config,
            vocab_size,
            head_bias=head_bias,
            output_bias=output_bias,
            head_activation=head_activation,
            tied=tied,
            seed=seed,
            dtype=dtype,
        )
        self.n_classes = self.vocab_size
        last = self.n_classes - 1
        self.mask_id = last if mask_id is None else checks.whole("mask_id", mask_id, 0, last)
        self.hiding = Masking(self.n_classes, self.mask_id, **hiding)
        self.padding_id = check_padding_id(padding_id, self.n_classes)
        if self.padding_id == self.mask_id:
            raise ValueError(f"padding_id and mask_id are both {self.mask_id}; expected two ids")
        self.expects_mask = checks.flag("expects_mask", expects_mask)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `__init__` except the configuration and the seed."""
        return {
            **super().arguments(),
            **vars(self.hiding),
            "padding_id": self.padding_id,
            "expects_mask": self.expects_mask,
        }

    def masking(self) -> Masking:
        """Return how tokens are chosen and hidden."""
        padding = [] if self.padding_id is None else [self.padding_id]
        return replace(self.hiding, special_ids=[*self.hiding.special_ids, *padding])

    def check_samples(
        self, inputs: Any, y: Any, loss: Loss | None = None, sample_weight: Any = None
    ) -> Batch:
        """Return checked samples. Without targets, or with x as targets, the model hides tokens."""
        if y is None and loss is None:  # a prediction
            return super().check_samples(inputs, y)
        masking = None
        if y is None or np.array_equal(to_numpy(y), to_numpy(inputs[0].x)):
            masking = self.masking()
            (sequences,) = self.check_inputs(inputs)
            mask = None if sequences.padding is None else sequences.padding.on_host()
            x, y = masking.hide_for_evaluation(to_numpy(sequences.x), mask)
            inputs = (replace(sequences, x=x),)
        batch = super().check_samples(inputs, y, loss, sample_weight)
        return MaskedBatch(**vars(batch), masking=masking)

    def answers(self, samples: Batch, batch_size: int) -> Iterator[Answers]:
        """Yield the logits of hidden tokens, a few samples at a time, the longest first.

        A hidden token has vocab_size logits: the logits of all samples would need much memory.
        """
        order = np.argsort(-samples.lengths()[:, 0], kind="stable")
        y: Any = samples.y
        n_hidden = (y != NO_LABEL).sum(axis=1)
        bytes_per_row = 8 * self.vocab_size * max(1, int(n_hidden.max(initial=1)))
        at_once = max(1, min(batch_size, BYTES_AT_ONCE // bytes_per_row))
        for rows in np.split(order, range(at_once, len(order), at_once)):
            batch = samples.select(rows)
            if self.skips_padding():
                batch = batch.cut()
            logits = to_numpy(outputs(self, batch))
            targets = [np.asarray(array) for array in batch.targets()]
            yield logits, targets, np.repeat(rows, n_hidden[rows])

    def note(self, batch: Batch, before: PaddingNote | None = None) -> PaddingNote:
        """Return whether samples have padding, and the ids of padding and of tokens."""
        if isinstance(batch, MaskedBatch):
            batch = batch.restore_hidden()
        return super().note(batch, before)


MODELS["MaskedLanguageModel"] = MaskedLanguageModel
