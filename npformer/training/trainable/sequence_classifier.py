"""SequenceClassifier: the model for classification that users call."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from npformer.core import Array, Padding, a_type, check_ends_in_padding
from npformer.core.explained_errors import in_our_words
from npformer.core.inputs import Sequences
from npformer.core.telling import tell_once
from npformer.data.samples import Batch
from npformer.layers import Pooling
from npformer.mixers import WholeSequenceMixer
from npformer.models import SequenceModel, TwoAnswers, WideSequenceModel
from npformer.models.losses import Loss
from npformer.training.storage.models import MODELS
from npformer.training.trainable.model import Model


class SequenceClassifier(Model, SequenceModel):
    """A classifier of sequences: logits = classify(pool(encoder(embed(x)))).

    Parameters
    ----------
    config : EncoderConfig
    n_classes : int
        At least 2.
    vocab_size, n_features : int, optional
        Exactly one of them. With `vocab_size`, x holds token ids, (batch, length), from 0 to
        vocab_size - 1; with `n_features`, feature vectors, (batch, length, n_features).
    pooling : {"mean", "max", "first", "flatten", "none", "pooler"}
        What is classified; a name in `npformer.layers.POOLINGS`. "mean": the mean of the tokens
        that the mask keeps. "max": the largest value of each feature among these. "first": the
        first of these. "flatten": all tokens, concatenated, with 0 for padding; every sequence then
        has max_len tokens. "none": each token separately. "pooler": the first token that the mask
        keeps, after a linear layer and tanh, as in BERT; "pooler(activation='relu')" is
        DistilBERT's.
    output : {"softmax", "sigmoid", "mean_squared_error"}
        The kind of outputs, and so the loss; a name in `npformer.losses.LOSSES`. "softmax":
        n_classes logits. "sigmoid", for two classes: a single logit, of class 1.
        "mean_squared_error": n_classes numbers, for regression.
    seed : int or numpy.random.Generator
        For the initial weights.
    dtype : {"float32", "float64"}
    """

    n_classes: int

    @property
    def targets_of(self) -> int | None:  # type: ignore[override]
        """0 without pooling, when each token has an answer; None with it."""
        return 0 if isinstance(self.pool, Pooling) and self.pool.per_token else None

    @in_our_words
    def __call__(self, x: Array, mask: Array | None = None, types: Array | None = None) -> Array:  # type: ignore[override]
        """Return the logits at evaluation.

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
        logits : array, shape (batch, n_classes), or (batch, length, n_classes) without pooling
            On the model's backend. With ``output="sigmoid"`` the last axis has size 1.
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
        return inputs if mask is None else self._with_mask(inputs[0], mask)

    def _with_mask(self, one: Sequences, mask: Array) -> tuple[Sequences]:
        """Return an input with its mask, after checking that the mixers can take it."""
        whole = any(isinstance(layer, WholeSequenceMixer) for _, layer in self.layers())
        # A mask on a GPU is left to the layers, because looking at it waits for the device.
        if whole and self.config.padding == "per_length" and isinstance(mask, np.ndarray):
            check_ends_in_padding(mask)
        return (replace(one, padding=one.padding or Padding(mask)),)

    def mask_for(self, x: Array) -> Array | None:
        """Return a mask for inputs without one: True where x is not `padding_id`. Says so once.

        A forgotten mask costs much accuracy, and raises no error.
        """
        if self.padding_id is None:
            tell_once(
                self,
                "there is no mask, and the model was trained with masks: padding is taken for "
                "tokens. Pass mask=..., True at every token, even if there is no padding",
            )
            return None
        mask = x != self.padding_id
        if isinstance(x, np.ndarray) and mask.all():  # on a device this would wait
            return None
        tell_once(
            self,
            f"there is no mask, so tokens with the id {self.padding_id}, the model's padding_id, "
            "are taken for padding. Pass mask=... to decide this yourself",
        )
        return mask

    def note(self, batch: Batch, before: Seen | None = None) -> Seen:
        """Return whether samples have padding, and which ids stand for it and for tokens."""
        seen, each = before or Seen(), batch.inputs[0]
        if each.padding is None:
            return seen
        mask = each.padding.on_host()
        seen.masked |= not mask.all()
        if self.vocab_size is not None and self.padding_id is None:
            if seen.ids is None:
                seen.ids = np.zeros((2, self.vocab_size), dtype=bool)
            seen.ids[0, each.x[~mask]] = True
            seen.ids[1, each.x[mask]] = True
        return seen

    def remember(self, notes: list[Seen]) -> None:
        """Remember whether there was padding, and its id if it is a single one, of no token."""
        if not any(seen.masked for seen in notes):
            return
        self.expects_mask = True
        of_ranks = [seen.ids for seen in notes if seen.ids is not None]
        if self.padding_id is None and of_ranks:
            at_padding, elsewhere = np.any(of_ranks, axis=0)
            ids = at_padding.nonzero()[0]
            if len(ids) == 1 and not elsewhere[ids[0]]:
                self.padding_id = int(ids[0])


class WideSequenceClassifier(SequenceClassifier, WideSequenceModel):
    """A `SequenceClassifier` of token ids, with a second answer from words and pairs of words.

    Parameters
    ----------
    config : EncoderConfig
    n_classes : int
    n_pairs : int
        See `npformer.models.WideSequenceModel`.
    **options
        Of `SequenceClassifier`.
    """

    def loss_with(self, loss: Loss | None = None, label_smoothing: float = 0.0) -> Loss:
        """Return the loss to train on, which must be one of two answers."""
        if isinstance(loss, Loss) and not isinstance(loss, TwoAnswers):
            raise ValueError(
                f"{a_type(loss)} is of one answer to each sample, and this model gives "
                "two; expected no loss (label_smoothing and class_weight do without one), an "
                "npformer.models.TwoAnswers, or a model with one answer: TextClassifier(wide=False)"
            )
        return super().loss_with(loss, label_smoothing)


@dataclass
class Seen:
    """What `SequenceClassifier.note` found in some samples."""

    masked: bool = False  # whether any token is padding
    ids: np.ndarray | None = None  # rows: whether padding has an id, and whether a token has it


MODELS["SequenceClassifier"] = SequenceClassifier
MODELS["WideSequenceClassifier"] = WideSequenceClassifier
