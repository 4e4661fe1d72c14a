"""Pretrained: what all models from a folder have in common."""

from __future__ import annotations

from typing import Any, Self

from npformer.core import Layer
from npformer.interop.family import Family
from npformer.interop.origin import Origin


class Pretrained:
    """A model with its family, its tokenizer, and where it came from.

    Attributes
    ----------
    architecture : Family
        The family, such as BERT.
    origin : Origin
        What the folder held besides weights.
    """

    def __init__(
        self, weights: Layer, architecture: Family, origin: Origin, tokenizer: Any
    ) -> None:
        self.architecture = architecture
        self.origin = origin
        self._weights, self._tokenizer = weights, tokenizer

    @property
    def tokenizer(self) -> Any:
        """The folder's tokenizer; raises the error if it could not be read."""
        if isinstance(self._tokenizer, Exception):
            raise self._tokenizer
        return self._tokenizer

    def to(self, backend: str) -> Self:
        """Move the weights to a backend, such as "cupy", and return this object."""
        self._weights.to(backend)
        return self
