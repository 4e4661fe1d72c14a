"""SpellingTokenizer: the joined tokens are the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npformer.data.tokenizers import SpellingTokenizer, WordTokenizer, train_writing_tokenizer
from tests.needs import NEEDS

TEXT = "The cat's mat. The dog -- the cat's, 12 times!\n\tYes,  the cat's."


def test_ids_begin_with_the_special_ones():
    tokenizer = SpellingTokenizer.train(["ab", "ba"])
    assert tokenizer.vocab_size == 6
    assert tokenizer.ids("ab?") == [4, 5, tokenizer.unknown_id]
    assert tokenizer.decode([1, 4, 5, 2, 0, -1]) == "ab"
    assert tokenizer.tokens([0, 1, 2, 3, 4]) == ["[PAD]", "[BEGIN]", "[END]", "[UNK]", "a"]
    assert tokenizer.unknown_in("a?b!?") == ["?", "!"]


def test_frequent_words_are_tokens():
    tokenizer = SpellingTokenizer.train([TEXT], words=True, vocab_size=200)
    assert " cat's" in tokenizer.words
    assert len(tokenizer.ids(TEXT)) < len(TEXT)
    few = SpellingTokenizer.train([TEXT], words=True, vocab_size=len(set(TEXT)) + 5)
    assert few.words == [" cat's"]


@given(st.text(alphabet=sorted(set(TEXT)), max_size=60))
def test_a_text_of_known_characters_is_decoded_exactly(text):
    for words in (False, True):
        tokenizer = SpellingTokenizer.train([TEXT], words=words)
        assert tokenizer.decode(tokenizer.ids(text)) == text


def test_byte_level_bpe_decodes_exactly():
    pytest.importorskip("tokenizers", reason=NEEDS["tokenizers"])
    tokenizer = train_writing_tokenizer("bpe", [TEXT], 300)
    assert tokenizer.decode([tokenizer.begin_id, *tokenizer.ids(TEXT), tokenizer.end_id]) == TEXT
    assert tokenizer.decode(tokenizer.ids("größe 😀")) == "größe 😀"


def test_a_token_that_occurs_twice_is_refused():
    with pytest.raises(ValueError, match="'a' is there more than once"):
        SpellingTokenizer(["a"], ["a"])


def test_no_characters_are_refused():
    with pytest.raises(ValueError, match="the number of characters is 0"):
        SpellingTokenizer([])


def test_an_unknown_tokenizer_is_refused():
    with pytest.raises(ValueError, match="tokenizer is 'letters'"):
        train_writing_tokenizer("letters", ["a"])


def test_a_word_tokenizer_cannot_decode():
    with pytest.raises(TypeError, match="does not keep spaces"):
        WordTokenizer(["a"]).decode([2])


@pytest.mark.parametrize("text", ["हिन्दी भाषा", "שָׁלוֹם עוֹלָם", "می\u200cشود من", "สวัสดี ครับ"])
def test_words_with_marks_are_tokens(text):
    tokenizer = SpellingTokenizer.train([f"{text} {text} {text}"], words=True)
    words = text.split(" ")
    assert tokenizer.tokens(tokenizer.ids(f" {text}")) == [f" {word}" for word in words]
    assert tokenizer.decode(tokenizer.ids(text)) == text
