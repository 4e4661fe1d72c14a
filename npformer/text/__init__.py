"""From texts to token ids."""

from npformer.text.library_tokenizer import LibraryTokenizer
from npformer.text.marian_tokenizer import MarianTokenizer
from npformer.text.pairs import frequent_pairs
from npformer.text.read_tokenizer import read_tokenizer
from npformer.text.spelling_tokenizer import SpellingTokenizer
from npformer.text.tokenizer import WRITING, Tokenizer
from npformer.text.tokenizers import (
    TOKENIZERS,
    tokenizer_of,
    train_tokenizer,
    writing_tokenizer,
)
from npformer.text.word_tokenizer import WordTokenizer

__all__ = [
    "TOKENIZERS",
    "WRITING",
    "LibraryTokenizer",
    "MarianTokenizer",
    "SpellingTokenizer",
    "Tokenizer",
    "WordTokenizer",
    "frequent_pairs",
    "read_tokenizer",
    "tokenizer_of",
    "train_tokenizer",
    "writing_tokenizer",
]
