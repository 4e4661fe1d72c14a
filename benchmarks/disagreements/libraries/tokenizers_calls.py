# /// script
# requires-python = ">=3.11"
# dependencies = ["tokenizers==0.23.3", "numpy==2.4.6"]
# ///
"""Answers of tokenizers: how its pre-tokenizers divide texts."""

import numpy as np
from calls import Library, call, main
from tokenizers import normalizers, pre_tokenizers


@call
def whitespace_words(text):
    return len(pre_tokenizers.Whitespace().pre_tokenize_str(text))


@call
def bert_words(text):
    text = normalizers.BertNormalizer().normalize_str(text)
    return len(pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text))


def array(values, dtype):
    return np.asarray(values)


main(Library(array))
