"""PretrainedEncoder: an encoder with its tokenizer, which turns texts into vectors."""

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
from npformer.interop.heads import TrainedHead, draw_weights, usable_head
from npformer.interop.masked_head import TrainedMaskedHead, special_ids_of
from npformer.interop.pretrained import Pretrained
from npformer.interop.save_pretrained import write_folder
from npformer.interop.sentences import SentenceSettings
from npformer.interop.text_inputs import Inputs, Text, check_texts_or_pairs, encode_texts
from npformer.models.batch import Batch
from npformer.models.trainable import MaskedLanguageModel, SequenceClassifier
from npformer.models.trainable.model import Model
from npformer.models.trainable.predictions import results
from npformer.models.trainable.text_encoder import TextEncoder

Convert = Callable[[Array, Array | None], np.ndarray]
"""Computes an entry for each text from the vectors of its tokens and their mask, if any."""

TOKENS_AT_ONCE = 256
"""Tokens of a batch on a CPU. With more, the hidden layer of a feed-forward network of BERT's size
no longer fits into the cache when its activation reads it."""


@dataclass(repr=False, eq=False)
class PretrainedEncoder(Pretrained):
    """An encoder with pretrained weights, its tokenizer, and the settings of sentence vectors.

    `from_pretrained` reads it from a folder.

    Attributes
    ----------
    settings : SentenceSettings
        The pooling of `embed`, whether its vectors have norm 1, and the maximum length of a text.
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
        """The names of the classes of the folder's head; None without one."""
        return None if self.head is None else list(self.head.classes)

    @property
    def padding_id(self) -> int | None:
        """The token id of padding."""
        if isinstance(self._tokenizer, LibraryTokenizer):
            return self._tokenizer.padding_id
        padding_id = self.source_folder.hf_config.get("pad_token_id")
        return padding_id if isinstance(padding_id, int) else None

    @property
    def max_len(self) -> int:
        """Maximum number of tokens of a text, with special tokens."""
        return self.settings.max_len or self.encoder.config.max_len

    # From texts to vectors ------------------------------------------------------------------------

    def encode(self, texts: Iterable[Text], max_len: int | None = None) -> Inputs:
        """Return the inputs of the encoder: ids, mask and token types.

        Parameters
        ----------
        texts : iterable of str, or of pairs of str
        max_len : int, optional
            Maximum number of tokens of a text or a pair, with special tokens. None: `self.max_len`.

        Returns
        -------
        ids : int array, shape (texts, length)
            `length` is the length of the longest text.
        mask : bool array of the same shape
            True at tokens.
        types : int array of the same shape, or None
            0 in the first text of a pair and 1 in the second; None if the model has no token
            types.

        Warns
        -----
        UserWarning
            Texts longer than `max_len` were cut.
        """
        return self._inputs(texts, max_len, stacklevel=3)

    def embed(self, texts: Iterable[Text], batch_size: int = 32) -> np.ndarray:
        """Return a vector for each text.

        Parameters
        ----------
        texts : iterable of str, or of pairs of str
        batch_size : int
            Maximum number of texts in a batch; fewer on a CPU if they are long. Texts are sorted by
            length first, so that little padding is computed.

        Returns
        -------
        vectors : float array, shape (texts, d_model)
            Pooled by the setting of the folder, by default the mean of the tokens. For sentence
            encoders they have norm 1, so the dot product of two vectors is the cosine of their
            angle. With a Dense in the folder's modules.json, the entries are its outputs.
        """
        dense = None
        if self.head is not None and not self.head.head.task:  # a Dense at the end of modules.json
            dense = self.head.arrays["classify.weight"], self.head.arrays["classify.bias"]
        pool = partial(self.settings.vectors, dense=dense)
        return self._convert_batches(pool, texts, batch_size)

    def hidden(self, texts: Iterable[Text], batch_size: int = 32) -> list[np.ndarray]:
        """Return the vectors of the tokens of each text: an array (tokens, d_model) per text.

        ``pretrained.tokenizer.tokens(ids)`` returns the tokens, special ones included.
        """

        def remove_padding(hidden: Array, mask: Array | None) -> np.ndarray:
            vectors = to_numpy(hidden)
            result = np.empty(len(vectors), object)
            for i, vectors_of_text in enumerate(vectors):
                if mask is None:
                    result[i] = vectors_of_text
                else:
                    result[i] = vectors_of_text[to_numpy(mask)[i]]
            return result

        return list(self._convert_batches(remove_padding, texts, batch_size))

    def _convert_batches(
        self, convert: Convert, texts: Iterable[Text], batch_size: int
    ) -> np.ndarray:
        """Apply `convert` to the last layer's vectors of each batch; join the results in order."""
        checks.positive("batch_size", batch_size)
        encoder = self.encoder
        backend = encoder.backend
        ids, mask, types = self._inputs(texts, None, stacklevel=4)
        batches = LongestFirst(
            inputs_of_arrays(encoder, ids, mask, types),
            batch_size,
            by_length=True,
            tokens=TOKENS_AT_ONCE if backend == "numpy" else None,
        )

        def convert_batch(batch: Batch) -> np.ndarray:
            batch_ids, batch_mask, batch_types = user_arrays(batch.inputs)
            batch_mask = None if np.all(batch_mask) else asarray(batch_mask, backend)
            return convert(encoder(batch_ids, batch_mask, batch_types).hidden, batch_mask)

        return results(encoder, batches, len(ids), convert_batch)

    def _inputs(self, texts: Iterable[Text], max_len: int | None, stacklevel: int) -> Inputs:
        if max_len is not None:
            max_len = checks.whole("max_len", max_len, 3, self.encoder.config.max_len)
        checked_texts = check_texts_or_pairs(texts, self.settings.lower, self.settings.strip)
        ids, mask, types = encode_texts(
            checked_texts, self.tokenizer, max_len or self.max_len, stacklevel=stacklevel + 1
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

        Without `n_classes` it has the trained head of the folder. After
        ``model.freeze("embed.*", "encoder.*")`` only the head is trained; freeze
        ``"encoder.blocks.0.*"`` and so on instead to train the last blocks as well.

        Parameters
        ----------
        n_classes : int, optional
            For a new head.
        pooling : str, optional
            The pooling of the new head, a name in `POOLINGS`. None: the pooling of `embed` for
            sentence encoders, otherwise the pooling of transformers' classifiers, so that the
            result can be written in their layout.
        output : str
            The output of the new head: see `SequenceClassifier`.
        dropout : float, optional
            The rate for embeddings, sublayers and attention weights; None: as in the configuration.
        seed : int or numpy.random.Generator
            For the new head.
        """
        config = self.encoder.config
        if dropout is not None:
            attention_dropout = dropout if config.attention_dropout else 0.0
            config = replace(config, dropout=dropout, attention_dropout=attention_dropout)
        trained_head = None
        if n_classes is None:
            trained_head = usable_head(self.head, pooling)
            n_classes = len(trained_head.classes)
            pooling = trained_head.head.pooling
            output = trained_head.output
        elif pooling is None:
            pooling = self._default_pooling()
        model = SequenceClassifier(
            config,
            n_classes,
            vocab_size=self.encoder.vocab_size,
            pooling=pooling,
            output=output,
            padding_id=self.padding_id,
            seed=initializers.undrawn(),  # only weights of a new head are drawn
            dtype=self.encoder.dtype,
        )
        if trained_head is None:
            self._fill(model, new_weights=draw_weights(model, seed))
        else:
            self._fill(model, head_weights=trained_head.arrays)
        return model

    def _default_pooling(self) -> str:
        """Return the pooling of a new head."""
        if self.source_folder.sentences:
            return self.settings.pooling
        heads = self.architecture.heads
        hf_config = self.source_folder.hf_config
        fitting_heads = [head for head in heads if head.fits(hf_config)]
        return (fitting_heads or heads)[0].pooling

    def masked_language_model(self) -> MaskedLanguageModel:
        """Return the `MaskedLanguageModel` of the folder; ValueError if it has no such head."""
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
        self._fill(model, head_weights=self.masked.arrays)
        return model

    def _fill(
        self,
        model: Model,
        *,
        new_weights: Arrays | None = None,
        head_weights: Arrays | None = None,
    ) -> None:
        """Set all weights of a model, from the encoder and its pooler, and from its head.

        The encoder overrides `new_weights`, and `head_weights` override the encoder.
        """
        values = values_of(model)
        weights = (new_weights or {}) | values_of(self.encoder) | (head_weights or {})
        available = {name: weights[name] for name in values if name in weights}
        problems = checks.misfits(available, values)
        if problems:
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
        """Write a folder in the layout of the source folder: see `save_pretrained`.

        Parameters
        ----------
        folder : str or path
        model : SequenceClassifier, MaskedLanguageModel or TextEncoder, optional
            A model made from this encoder, such as a fine-tuned classifier. None: the encoder, and
            the folder's head if it has one.
        classes, head, overwrite
            As in `save_pretrained`. By default the folder's head keeps the names of its classes.
        """
        if model is None and head and self.head is not None:
            model = self.classifier()
            classes = classes or self.classes
        elif model is None and head and self.masked is not None:
            model = self.masked_language_model()
        write_folder(
            self.encoder if model is None else model,
            folder,
            self.architecture,
            self.source_folder,
            classes,
            head=head,
            overwrite=overwrite,
            encoder_weights=values_of(self.encoder),
        )

    def __repr__(self) -> str:
        config = self.encoder.config
        norm = "1" if self.settings.normalize else "free"
        return (
            f"PretrainedEncoder({self.architecture.model_type}, {config.n_layers} layers of "
            f"{config.d_model}, {self.encoder.vocab_size} tokens, max_len {self.max_len}, "
            f"pooling {self.settings.pooling}, norm {norm}, from {self.source_folder.folder})"
        )
