"""Warnings that are given once."""

import warnings
from typing import Any


def warn_once(teller: Any, words: str, stacklevel: int = 5) -> None:
    """Warn, unless this layer has done so before."""
    if "_told" not in vars(teller):
        teller._told = True
        warnings.warn(words, stacklevel=stacklevel)
