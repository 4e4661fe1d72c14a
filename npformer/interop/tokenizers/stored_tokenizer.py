"""Make a tokenizer from the result of `Tokenizer.to_dict`, which a run's folder has."""

from collections.abc import Mapping
from typing import Any

from npformer.core import checks
from npformer.data.tokenizers import LibraryTokenizer, SpellingTokenizer, Tokenizer, WordTokenizer
from npformer.interop.tokenizers.marian_tokenizer import MarianTokenizer


def tokenizer_of(values: Mapping[str, Any]) -> Tokenizer:
    """Return the tokenizer that `Tokenizer.to_dict` described."""
    classes: dict[Any, Any] = {
        "words": WordTokenizer,
        "spelling": SpellingTokenizer,
        "library": LibraryTokenizer,
        "marian": MarianTokenizer,
    }
    kind = values.get("kind") if isinstance(values, Mapping) else None
    checks.choice("the tokenizer's kind", kind, classes)
    tokenizer: Tokenizer = classes[kind].from_dict(values)
    return tokenizer
