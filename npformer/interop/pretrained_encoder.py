"""PretrainedEncoder: an encoder with its tokenizer, and texts as vectors."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from npformer.classifier import SequenceClassifier
from npformer.classifier.lengths import Batches
from npformer.core import Array, Context, Seed, checks, to_numpy
from npformer.interop.architecture import Architecture
from npformer.interop.heads import TrainedHead, classifier_of
from npformer.interop.huggingface import values_of
from npformer.interop.origin import Origin
from npformer.interop.save_pretrained import write_folder
from npformer.interop.sentences import SentenceSettings
from npformer.layers import POOLINGS
from npformer.text import LibraryTokenizer
from npformer.text.tokenizer import checked_texts
from npformer.text_encoder import TextEncoder

Text = str | tuple[str, str]
"""One text, or a pair such as a question and an answer."""


class PretrainedEncoder:
    """An encoder with pretrained weights, its tokenizer, and its way from a text to a vector.

    `from_pretrained` makes it from a folder.

    Attributes
    ----------
    encoder : TextEncoder
        The weights: ``hidden, pooled = pretrained.encoder(ids, mask, types)``.
    architecture : Architecture
        The family, such as BERT.
    settings : SentenceSettings
        The pooling of `embed`, whether its rows have norm 1, and the length of the longest text.
    classes : list of str or None
        The names of the classes, if the folder has a trained head.
    """

    def __init__(
        self,
        encoder: TextEncoder,
        architecture: Architecture,
        settings: SentenceSettings,
        *,
        tokenizer: LibraryTokenizer | Exception,
        head: TrainedHead | None,
        origin: Origin,
    ) -> None:
        self.encoder = encoder
        self.architecture = architecture
        self.settings = settings
        self.head = head
        self.origin = origin
        self._tokenizer = tokenizer

    @property
    def tokenizer(self) -> LibraryTokenizer:
        """The folder's tokenizer; what kept it from being read is raised here."""
        if isinstance(self._tokenizer, Exception):
            raise self._tokenizer
        return self._tokenizer

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
        """The most tokens of a text, with special ones."""
        return self.settings.max_len or self.encoder.config.max_len

    def to(self, backend: str) -> PretrainedEncoder:
        """Move the weights to a backend, such as "cupy", and return this object."""
        self.encoder.to(backend)
        return self

    # From texts to vectors ------------------------------------------------------------------------

    def encode(
        self, texts: Iterable[Text], max_len: int | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return what the encoder takes: ids, mask and token types.

        Parameters
        ----------
        texts : iterable of str, or of pairs of str
        max_len : int, optional
            Most tokens of a text or of a pair, with the special ones; None: `max_len` above.

        Returns
        -------
        ids : int array, shape (texts, length)
            As long as the longest text.
        mask : bool array of the same shape
            True at tokens.
        types : int array of the same shape, or None
            0 in the first text of a pair and 1 in the second; None if the model tells no types
            apart.

        Warns
        -----
        UserWarning
            Texts are longer than `max_len`: they were cut.
        """
        return self._encode(texts, max_len)

    def _encode(
        self, texts: Iterable[Text], max_len: int | None = None, stacklevel: int = 3
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        most = self.encoder.config.max_len
        limit = self.max_len if max_len is None else checks.whole("max_len", max_len, 3, most)
        listed = listed_texts(texts, self.settings.lower)
        ids, mask, types = self._encoded(listed, None)
        if ids.shape[1] > limit:
            lengths = mask.sum(axis=1)
            warnings.warn(
                f"{(lengths > limit).sum()} of {len(lengths)} texts have more than max_len = "
                f"{limit} tokens, at most {lengths.max()}: what follows was cut off",
                stacklevel=stacklevel,
            )
            ids, mask, types = self._encoded(listed, limit)
        return ids, mask, types

    def _encoded(
        self, texts: list[Any], max_len: int | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        if texts and isinstance(texts[0], tuple | list):
            first, second = zip(*texts, strict=True)
            ids, mask, types = self.tokenizer.encode_pairs(first, second, max_len)
        else:
            ids, mask = self.tokenizer.encode(texts, max_len)
            types = np.zeros_like(ids)
        return ids, mask, types if self.architecture.token_types else None

    def embed(self, texts: Iterable[Text], batch_size: int = 32) -> np.ndarray:
        """Return a vector for each text.

        Parameters
        ----------
        texts : iterable of str, or of pairs of str
        batch_size : int
            Texts at a time. They are sorted by length first, so little padding is computed.

        Returns
        -------
        vectors : float array, shape (texts, d_model)
            Pooled as the folder says, by default the mean of the tokens; of norm 1 for sentence
            encoders, so that the product of two rows is the cosine of their angle.
        """
        d_model, dtype = self.encoder.config.d_model, self.encoder.dtype
        pool = POOLINGS.make(self.settings.pooling, d_model, 0, dtype)

        def vectors(hidden: Array, mask: Array | None) -> np.ndarray:
            pooled: np.ndarray = to_numpy(pool.forward(hidden, Context(mask=mask, keep=False))[0])
            if not self.settings.normalize:
                return pooled
            norms = np.sqrt(np.einsum("nd,nd->n", pooled, pooled))[:, None]
            unit: np.ndarray = pooled / np.maximum(norms, 1e-12)
            return unit

        nothing = np.zeros((0, d_model), dtype)
        return self._in_batches(vectors, texts, batch_size, nothing)

    def hidden(self, texts: Iterable[Text], batch_size: int = 32) -> list[np.ndarray]:
        """Return the vectors of each text's tokens: one array (tokens, d_model) a text.

        ``pretrained.tokenizer.tokens(ids)`` names the tokens, special ones included.
        """

        def rows(hidden: Array, mask: Array | None) -> np.ndarray:
            on_host = to_numpy(hidden)
            found = np.empty(len(on_host), object)
            for i, each in enumerate(on_host):
                found[i] = each if mask is None else each[to_numpy(mask)[i]]
            return found

        return list(self._in_batches(rows, texts, batch_size, np.empty(0, object)))

    def _in_batches(
        self, convert: Any, texts: Iterable[Text], batch_size: int, nothing: np.ndarray
    ) -> np.ndarray:
        """Convert the last layer's vectors of each batch, and join the results in order."""
        checks.positive("batch_size", batch_size)
        ids, mask, types = self._encode(texts, stacklevel=4)
        if not len(ids):
            return nothing
        batches = Batches(ids, mask, types, batch_size, by_length=True)
        found = []
        for some_ids, some_mask, some_types in batches.share(0, 1):
            kept = None if np.all(some_mask) else some_mask
            hidden = self.encoder(some_ids, kept, some_types).hidden
            found.append(convert(hidden, kept))
        return batches.in_order([found])

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
        """Return a `SequenceClassifier` that begins with these weights, to be fine-tuned.

        Without `n_classes` it has the folder's own head, and computes what was trained there.
        ``model.freeze("embed.*", "encoder.*")`` then trains the head alone, and with
        ``"encoder.blocks.0.*"`` and so on for all blocks but the last n, those and the head.

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
            Instead of the configuration's.
        seed : int or numpy.random.Generator
            For the new head.
        """
        config = self.encoder.config
        if dropout is not None:
            config = replace(config, dropout=dropout)
        shared: dict[str, Any] = {"padding_id": self.padding_id, "dtype": self.encoder.dtype}
        if n_classes is not None:
            if pooling is None:
                heads = self.architecture.heads[0].pooling
                pooling = self.settings.pooling if self.origin.sentences else heads
            model = SequenceClassifier(
                config,
                n_classes,
                vocab_size=self.encoder.vocab_size,
                pooling=pooling,
                output=output,
                seed=seed,
                **shared,
            )
        elif self.head is None:
            raise ValueError(
                "n_classes is None and this folder has no trained head; expected the number of "
                "classes, for a new one: classifier(2)"
            )
        elif pooling is not None:
            raise ValueError(
                f"pooling is {pooling!r} and n_classes is None; expected both, for a new head, or "
                "neither, for the folder's own"
            )
        else:
            model = classifier_of(self.head, config, self.encoder.vocab_size, **shared)
        targets = model.named_parameters()
        for name, parameter in self.encoder.named_parameters().items():
            if name in targets:
                targets[name].value[...] = to_numpy(parameter.value)
        return model

    def save(
        self,
        folder: str | os.PathLike[str],
        model: SequenceClassifier | TextEncoder | None = None,
        *,
        classes: Sequence[object] | None = None,
        head: bool = True,
        overwrite: bool = False,
    ) -> None:
        """Write a folder in the layout that this one came in: see `save_pretrained`.

        Parameters
        ----------
        folder : str or path
        model : SequenceClassifier or TextEncoder, optional
            What was made of this encoder, such as a fine-tuned classifier; None: the encoder.
        """
        write_folder(
            self.encoder if model is None else model,
            folder,
            self.architecture,
            self.origin,
            self.origin.tokenizer_files,
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


def listed_texts(texts: Any, lower: bool = False) -> list[Any]:
    """Return texts, or pairs of texts, as a list after checking them."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        return checked_texts(texts)  # which raises
    listed = list(texts)
    if not (listed and isinstance(listed[0], tuple | list)):
        return [text.lower() if lower else text for text in checked_texts(listed)]
    for i, pair in enumerate(listed):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(f"texts[{i}] is {pair!r}; expected a pair of texts, as texts[0] is one")
    sides = ([pair[k] for pair in listed] for k in (0, 1))
    first, second = (listed_texts(side, lower) for side in sides)
    return [*zip(first, second, strict=True)]
