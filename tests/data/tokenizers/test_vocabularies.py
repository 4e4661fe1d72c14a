"""The vocabularies of WordPiece and BPE: the same texts give the same vocabulary."""

import json

import pytest

from npformer.data.tokenizers import LibraryTokenizer, train_tokenizer
from tests.needs import NEEDS

pytest.importorskip("tokenizers", reason=NEEDS["tokenizers"])

TEXTS = ["the cats sat", "the dogs ran", "a star fell", "far cars start", "eleven letters"] * 2


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_neither_the_process_nor_the_order_of_texts_decides_a_vocabulary(kind, rng):
    first = train_tokenizer(kind, TEXTS, vocab_size=320).to_dict()
    for _ in range(5):  # the library draws keys for the hash maps of each call
        texts = [TEXTS[i] for i in rng.permutation(len(TEXTS))]
        assert train_tokenizer(kind, texts, vocab_size=320).to_dict() == first


def test_wordpiece_has_the_pieces_of_most_frequent_pairs():
    tokenizer = LibraryTokenizer.train(["aab aab aab ab"], "wordpiece", vocab_size=8)
    names = tokenizer.tokens(range(tokenizer.vocab_size))
    # ##a ##b occur 3 times, a ##ab 3 times as well, a ##b once, which is less than min_count.
    assert names == ["[PAD]", "[UNK]", "##a", "##b", "a", "b", "##ab", "aab"]
    assert tokenizer.tokens(tokenizer.ids("aab ab")) == ["aab", "a", "##b"]
    model = json.loads(tokenizer.library.to_str())["model"]
    assert (model["type"], model["continuing_subword_prefix"]) == ("WordPiece", "##")


@pytest.mark.parametrize(
    "text", ["हिन्दी भाषा", "বাংলা ভাষা", "தமிழ் மொழி", "می‌خواهم بِكِتَاب", "שָׁלוֹם עוֹלָם", "x̂y"]
)
def test_bpe_does_not_split_marks_from_their_letters(text):
    tokenizer = LibraryTokenizer.train([text] * 4, "bpe", vocab_size=800)
    assert tokenizer.decode(tokenizer.ids(text)).strip() == text
    assert len(tokenizer.ids(text)) == len(text.split())


def test_a_text_begins_with_a_space_once_in_bpe():
    tokenizer = LibraryTokenizer.train(["hi hi hi"], "bpe", vocab_size=300)
    assert tokenizer.ids("hi") == tokenizer.ids(" hi") == tokenizer.ids("hi hi")[:1]
    writer = LibraryTokenizer.train(["hi hi hi"], "bpe", vocab_size=300, writes=True)
    assert writer.decode(writer.ids("hi")) == "hi"
