"""Tokenizers by name."""

from collections.abc import Iterable
from typing import Any

from npformer.core import checks
from npformer.data.tokenizers.library_tokenizer import LibraryTokenizer
from npformer.data.tokenizers.spelling_tokenizer import SpellingTokenizer
from npformer.data.tokenizers.tokenizer import WRITING, Tokenizer
from npformer.data.tokenizers.word_tokenizer import WordTokenizer

TOKENIZERS = ("word", "wordpiece", "bpe")
"""Names for `train_tokenizer`. "word" needs no library, the others need the extra ``text``."""


def train_tokenizer(name: str, texts: Iterable[str], **settings: Any) -> Tokenizer:
    """Return a tokenizer by name, with a vocabulary from `texts`.

    `name` is one of `TOKENIZERS`; `settings` are vocab_size, min_count, lower and masks, and for
    "word" ngrams: see `WordTokenizer.train` and `LibraryTokenizer.train`.
    """
    checks.choice("tokenizer", name, TOKENIZERS)
    if name == "word":
        return WordTokenizer.train(texts, **settings)
    return LibraryTokenizer.train(texts, name, **settings)


def train_writing_tokenizer(name: str, texts: Iterable[str], vocab_size: int = 2_000) -> Tokenizer:
    """Return a tokenizer that decodes exactly, for a model that writes.

    Parameters
    ----------
    name : {"char", "word", "bpe"}
        "char": a token for each character. "word": also for each frequent word. Neither needs a
        library. "bpe": a token for frequent sequences of bytes (extra ``text``).
    texts : iterable of str
    vocab_size : int
        Maximum number of ids of "word" and "bpe".
    """
    checks.choice("tokenizer", name, WRITING)
    if name == "bpe":
        return LibraryTokenizer.train(texts, "bpe", vocab_size=vocab_size, lower=False, writes=True)
    return SpellingTokenizer.train(texts, words=name == "word", vocab_size=vocab_size)
