import json
import unicodedata

import numpy as np
import pytest

from npformer.data.tokenizers import WordTokenizer
from npformer.data.tokenizers.word_tokenizer import ngrams_of, split
from npformer.interop.tokenizers import tokenizer_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop, it\u2019s 9.5!", ["don't", "stop", ",", "it\u2019s", "9", ".", "5", "!"]),
        ("我爱你 abcわ", ["我", "爱", "你", "abc", "わ"]),
        (" \n\t ", []),
    ],
    ids=["apostrophes and signs", "characters without spaces", "only spaces"],
)
def test_words_of_a_text(text, words):
    assert split(text) == words


def test_composed_and_decomposed_letters_are_equal():
    assert split("naïve") == split("nai\u0308ve")


def test_upper_case_can_be_preserved():
    assert split("Big", lower=False) == ["Big"]


WORDS = {
    "Hindi": "हिन्दी भाषा विद्\u200dया",
    "Bengali": "আমি বাংলায় গান গাই",
    "Tamil": "தமிழ் மொழி அழகு",
    "Malayalam": "മലയാളം ഭാഷ",
    "Sinhala": "සිංහල භාෂාව ශ්\u200dරී",
    "pointed Arabic": "بِسْمِ اللَّهِ",
    "Persian": "می\u200cشود من",
    "pointed Hebrew": "שָׁלוֹם עוֹלָם",
    "abbreviations in Hebrew": 'צה"ל צ\u05f3ק',
    "Yoruba": "yorùbá ọjọ́ ẹ̀kọ́",
    "Turkish": "i\u0307stanbul iğdir",
    "Catalan": "col\u00b7lecció l'avi",
    "soft hyphens": "zeit\u00adung ist",
    "emoji": "\u263a\ufe0f \U0001f44d\U0001f3fd 1\ufe0f\u20e3",
    "joined emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f415\u200d\U0001f9ba",
    "Japanese marks": "\u304b\u309a \u30ad",
    # Without spaces between words, a run of letters and marks is one word.
    "Thai": "สวัสดีครับ ภาษาไทย",
    "Khmer": "ភាសា \u1781\u17d2\u1798\u17c2\u179a",
    "Burmese": "မြန်မာ ဘာသာ",
}


@pytest.mark.parametrize("language", WORDS)
def test_a_word_ends_where_unicode_says(language):
    text = unicodedata.normalize("NFC", WORDS[language])
    assert split(text) == text.split()
    assert split(text.replace(" ", ", ")) == text.replace(" ", " , ").split()


def test_invisible_spaces_divide_words():
    assert split("ភាសា\u200bខ្មែរ") == ["ភាសា", "ខ្មែរ"]


def test_each_flag_is_a_token():
    flags = ["\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7"]
    assert split("".join(flags)) == flags


def test_a_mark_without_a_letter_is_a_token():
    assert split("\u0301 a") == ["\u0301", "a"]


def test_quotation_marks_are_tokens():
    assert split('say "no"') == ["say", '"', "no", '"']


def test_the_vocabulary_is_ranked_by_frequency_then_by_letters():
    tokenizer = WordTokenizer.train(["b a c", "c b", "c d"])
    assert tokenizer.vocabulary == ["[PAD]", "[UNK]", "c", "b", "a", "d"]
    assert WordTokenizer.train(["b a c", "c b"], min_count=2).vocabulary[2:] == ["b", "c"]
    assert WordTokenizer.train(["b a c", "c b"], vocab_size=3).vocabulary[2:] == ["b"]


def test_rows_have_padding_with_a_mask():
    ids, mask = WordTokenizer(["a", "b"]).encode(["a b a", "", "b what"])
    np.testing.assert_array_equal(ids, [[2, 3, 2], [1, 0, 0], [3, 1, 0]])
    np.testing.assert_array_equal(mask, [[1, 1, 1], [1, 0, 0], [1, 1, 0]])
    assert ids.dtype == "int64"


def test_a_text_is_cut_at_the_maximum_length():
    ids, _ = WordTokenizer(["a", "b"]).encode(["a b a"], max_len=2)
    assert ids.tolist() == [[2, 3]]


def test_no_texts_give_no_rows():
    ids, _ = WordTokenizer(["a", "b"]).encode([])
    assert ids.shape == (0, 1)


def test_tokens_of_ids():
    assert WordTokenizer(["a", "b"]).tokens([0, 3, 1]) == ["[PAD]", "b", "[UNK]"]


def test_parts_of_words_follow_the_words():
    assert ngrams_of("words", 4) == ["#<wor", "#word", "#ords", "#rds>"]
    assert ngrams_of("an", 4) == []
    tokenizer = WordTokenizer.train(["big words", "swords cut", "swords"], ngrams=4)
    assert tokenizer.tokens(tokenizer.ids("words")) == [
        "words",
        "#word",
        "#ords",
        "#rds>",
    ]  # "#<wor" is once
    assert tokenizer.tokens(tokenizer.ids("crosswords!"))[2:] == ["#word", "#ords", "#rds>"]
    assert tokenizer.tokens(tokenizer.ids("words big", max_len=3)) == ["words", "big", "#word"]
    assert tokenizer_of(tokenizer.to_dict()).ids("swords") == tokenizer.ids("swords")


def test_a_word_tokenizer_can_be_stored_as_json():
    tokenizer = WordTokenizer.train(["Ein Wort", "我"], lower=False)
    restored = tokenizer_of(json.loads(json.dumps(tokenizer.to_dict())))
    assert restored.to_dict() == tokenizer.to_dict()
    assert restored.vocab_size == tokenizer.vocab_size == 5


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda t: t.encode("a b"), TypeError, r"texts is a str; expected a list with a string"),
        (lambda t: t.encode(["a", None]), TypeError, r"texts\[1\] is missing: None"),
        (lambda t: t.encode(["a", float("nan")]), TypeError, r"texts\[1\] is missing: nan"),
        (
            lambda t: t.encode([np.ones(2)]),
            TypeError,
            r"texts\[0\] is an ndarray; expected a string",
        ),
        (lambda t: t.encode([3]), TypeError, r"texts\[0\] is an int: 3; expected a string"),
        (lambda t: t.encode(np.array([["a"]])), ValueError, "texts has 2 axes; expected one"),
        (lambda t: t.encode(["a"], max_len=0), ValueError, "max_len is 0"),
        (lambda t: t.tokens([4]), ValueError, "an id is 4"),
        (lambda t: WordTokenizer(["a", "a"]), ValueError, "'a' is there more than once"),
        (lambda t: tokenizer_of({"kind": "letters"}), ValueError, "kind is 'letters'"),
    ],
)
def test_mistakes_are_explained(call, error, words):
    with pytest.raises(error, match=words):
        call(WordTokenizer(["a", "b"]))


def test_ten_million_letters_without_a_space():
    ids, mask = WordTokenizer(["a"]).encode(["x" * 10_000_000])
    assert ids.tolist() == [[1]]
    assert mask.all()
