# /// script
# requires-python = ">=3.11"
# dependencies = ["tokenizers==0.23.3", "numpy==2.4.6"]
# ///
"""Answers of tokenizers: how its pre-tokenizers divide texts."""

import numpy as np
from calls import Library, call, main
from tokenizers import Regex, normalizers, pre_tokenizers


@call
def whitespace_words(text):
    return len(pre_tokenizers.Whitespace().pre_tokenize_str(text))


@call
def bert_words(text):
    text = normalizers.BertNormalizer().normalize_str(text)
    return len(pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text))


@call
def words(text):
    single = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # words by themselves
    letter = rf"[\p{{L}}\p{{N}}_&&[^{single}]]"
    mark = "[\\p{M}\\p{Cf}\U0001f3fb-\U0001f3ff\u05f3&&[^\u200b]]"
    letters = f"{letter}+(?:{mark}+{letter}*)*"
    within = "(?:['\u2019\u00b7\u05f4\u2027]|\"(?=[\u05d0-\u05ea]))"
    flag = "[\U0001f1e6-\U0001f1ff]{2}"
    symbol = f"[^\\p{{L}}\\p{{N}}_\\s\u200b]{mark}*"
    joined = f"{symbol}(?:(?<=\u200d){symbol})*"
    pattern = f"{letters}(?:{within}{letters})*|[{single}]{mark}*|{flag}|{joined}"
    normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    divide = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    matches = divide.pre_tokenize_str(normalizer.normalize_str(text))
    return np.array([len(word) for word, _ in matches])


def array(values, dtype):
    return np.asarray(values)


main(Library(array))
