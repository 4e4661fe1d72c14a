"""MaskedLanguageModel: the model that learns from texts without labels, as users call it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from npformer.core import Array, Seed, checks, to_numpy
from npformer.core.inputs import Sequences
from npformer.data.masking import MaskedBatch, Masking, checked_masking
from npformer.data.samples import Batch
from npformer.data.stored_samples import BYTES_AT_ONCE
from npformer.engine.team import team_of
from npformer.functional import NO_LABEL
from npformer.models import EncoderConfig, MaskedTokens
from npformer.models.losses import Loss, SoftmaxCrossEntropy
from npformer.training.storage.models import MODELS
from npformer.training.trainable.model import Answers
from npformer.training.trainable.padded import Padded, Seen


class MaskedLanguageModel(Padded, MaskedTokens):
    """A model that guesses hidden tokens from both sides: BERT, with the task that it learns from.

    ``model(ids)`` takes (batch, length) and returns logits, (batch, length, vocab_size). Texts are
    all that it needs to learn: there is no y, because the model hides tokens and guesses them::

        model = npformer.MaskedLanguageModel(config, vocab_size=8000, mask_id=2, padding_id=0)
        npformer.fit(model, (ids, None, mask))

    In training it hides other tokens in each step, drawn from the seed; in an evaluation always
    the same ones of a text, so that losses can be compared. Loss and accuracy are those of the
    hidden tokens. Whoever wants to choose them passes (inputs, targets): see
    `npformer.data.mask_tokens`.

    Parameters
    ----------
    config : EncoderConfig
        Of any mixer; not causal.
    vocab_size : int
        Token ids run from 0 to vocab_size - 1.
    mask_id : int, optional
        The id of [MASK], which stands for a hidden token. None: the last id.
    padding_id : int, optional
        The id of padding: where no mask is given, it is made from this.
    special_ids : collection of int
        Further ids that are never hidden, and never drawn: [CLS], [SEP] and the like.
    mask_share : float
        How many of a text's tokens are hidden: 0.15 in BERT, 0.3 in ModernBERT.
    to_mask, to_random : float
        How many of them become [MASK], and how many a random token. The rest stay as they are.
    continues : bool array, shape (vocab_size,), or list of ids, optional
        The tokens that continue a word. If given, whole words are hidden.
    head_bias, output_bias : bool
        Whether the head's map, and the logits, have a bias.
    expects_mask : bool
        Whether inputs are expected to come with a mask; training sets it.
    seed : int or numpy.random.Generator
        For the initial weights.
    dtype : {"float32", "float64"}
    """

    loss: Loss = SoftmaxCrossEntropy()
    targets_of = 0
    self_supervised = True
    vocab_size: int

    def __init__(
        self,
        config: EncoderConfig,
        vocab_size: int,
        *,
        mask_id: int | None = None,
        padding_id: int | None = None,
        special_ids: Collection[int] = (),
        mask_share: float = 0.15,
        to_mask: float = 0.8,
        to_random: float = 0.1,
        continues: Any = None,
        head_bias: bool = True,
        output_bias: bool = True,
        expects_mask: bool = False,
        seed: Seed = 0,
        dtype: str = "float32",
    ) -> None:
        biases = {"head_bias": head_bias, "output_bias": output_bias}
        super().__init__(config, vocab_size, **biases, seed=seed, dtype=dtype)
        most = self.n_classes = self.vocab_size
        mask_id = most - 1 if mask_id is None else mask_id
        shares = mask_share, to_mask, to_random
        checked = checked_masking(most, mask_id, *shares, special_ids, continues)
        self.mask_id, self.special_ids = checked.mask_id, list(checked.never)
        self.mask_share, self.to_mask, self.to_random = (
            checked.share,
            checked.to_mask,
            checked.to_random,
        )
        whole = checked.continues
        words = whole is not None and whole.any()
        self.continues = whole.nonzero()[0].tolist() if words else None
        self.padding_id = padding_id
        if padding_id is not None:
            self.padding_id = checks.whole("padding_id", padding_id, 0, most - 1)
        self.expects_mask = checks.flag("expects_mask", expects_mask)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `__init__` except the configuration and the seed."""
        shares = "mask_share", "to_mask", "to_random", "continues", "expects_mask"
        names = "mask_id", "padding_id", "special_ids", *shares
        return {**super().arguments(), **{name: getattr(self, name) for name in names}}

    def masking(self) -> Masking:
        """Return how tokens are chosen and hidden."""
        padding = [] if self.padding_id is None else [self.padding_id]
        shares = self.mask_share, self.to_mask, self.to_random
        never = *self.special_ids, *padding
        return checked_masking(self.vocab_size, self.mask_id, *shares, never, self.continues)

    def check_samples(
        self,
        inputs: tuple[Sequences, ...],
        y: Array | None,
        loss: Loss | None = None,
        sample_weight: Any = None,
    ) -> Batch:
        """Return checked samples. Without targets, or with x as targets, the model hides tokens."""
        if y is None and loss is None:  # a prediction
            return super().check_samples(inputs, y, loss, sample_weight)
        drawn = y is None or np.array_equal(to_numpy(y), to_numpy(inputs[0].x))
        if drawn:
            (one,) = self.check_inputs(inputs)
            kept = None if one.padding is None else one.padding.on_host()
            x, y = self.masking().fixed(to_numpy(one.x), kept)
            inputs = (replace(one, x=x),)
        batch = super().check_samples(inputs, y, loss, sample_weight)
        return MaskedBatch(**vars(batch), drawn=drawn)

    def drawn(self, batch: Batch, key: int, first: int) -> Batch:
        """Return samples with other tokens hidden, unless the user has chosen them."""
        chooses = isinstance(batch, MaskedBatch) and batch.drawn
        return self.masking().anew(batch, key, first) if chooses else batch

    def answers(self, samples: Batch, batch_size: int) -> Iterator[Answers]:
        """Yield the logits of hidden tokens, a few samples at a time, the longest first.

        There are vocab_size of them for each hidden token: those of all would need much memory.
        """
        order = np.argsort(-samples.lengths()[:, 0], kind="stable")
        counts = (to_numpy(samples.y) != NO_LABEL).sum(axis=1)
        most = BYTES_AT_ONCE // (8 * self.vocab_size * max(1, int(counts.max(initial=1))))
        at_once = max(1, min(batch_size, most))
        for start in range(0, len(order), at_once):
            rows = order[start : start + at_once]
            part = samples.select(rows)
            part = part.cut() if self.skips_padding() else part
            with team_of(self, "auto") as team:
                outputs = to_numpy(team.forward(self.upload(part)))
            targets = [np.asarray(each) for each in part.targets()]
            yield outputs, targets, np.repeat(rows, counts[rows])

    def note(self, batch: Batch, before: Seen | None = None) -> Seen:
        """Return whether samples have padding, and which ids stand for it and for tokens."""
        one, y = batch.inputs[0], batch.y
        ids = np.where(y == NO_LABEL, one.x, y)  # as they were before some were hidden
        return super().note(replace(batch, inputs=(replace(one, x=ids),)), before)


MODELS["MaskedLanguageModel"] = MaskedLanguageModel
