"""The tokenizers by name, and from what they wrote."""

from collections.abc import Iterable, Mapping
from typing import Any

from npformer.core import checks
from npformer.text.library_tokenizer import LibraryTokenizer
from npformer.text.tokenizer import Tokenizer
from npformer.text.word_tokenizer import WordTokenizer

TOKENIZERS = ("word", "wordpiece", "bpe")
"""What `train_tokenizer` makes: "word" needs no library, the others the extra ``text``."""


def train_tokenizer(name: str, texts: Iterable[str], **settings: Any) -> Tokenizer:
    """Return a tokenizer of a kind with a vocabulary from some texts.

    `name` is one of `TOKENIZERS`; `settings` are vocab_size, min_count and lower, and for "word"
    ngrams: see `WordTokenizer.train` and `LibraryTokenizer.train`.
    """
    checks.choice("tokenizer", name, TOKENIZERS)
    if name == "word":
        return WordTokenizer.train(texts, **settings)
    return LibraryTokenizer.train(texts, name, **settings)


def tokenizer_of(values: Mapping[str, Any]) -> Tokenizer:
    """Return the tokenizer that `Tokenizer.to_dict` described."""
    kinds: dict[Any, Any] = {"words": WordTokenizer, "library": LibraryTokenizer}
    kind = values.get("kind") if isinstance(values, Mapping) else None
    if kind not in kinds:
        raise ValueError(f"a tokenizer of the kind {kind!r}; expected one of {', '.join(kinds)}")
    tokenizer: Tokenizer = kinds[kind].from_dict(values)
    return tokenizer
