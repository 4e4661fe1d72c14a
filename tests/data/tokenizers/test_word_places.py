"""Which tokens of a text make which word."""

import pytest

from npformer.data.tokenizers import WordTokenizer
from npformer.data.tokenizers.word_places import words_of_tokens


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["good", "soup"], [("good", [0]), ("soup", [1])]),
        (["un", "##kind", "man"], [("unkind", [0, 1]), ("man", [2])]),
        (["[CLS]", "un", "##kind", "[SEP]"], [("[CLS]", [0]), ("unkind", [1, 2]), ("[SEP]", [3])]),
        (["go", "ne", "\u0120home", "ly"], [("gone", [0, 1]), ("homely", [2, 3])]),
        (["\u2581gone", "\u2581", "home"], [("gone", [0]), ("home", [1, 2])]),
        (
            ["<s>", "go", "\u0120on", "</s>"],
            [("<s>", [0]), ("go", [1]), ("on", [2]), ("</s>", [3])],
        ),
        (["##kind"], [("##kind", [0])]),
        ([], []),
    ],
    ids=["words", "wordpiece", "special", "byte-level", "sentencepiece", "ends", "alone", "none"],
)
def test_tokens_make_words(names, words):
    assert words_of_tokens(names) == words


@pytest.fixture
def tokenizer():
    return WordTokenizer.train(["great soup", "great", "greater soup"], ngrams=4)


def test_parts_of_a_word_go_with_it(tokenizer):
    text = "Great unknown soup great"
    places = tokenizer.word_places(text)
    names = tokenizer.tokens(tokenizer.ids(text))
    assert [word for word, _ in places] == ["great", "unknown", "soup", "great"]
    assert [names[place] for place in places[0][1]] == ["great", "#<gre", "#grea", "#reat"]
    assert [names[place] for place in places[2][1]] == ["soup"]


def test_each_token_belongs_to_one_word(tokenizer):
    text = "great unknown soup great"
    places = [place for _, of_word in tokenizer.word_places(text) for place in of_word]
    assert sorted(places) == [*range(len(tokenizer.ids(text)))]


def test_places_end_where_a_text_is_cut(tokenizer):
    text = "great soup"
    places = [place for _, of_word in tokenizer.word_places(text, 3) for place in of_word]
    assert sorted(places) == [*range(len(tokenizer.ids(text, 3)))]
