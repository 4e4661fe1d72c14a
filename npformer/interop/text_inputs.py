"""Encode texts and pairs of texts as inputs of an encoder: ids, mask and token types."""

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


def encode_texts(
    texts: list[Any], tokenizer: LibraryTokenizer, max_len: int, *, stacklevel: int
) -> Inputs:
    """Return ids, mask and types of texts or pairs; warn if any is cut at `max_len`."""
    ids, mask, types = _encode(texts, tokenizer, None)
    if ids.shape[1] <= max_len:
        return ids, mask, types
    lengths = mask.sum(axis=1)
    warnings.warn(
        f"{(lengths > max_len).sum()} of {len(lengths)} texts have more than max_len = {max_len} "
        f"tokens, at most {lengths.max()}: the rest was cut off",
        stacklevel=stacklevel,
    )
    return _encode(texts, tokenizer, max_len)


def _encode(texts: list[Any], tokenizer: LibraryTokenizer, max_len: int | None) -> Inputs:
    """Return ids, mask and types of texts or pairs, cut at `max_len`."""
    if texts and isinstance(texts[0], tuple):
        return tokenizer.encode_pairs(texts, max_len)
    ids, mask = tokenizer.encode(texts, max_len)
    return ids, mask, np.zeros_like(ids)


def check_texts_or_pairs(texts: Any, lower: bool, strip: bool) -> list[Any]:
    """Return texts or pairs as a list, after checking them; pairs become tuples."""
    entries = check_list("texts", texts, "a string for each text, or a pair of them")
    if not entries or not isinstance(entries[0], tuple | list):
        return _prepare(check_texts(entries), lower, strip)
    for i, pair in enumerate(entries):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(f"texts[{i}] is {pair!r}; expected a pair of texts, as in texts[0]")
    first_texts = check_texts_or_pairs([pair[0] for pair in entries], lower, strip)
    second_texts = check_texts_or_pairs([pair[1] for pair in entries], lower, strip)
    return list(zip(first_texts, second_texts, strict=True))


def _prepare(texts: list[str], lower: bool, strip: bool) -> list[str]:
    """Return texts prepared for the tokenizer."""
    if strip:
        texts = [text.strip() for text in texts]
    if lower:
        texts = [text.lower() for text in texts]
    return texts
