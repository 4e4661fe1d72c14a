"""From texts to token ids."""

from npformer.data.tokenizers.library_tokenizer import LibraryTokenizer
from npformer.data.tokenizers.pairs import frequent_pairs
from npformer.data.tokenizers.spelling_tokenizer import SpellingTokenizer
from npformer.data.tokenizers.tokenizer import WRITING, Tokenizer
from npformer.data.tokenizers.tokenizers import (
    TOKENIZERS,
    train_tokenizer,
    train_writing_tokenizer,
)
from npformer.data.tokenizers.word_tokenizer import WordTokenizer

__all__ = [
    "TOKENIZERS",
    "WRITING",
    "LibraryTokenizer",
    "SpellingTokenizer",
    "Tokenizer",
    "WordTokenizer",
    "frequent_pairs",
    "train_tokenizer",
    "train_writing_tokenizer",
]
