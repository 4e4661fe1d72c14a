"""Tokenizers from other libraries' folders."""

from npformer.interop.tokenizers.marian_tokenizer import MarianTokenizer
from npformer.interop.tokenizers.read_tokenizer import read_tokenizer
from npformer.interop.tokenizers.stored_tokenizer import tokenizer_of

__all__ = ["MarianTokenizer", "read_tokenizer", "tokenizer_of"]
