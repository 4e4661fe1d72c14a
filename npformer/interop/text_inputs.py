"""Texts and pairs of texts as what an encoder takes: ids, mask and token types."""

import warnings
from typing import Any

import numpy as np

from npformer.data.lists import check_list
from npformer.data.tokenizers import LibraryTokenizer
from npformer.data.tokenizers.tokenizer import check_texts

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
    entries = check_list("texts", texts, "a string for each text, or a pair of them")
    if not entries or not isinstance(entries[0], tuple | list):
        return _prepared(check_texts(entries), lower, strip)
    for i, pair in enumerate(entries):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(f"texts[{i}] is {pair!r}; expected a pair of texts, as in texts[0]")
    first_texts = listed_texts([pair[0] for pair in entries], lower, strip)
    second_texts = listed_texts([pair[1] for pair in entries], lower, strip)
    return list(zip(first_texts, second_texts, strict=True))


def _prepared(texts: list[str], lower: bool, strip: bool) -> list[str]:
    """Return texts as they reach the tokenizer."""
    if strip:
        texts = [text.strip() for text in texts]
    if lower:
        texts = [text.lower() for text in texts]
    return texts
