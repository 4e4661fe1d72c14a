"""Pretrained: the base class of all models from a folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from npformer.data.tokenizers import Tokenizer
from npformer.interop.family import Family
from npformer.interop.source_folder import SourceFolder


@dataclass(repr=False, eq=False)
class Pretrained:
    """A model with its family, its tokenizer and its source folder.

    Attributes
    ----------
    model : TextEncoder, LanguageModel or EncoderDecoder
        To be fine-tuned with `npformer.fit`, or called with ids.
    architecture : Family
        The family, such as BERT.
    source_folder : SourceFolder
        The content of the folder besides weights.
    """

    model: Any
    architecture: Family
    source_folder: SourceFolder
    _tokenizer: Tokenizer | Exception

    @property
    def tokenizer(self) -> Any:
        """The folder's tokenizer; raises the error if it could not be read."""
        if isinstance(self._tokenizer, Exception):
            raise self._tokenizer
        return self._tokenizer

    def to(self, backend: str) -> Self:
        """Move the weights to a backend, such as "cupy", and return this object."""
        self.model.to(backend)
        return self
