"""Hugging Face's tokenizers, trained on texts and read from files."""

import json

import numpy as np
import pytest

from npformer.data.tokenizers import LibraryTokenizer, read_tokenizer, tokenizer_of, train_tokenizer

tokenizers = pytest.importorskip("tokenizers", reason='it is of the extra "text"')

TEXTS = ["The cat sat on the mat.", "A dog, a cat and a bird!", "Unrelated sentences"] * 3


@pytest.mark.parametrize("kind", ["word", "wordpiece", "bpe"])
def test_each_kind_is_trained_encodes_and_comes_back(kind):
    made = LibraryTokenizer.train(TEXTS, kind, vocab_size=400)
    ids, mask = made.encode([*TEXTS, ""], max_len=6)
    assert ids.shape == mask.shape == (10, 6)
    assert ids.max() < made.vocab_size
    assert (ids[~mask] == made.padding_id).all()
    assert mask.any(axis=1).all()
    assert made.tokens(ids[0])[1].strip("Ġ") == "cat"
    back = tokenizer_of(json.loads(json.dumps(made.to_dict())))
    np.testing.assert_array_equal(back.encode(TEXTS)[0], made.encode(TEXTS)[0])


def test_the_own_word_tokenizer_needs_no_library():
    assert type(train_tokenizer("word", TEXTS)).__name__ == "WordTokenizer"
    assert type(train_tokenizer("bpe", TEXTS, vocab_size=300)) is LibraryTokenizer


@pytest.fixture
def bert(tmp_path):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "##s", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", "utf-8")
    return tmp_path


def test_a_vocabulary_of_bert(bert):
    made = read_tokenizer(bert)
    ids, _ = made.encode(["The cats sat."])
    assert made.tokens(ids[0]) == ["[CLS]", "the", "cat", "##s", "sat", ".", "[SEP]"]
    short, _ = made.encode(["The cats sat."], max_len=4)  # the end mark is not cut off
    assert made.tokens(short[0]) == ["[CLS]", "the", "cat", "[SEP]"]
    ids, mask, types = made.encode_pairs(["the cat", "cat"], ["sat", "sat."])
    assert made.tokens(ids[0]) == ["[CLS]", "the", "cat", "[SEP]", "sat", "[SEP]"]
    np.testing.assert_array_equal(types, [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1]])
    assert mask.all()


ADDED = {"10": {"content": "<x>", "special": True, "normalized": False}}


@pytest.mark.parametrize("files", ["vocab.txt", "tokenizer.json"])
@pytest.mark.parametrize(
    ("settings", "text", "tokens"),
    [
        ({}, "The c\u00e2t the", "[CLS] the cat [SEP]"),
        ({"do_lower_case": False}, "The cat", "[CLS] [UNK] cat [SEP]"),
        ({"strip_accents": False}, "the c\u00e2t", "[CLS] the [UNK] [SEP]"),
        ({"truncation_side": "left"}, "cat . the sat", "[CLS] the sat [SEP]"),
        ({"added_tokens_decoder": ADDED}, "the <x> sat", "[CLS] the <x> [SEP]"),
    ],
)
def test_settings_beside_a_vocabulary_act(bert, files, settings, text, tokens):
    if files == "tokenizer.json":
        read_tokenizer(bert).library.save(str(bert / files))
    settings = settings | {"tokenizer_class": "BertTokenizer"}
    (bert / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    made = read_tokenizer(bert)
    for each in (made, tokenizer_of(json.loads(json.dumps(made.to_dict())))):
        assert " ".join(each.tokens(each.ids(text, 4))) == tokens


def test_a_vocabulary_of_another_kind_is_refused(bert):
    (bert / "added_tokens.json").write_text('{"<x>": 12}', "utf-8")
    with pytest.raises(ValueError, match="'<x>' has the id 10, and 12 is stated"):
        read_tokenizer(bert)
    (bert / "config.json").write_text('{"tokenizer_class": "BertJapaneseTokenizer"}', "utf-8")
    with pytest.raises(ValueError, match="tokenizer_class 'BertJapaneseTokenizer', which npformer"):
        read_tokenizer(bert)


def test_a_byte_pair_vocabulary_of_roberta(tmp_path):
    library = tokenizers.ByteLevelBPETokenizer()
    library.train_from_iterator(
        TEXTS, vocab_size=300, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], show_progress=False
    )
    library.save_model(str(tmp_path))
    made = read_tokenizer(tmp_path)
    ids, _ = made.encode(["the cat"])
    assert made.tokens(ids[0])[0] == "<s>"
    assert made.tokens(ids[0])[-1] == "</s>"
    assert made.token(made.padding_id) == "<pad>"


def test_tokenizer_json(bert):
    read_tokenizer(bert).library.save(str(bert / "tokenizer.json"))
    (bert / "vocab.txt").unlink()
    assert read_tokenizer(bert).encode(["the cat"])[0].tolist() == [[2, 5, 6, 3]]


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no tokenizer; expected tokenizer\.json"):
        read_tokenizer(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no"):
        read_tokenizer(tmp_path / "none")
    (tmp_path / "tokenizer.json").write_text("{}", "utf-8")
    with pytest.raises(ValueError, match="is not a tokenizer"):
        read_tokenizer(tmp_path)
    (tmp_path / "vocab.txt").write_text("a\nb\n", "utf-8")
    with pytest.raises(ValueError, match=r"has no \[UNK\]"):
        read_tokenizer(tmp_path / "vocab.txt")


def test_a_token_may_hold_what_ends_lines_elsewhere(bert):
    words = [*(bert / "vocab.txt").read_text("utf-8").split(), "a\u2028b", "c\x85", "d\x1c\x0b"]
    (bert / "vocab.txt").write_text("\n".join([*words, "end"]) + "\n", "utf-8")
    assert read_tokenizer(bert).library.token_to_id("end") == len(words)


def test_ids_are_bounded_before_memory_is_taken(bert):
    read_tokenizer(bert).library.save(str(bert / "tokenizer.json"))
    text = (bert / "tokenizer.json").read_text("utf-8")
    for there in ('"id": 4', '"sat": 7'):
        assert there in text
        changed = text.replace(there, there[:-1] + "4000000000")
        (bert / "tokenizer.json").write_text(changed, "utf-8")
        with pytest.raises(ValueError, match="a token has the id 4000000000; expected ids below"):
            read_tokenizer(bert)


def test_mistakes_are_explained(bert):
    made = read_tokenizer(bert)
    with pytest.raises(TypeError, match=r"library is .bpe.; expected a tokenizers\.Tokenizer"):
        LibraryTokenizer("bpe")
    with pytest.raises(ValueError, match="no token 'nothing' for padding"):
        LibraryTokenizer(made.library, padding="nothing")
    with pytest.raises(ValueError, match="texts has 1 and others 2"):
        made.encode_pairs(["a"], ["b", "c"])
    with pytest.raises(ValueError, match="kind is 'letters'"):
        LibraryTokenizer.train(TEXTS, "letters")


def test_without_the_library_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    with pytest.raises(ImportError, match=r"npformer\[text\]"):
        LibraryTokenizer.train(TEXTS)
