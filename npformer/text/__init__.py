"""From texts to token ids."""

from npformer.text.library_tokenizer import LibraryTokenizer
from npformer.text.read_tokenizer import read_tokenizer
from npformer.text.tokenizer import Tokenizer
from npformer.text.tokenizers import TOKENIZERS, tokenizer_of, train_tokenizer
from npformer.text.word_tokenizer import WordTokenizer

__all__ = [
    "TOKENIZERS",
    "LibraryTokenizer",
    "Tokenizer",
    "WordTokenizer",
    "read_tokenizer",
    "tokenizer_of",
    "train_tokenizer",
]
