"""PretrainedEncoder: an encoder with its tokenizer, and texts as vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from npformer.core import Array, Seed, asarray, checks, initializers, to_numpy
from npformer.core.inputs import inputs_of_arrays, user_arrays
from npformer.data.lengths import LongestFirst
from npformer.data.tokenizers import LibraryTokenizer
from npformer.interop.architecture import Arrays, values_of
from npformer.interop.heads import TrainedHead, drawn_weights, usable_head
from npformer.interop.masked_head import TrainedMaskedHead, special_ids_of
from npformer.interop.pretrained import Pretrained
from npformer.interop.save_pretrained import write_folder
from npformer.interop.sentences import SentenceSettings
from npformer.interop.text_inputs import Inputs, Text, inputs_of, listed_texts
from npformer.models.batch import Batch
from npformer.models.trainable import MaskedLanguageModel, SequenceClassifier
from npformer.models.trainable.model import Model
from npformer.models.trainable.predictions import results
from npformer.models.trainable.text_encoder import TextEncoder

Convert = Callable[[Array, Array | None], np.ndarray]
"""Makes an entry for each text of the vectors of its tokens and their mask; None keeps all."""

TOKENS_AT_ONCE = 256
"""Tokens in a batch on a CPU: with more, the hidden layer of a feed-forward network of BERT's sizes
no longer fits into the cache when its activation reads it."""


@dataclass(repr=False, eq=False)
class PretrainedEncoder(Pretrained):
    """An encoder with pretrained weights, its tokenizer, and its way from a text to a vector.

    `from_pretrained` makes it from a folder.

    Attributes
    ----------
    settings : SentenceSettings
        The pooling of `embed`, whether its rows have norm 1, and the length of the longest text.
    classes : list of str or None
        The names of the classes, if the folder has a trained head.
    masked : TrainedMaskedHead or None
        The head for hidden tokens, if the folder has one.
    """

    model: TextEncoder
    settings: SentenceSettings
    head: TrainedHead | None
    masked: TrainedMaskedHead | None

    @property
    def encoder(self) -> TextEncoder:
        """The weights: ``hidden, pooled = pretrained.encoder(ids, mask, types)``."""
        return self.model

    @property
    def classes(self) -> list[str] | None:
        """The names of the classes of the folder's own head; None without one."""
        return None if self.head is None else list(self.head.classes)

    @property
    def padding_id(self) -> int | None:
        """The token id of padding."""
        if isinstance(self._tokenizer, LibraryTokenizer):
            return self._tokenizer.padding_id
        found = self.origin.hf_config.get("pad_token_id")
        return found if isinstance(found, int) else None

    @property
    def max_len(self) -> int:
        """The most tokens of a text, special ones included."""
        return self.settings.max_len or self.encoder.config.max_len

    # From texts to vectors ------------------------------------------------------------------------

    def encode(self, texts: Iterable[Text], max_len: int | None = None) -> Inputs:
        """Return what the encoder takes: ids, mask and token types.

        Parameters
        ----------
        texts : iterable of str, or of pairs of str
        max_len : int, optional
            The most tokens of a text or of a pair, special ones included; None: `self.max_len`.

        Returns
        -------
        ids : int array, shape (texts, length)
            As long as the longest text.
        mask : bool array of the same shape
            True at tokens.
        types : int array of the same shape, or None
            0 in the first text of a pair and 1 in the second; None if the model has no token
            types.

        Warns
        -----
        UserWarning
            Texts are longer than `max_len`: they were cut.
        """
        return self._inputs(texts, max_len, stacklevel=3)

    def embed(self, texts: Iterable[Text], batch_size: int = 32) -> np.ndarray:
        """Return a vector for each text.

        Parameters
        ----------
        texts : iterable of str, or of pairs of str
        batch_size : int
            The most texts at a time; on a CPU fewer if they are long. They are sorted by length
            first, so little padding is computed.

        Returns
        -------
        vectors : float array, shape (texts, d_model)
            Pooled as the folder says, by default the mean of the tokens; of norm 1 for sentence
            encoders, so that the product of two rows is the cosine of their angle. After a Dense
            in the folder's modules.json they have as many entries as it has outputs.
        """
        dense = None
        if self.head is not None and not self.head.head.task:  # a Dense that ends modules.json
            dense = self.head.arrays["classify.weight"], self.head.arrays["classify.bias"]
        return self._in_batches(partial(self.settings.vectors, dense=dense), texts, batch_size)

    def hidden(self, texts: Iterable[Text], batch_size: int = 32) -> list[np.ndarray]:
        """Return the vectors of each text's tokens: one array (tokens, d_model) per text.

        ``pretrained.tokenizer.tokens(ids)`` names the tokens, special ones included.
        """

        def rows(hidden: Array, mask: Array | None) -> np.ndarray:
            on_host = to_numpy(hidden)
            found = np.empty(len(on_host), object)
            for i, each in enumerate(on_host):
                found[i] = each if mask is None else each[to_numpy(mask)[i]]
            return found

        return list(self._in_batches(rows, texts, batch_size))

    def _in_batches(self, convert: Convert, texts: Iterable[Text], batch_size: int) -> np.ndarray:
        """Convert the last layer's vectors of each batch, and join the results in order."""
        checks.positive("batch_size", batch_size)
        encoder, backend = self.encoder, self.encoder.backend
        ids, mask, types = self._inputs(texts, None, stacklevel=4)
        tokens = TOKENS_AT_ONCE if backend == "numpy" else None
        batches = LongestFirst(
            inputs_of_arrays(encoder, ids, mask, types), batch_size, True, tokens
        )

        def convert_batch(batch: Batch) -> np.ndarray:
            some_ids, some_mask, some_types = user_arrays(batch.inputs)
            kept = None if np.all(some_mask) else asarray(some_mask, backend)
            return convert(encoder(some_ids, kept, some_types).hidden, kept)

        return results(encoder, batches, len(ids), convert_batch)

    def _inputs(self, texts: Iterable[Text], max_len: int | None, stacklevel: int) -> Inputs:
        if max_len is not None:
            max_len = checks.whole("max_len", max_len, 3, self.encoder.config.max_len)
        listed = listed_texts(texts, self.settings.lower, self.settings.strip)
        ids, mask, types = inputs_of(
            listed, self.tokenizer, max_len or self.max_len, stacklevel=stacklevel + 1
        )
        return ids, mask, types if self.architecture.token_types else None

    # Fine-tuning ----------------------------------------------------------------------------------

    def classifier(
        self,
        n_classes: int | None = None,
        *,
        pooling: str | None = None,
        output: str = "softmax",
        dropout: float | None = None,
        seed: Seed = 0,
    ) -> SequenceClassifier:
        """Return a `SequenceClassifier` that starts from these weights, to be fine-tuned.

        Without `n_classes` it has the folder's own head, and computes what was trained there.
        After ``model.freeze("embed.*", "encoder.*")`` only the head is trained; with
        ``"encoder.blocks.0.*"`` and so on for all blocks but the last n, those n and the head.

        Parameters
        ----------
        n_classes : int, optional
            For a new head.
        pooling : str, optional
            That of the new head, a name in `POOLINGS`. None: that of `embed` for sentence
            encoders, and otherwise that of transformers' classifiers, so that the result can be
            written in their layout.
        output : str
            That of the new head: see `SequenceClassifier`.
        dropout : float, optional
            Of embeddings, sublayers and attention weights, instead of the configuration's.
        seed : int or numpy.random.Generator
            For the new head.
        """
        config, own = self.encoder.config, None
        if dropout is not None:
            of_weights = dropout if config.attention_dropout else 0.0
            config = replace(config, dropout=dropout, attention_dropout=of_weights)
        if n_classes is None:
            own = usable_head(self.head, pooling)
            n_classes, pooling, output = len(own.classes), own.head.pooling, own.output
        elif pooling is None:
            heads, stated = self.architecture.heads, self.origin.hf_config
            of_head = next((head for head in heads if head.fits(stated)), heads[0])
            pooling = self.settings.pooling if self.origin.sentences else of_head.pooling
        model = SequenceClassifier(
            config,
            n_classes,
            vocab_size=self.encoder.vocab_size,
            pooling=pooling,
            output=output,
            padding_id=self.padding_id,
            seed=initializers.undrawn(),  # only what is new is drawn
            dtype=self.encoder.dtype,
        )
        new = drawn_weights(model, seed) if own is None else {}
        self._fill(model, new, {} if own is None else own.arrays)
        return model

    def masked_language_model(self) -> MaskedLanguageModel:
        """Return the `MaskedLanguageModel` that a folder holds; ValueError if it has no head."""
        if self.masked is None:
            raise ValueError(
                "this folder has no head for hidden tokens that npformer has; expected one of "
                "transformers' classes ForMaskedLM in its config.json"
            )
        model = MaskedLanguageModel(
            self.encoder.config,
            self.encoder.vocab_size,
            **self.masked.arguments(),
            mask_id=getattr(self._tokenizer, "mask_id", None),
            padding_id=self.padding_id,
            special_ids=special_ids_of(self._tokenizer, self.encoder.vocab_size),
            seed=initializers.undrawn(),
            dtype=self.encoder.dtype,
        )
        self._fill(model, {}, self.masked.arrays)
        return model

    def _fill(self, model: Model, new: Arrays, own: Arrays) -> None:
        """Set all weights: new ones, those of the encoder and its pooler, and the head's own."""
        values, weights = values_of(model), new | values_of(self.encoder) | own
        known = {name: weights[name] for name in values if name in weights}
        if problems := checks.misfits(known, values):
            raise ValueError(f"the head does not fit the configuration: {problems}")
        for name, value in values.items():
            value[...] = to_numpy(weights[name])

    def save(
        self,
        folder: str | os.PathLike[str],
        model: SequenceClassifier | MaskedLanguageModel | TextEncoder | None = None,
        *,
        classes: Sequence[object] | None = None,
        head: bool = True,
        overwrite: bool = False,
    ) -> None:
        """Write a folder in the layout that this one came in: see `save_pretrained`.

        Parameters
        ----------
        folder : str or path
        model : SequenceClassifier, MaskedLanguageModel or TextEncoder, optional
            A model made from this encoder, such as a fine-tuned classifier. None: the encoder, and
            the folder's own head if it has one.
        classes, head, overwrite
            As in `save_pretrained`. The names of the folder's own classes are kept with its head.
        """
        if model is None and head and self.head is not None:
            model, classes = self.classifier(), classes or self.classes
        elif model is None and head and self.masked is not None:
            model = self.masked_language_model()
        write_folder(
            self.encoder if model is None else model,
            folder,
            self.architecture,
            self.origin,
            classes,
            head=head,
            overwrite=overwrite,
            others=values_of(self.encoder),
        )

    def __repr__(self) -> str:
        config = self.encoder.config
        sentences = f", norm {'1' if self.settings.normalize else 'free'}"
        return (
            f"PretrainedEncoder({self.architecture.model_type}, {config.n_layers} layers of "
            f"{config.d_model}, {self.encoder.vocab_size} tokens, max_len {self.max_len}, "
            f"pooling {self.settings.pooling}{sentences}, from {self.origin.folder})"
        )
