"""Warnings that are given once, and errors that say where."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def tell_once(teller: Any, words: str, stacklevel: int = 5) -> None:
    """Warn, unless this layer has done so before."""
    if "_told" not in vars(teller):
        teller._told = True
        warnings.warn(words, stacklevel=stacklevel)


@contextmanager
def saying(where: str) -> Iterator[None]:
    """Put `where`, such as "in data, ", in front of TypeErrors and ValueErrors of the body."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}{error}") from error
