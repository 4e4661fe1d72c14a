"""Pretrained: what all models from a folder have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from npformer.data.tokenizers import Tokenizer
from npformer.interop.family import Family
from npformer.interop.origin import Origin


@dataclass(repr=False, eq=False)
class Pretrained:
    """A model with its family, its tokenizer, and where it came from.

    Attributes
    ----------
    model : TextEncoder, LanguageModel or EncoderDecoder
        To be fine-tuned with `npformer.fit`, or called with ids.
    architecture : Family
        The family, such as BERT.
    origin : Origin
        What the folder held besides weights.
    """

    model: Any
    architecture: Family
    origin: Origin
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
