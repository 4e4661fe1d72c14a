"""Weights from elsewhere."""

from npformer.interop.huggingface import from_bert, from_fnet, to_bert, to_fnet
from npformer.interop.word_vectors import read_word_vectors, set_word_vectors

__all__ = [
    "from_bert",
    "from_fnet",
    "read_word_vectors",
    "set_word_vectors",
    "to_bert",
    "to_fnet",
]
