"""EncoderDecoder: the model from sequences to sequences that users call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from npformer.core import Array, Padding, array_module, checks, is_array, to_numpy
from npformer.core.inputs import Sequences
from npformer.core.support.explained_errors import refuse_unknown_arguments
from npformer.functional import NO_LABEL
from npformer.models import Transformer
from npformer.models.batch import Batch
from npformer.models.losses import Loss, SoftmaxCrossEntropy
from npformer.models.trainable.model import Model
from npformer.training.generation.searching import beam_search
from npformer.training.generation.writing import list_tokens
from npformer.training.storage.models import MODELS


class EncoderDecoder(Model, Transformer):
    """The Transformer of Vaswani et al. (2017): an encoder of a source, a decoder of a target.

    ``model(source, target)`` takes two arrays of token ids, (batch, source_length) and
    (batch, target_length), and returns (batch, target_length, target_vocab): row t holds the logits
    of token t + 1 of the target. To train it, pass whole targets, from the token that marks the
    beginning to the one that marks the end. The model shifts them itself::

        model = npformer.EncoderDecoder(config, source_vocab=30, target_vocab=30)
        npformer.fit(model, (source, target))      # target: 1 at the beginning, 2 at the end

    Parameters
    ----------
    config : EncoderConfig
        Of the encoder.
    source_vocab, target_vocab : int
        Token ids of each side run from 0 to one less.
    decoder : EncoderConfig, optional
        Of the decoder, with ``causal=True``. None: `config` with ``causal=True``, so its mixer must
        be one that can be causal.
    tied : bool
        Whether source, target and output share one table, as in the paper (section 3.4).
    output_bias : bool
        Whether a bias is added to the logits of a shared table, as in Marian.
    padding_id : int
        The token id of padding on both sides, used where no mask is given. The first token of a
        target is never padding.
    begin_id, end_id : int
        The token ids that targets begin and end with: `generate` begins with the first, and stops
        at the second.
    seed : int or numpy.random.Generator
        For the initial weights.
    dtype : {"float32", "float64"}
    """

    loss: Loss = SoftmaxCrossEntropy()
    targets_of = 1

    def __init__(
        self,
        config: Any,
        source_vocab: int,
        target_vocab: int,
        *,
        decoder: Any = None,
        tied: bool = False,
        output_bias: bool = False,
        padding_id: int = 0,
        begin_id: int = 1,
        end_id: int = 2,
        seed: Any = 0,
        dtype: str = "float32",
    ) -> None:
        super().__init__(
            config,
            source_vocab,
            target_vocab,
            decoder=decoder,
            tied=tied,
            output_bias=output_bias,
            seed=seed,
            dtype=dtype,
        )
        self.n_classes = self.target_vocab
        most = min(self.source_vocab, self.target_vocab) - 1
        self.padding_id = checks.whole("padding_id", padding_id, at_least=0, at_most=most)
        most = self.target_vocab - 1
        self.begin_id = checks.whole("begin_id", begin_id, at_least=0, at_most=most)
        self.end_id = checks.whole("end_id", end_id, at_least=0, at_most=most)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `__init__` except the configuration and the seed."""
        return {
            **super().arguments(),
            "padding_id": self.padding_id,
            "begin_id": self.begin_id,
            "end_id": self.end_id,
        }

    @refuse_unknown_arguments
    def __call__(  # type: ignore[override]
        self, source: Array, target: Array, mask: Any = None, types: Any = None
    ) -> Array:
        """Return the logits at evaluation.

        Parameters
        ----------
        source : int array, shape (batch, source_length)
        target : int array, shape (batch, target_length)
            On the host or on the model's backend.
        mask : tuple of two bool arrays, each (batch, length) of its side, or None
            True = keep. None: what is not `padding_id`.
        types : tuple of two int arrays, or None
            Token types of each side.

        Returns
        -------
        logits : array, shape (batch, target_length, target_vocab)
        """
        return super().__call__(source, target, mask=mask, types=types)

    @refuse_unknown_arguments
    def generate(
        self,
        source: Array,
        max_len: int = 64,
        beams: int = 1,
        length_penalty: float = 0.6,
        *,
        mask: Array | None = None,
        never: Any = None,
    ) -> list[list[int]]:
        """Return the target that the model writes for each source.

        Parameters
        ----------
        source : int array, shape (batch, length)
        max_len : int
            At most this many tokens, and no more than the decoder has positions for.
        beams : int
            How many sequences are followed at a time. 1: always the likeliest token.
        length_penalty : float
            alpha in score = log P / ((5 + n) / 6)^alpha, for n tokens (Wu et al., 2016). The search
            is the one of tensor2tensor: it keeps 2 * beams candidates, sets finished ones aside,
            and stops when no unfinished one can become better than `beams` finished ones.
        mask : bool array, shape (batch, length), optional
            True = keep. None: what is not `padding_id`.
        never : int or list of int, optional
            Tokens that are not written, such as ids that no token of a tokenizer has.

        Returns
        -------
        targets : list of list of int
            Without the begin and end tokens.
        """
        max_len = checks.positive("max_len", max_len)
        beams = checks.positive("beams", beams)
        length_penalty = checks.not_negative("length_penalty", length_penalty)
        if length_penalty > 10.0:  # powers of it overflow
            raise ValueError(f"length_penalty is {length_penalty}; expected a number from 0 to 10")
        self.source.check(source, mask)
        if mask is None:
            mask = source != self.padding_id
        most = min(max_len, self.decoder_config.max_len)
        tokens = list_tokens("never", never, self.target_vocab)
        return beam_search(
            self, to_numpy(source), to_numpy(mask), most, beams, length_penalty, tokens
        )

    def arrange(self, x: Any, y: Any, mask: Any, types: Any) -> tuple[Any, Any, Any, Any]:
        """Return ((source, target without its last token), target without its first token)."""
        if isinstance(x, tuple) or y is None:
            return x, y, mask, types
        if getattr(y, "ndim", 0) != 2 or y.shape[1] < 2:
            checks.shape("y", y, ("batch", "length"), "Targets are whole sequences of ids")
            raise ValueError(
                f"y has shape {tuple(y.shape)}; expected at least two tokens in each target: one "
                "for the beginning, one for the end"
            )
        if mask is not None and not isinstance(mask, tuple):
            mask = mask, None
        if types is not None and not isinstance(types, tuple):
            types = types, None
        return (x, y[:, :-1]), y[:, 1:], mask, types

    def check_samples(
        self, inputs: Any, y: Array | None, loss: Loss | None = None, sample_weight: Any = None
    ) -> Batch:
        """Return checked samples; padding, and tokens after padding, are not learned."""
        source, target = inputs
        if y is not None and is_array(y) and y.shape == target.x.shape:
            if target.mask is None:
                mask = self._target_mask(target.x) & self._target_mask(y)
                target = replace(target, padding=Padding(mask))
            y = array_module(y).where(y == self.padding_id, NO_LABEL, y)
        return super().check_samples((source, target), y, loss, sample_weight)

    def check_inputs(self, inputs: tuple[Sequences, ...]) -> tuple[Sequences, ...]:
        """Check ids on both sides, and make masks for sides without one."""
        source, target = inputs
        self.source.check(source.x, source.mask, source.types)
        self.target.check(target.x, target.mask, target.types)
        if source.mask is None:
            source = _add_mask(source, source.x != self.padding_id)
        if target.mask is None:
            target = _add_mask(target, self._target_mask(target.x))
        return source, target

    def _target_mask(self, ids: Array) -> Array:
        """Return which tokens of targets are not padding; the first one never is padding."""
        mask = ids != self.padding_id
        mask[:, :1] = True
        return mask


def _add_mask(sequences: Sequences, mask: Array) -> Sequences:
    """Return an input with its mask, or as it is if the mask is known to hide nothing."""
    if isinstance(mask, np.ndarray) and mask.all():  # on a GPU, looking would wait
        return sequences
    return replace(sequences, padding=Padding(mask))


MODELS["EncoderDecoder"] = EncoderDecoder
