"""Texts and pairs of texts as what an encoder takes: ids, mask and token types."""

import warnings
from typing import Any

import numpy as np

from npformer.data.lists import listed
from npformer.data.tokenizers import LibraryTokenizer
from npformer.data.tokenizers.tokenizer import checked_texts

Text = str | tuple[str, str]
"""One text, or a pair such as a question and an answer."""

Inputs = tuple[np.ndarray, np.ndarray, np.ndarray | None]
"""Ids, mask and token types, each (texts, length)."""


def inputs_of(
    texts: list[Any], tokenizer: LibraryTokenizer, max_len: int, *, stacklevel: int
) -> Inputs:
    """Return ids, mask and types of texts or of pairs; warn if any is cut at `max_len`."""
    ids, mask, types = _whole(texts, tokenizer, None)
    if ids.shape[1] <= max_len:
        return ids, mask, types
    lengths = mask.sum(axis=1)
    warnings.warn(
        f"{(lengths > max_len).sum()} of {len(lengths)} texts have more than max_len = {max_len} "
        f"tokens, at most {lengths.max()}: the rest was cut off",
        stacklevel=stacklevel,
    )
    return _whole(texts, tokenizer, max_len)


def _whole(texts: list[Any], tokenizer: LibraryTokenizer, max_len: int | None) -> Inputs:
    if texts and isinstance(texts[0], tuple):
        return tokenizer.encode_pairs(texts, max_len)
    ids, mask = tokenizer.encode(texts, max_len)
    return ids, mask, np.zeros_like(ids)


def listed_texts(texts: Any, lower: bool, strip: bool) -> list[Any]:
    """Check texts or pairs, and return them as a list; pairs become tuples."""
    given = listed("texts", texts, "a string for each text, or a pair of them")
    if not (given and isinstance(given[0], tuple | list)):
        found = [text.strip() if strip else text for text in checked_texts(given)]
        return [text.lower() for text in found] if lower else found
    for i, pair in enumerate(given):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(f"texts[{i}] is {pair!r}; expected a pair of texts, as in texts[0]")
    first, second = (listed_texts([p[k] for p in given], lower, strip) for k in (0, 1))
    return [*zip(first, second, strict=True)]
