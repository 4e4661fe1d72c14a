"""Hugging Face's tokenizers, trained on texts and read from files."""

import json

import numpy as np
import pytest

from npformer.data.tokenizers import LibraryTokenizer, train_tokenizer
from npformer.interop.tokenizers import read_tokenizer, tokenizer_of
from tests.needs import NEEDS

tokenizers = pytest.importorskip("tokenizers", reason=NEEDS["tokenizers"])

TEXTS = ["The cat sat on the mat.", "A dog, a cat and a bird!", "Unrelated sentences"] * 3


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_a_trained_tokenizer_encodes(kind):
    tokenizer = LibraryTokenizer.train(TEXTS, kind, vocab_size=400)
    ids, mask = tokenizer.encode([*TEXTS, ""], max_len=6)
    assert ids.shape == mask.shape == (10, 6)
    assert ids.max() < tokenizer.vocab_size
    assert (ids[~mask] == tokenizer.padding_id).all()
    assert mask.any(axis=1).all()
    assert tokenizer.tokens(ids[0])[1].strip("Ġ") == "cat"


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_a_trained_tokenizer_can_be_stored_as_json(kind):
    tokenizer = LibraryTokenizer.train(TEXTS, kind, vocab_size=400)
    restored = tokenizer_of(json.loads(json.dumps(tokenizer.to_dict())))
    np.testing.assert_array_equal(restored.encode(TEXTS)[0], tokenizer.encode(TEXTS)[0])


def test_the_tokenizer_of_a_name():
    assert type(train_tokenizer("word", TEXTS)).__name__ == "WordTokenizer"
    assert type(train_tokenizer("bpe", TEXTS, vocab_size=300)) is LibraryTokenizer


@pytest.fixture
def bert(tmp_path):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "##s", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", "utf-8")
    return tmp_path


def test_a_vocabulary_of_bert(bert):
    tokenizer = read_tokenizer(bert)
    ids, _ = tokenizer.encode(["The cats sat."])
    assert tokenizer.tokens(ids[0]) == ["[CLS]", "the", "cat", "##s", "sat", ".", "[SEP]"]


def test_the_end_of_a_text_is_not_cut_off(bert):
    tokenizer = read_tokenizer(bert)
    ids, _ = tokenizer.encode(["The cats sat."], max_len=4)
    assert tokenizer.tokens(ids[0]) == ["[CLS]", "the", "cat", "[SEP]"]


def test_pairs_of_texts(bert):
    tokenizer = read_tokenizer(bert)
    ids, mask, types = tokenizer.encode_pairs([("the cat", "sat"), ("cat", "sat.")])
    assert tokenizer.tokens(ids[0]) == ["[CLS]", "the", "cat", "[SEP]", "sat", "[SEP]"]
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
        ({"extra_special_tokens": ["<x>"]}, "the <x> sat", "[CLS] the <x> [SEP]"),
        ({"unk_token": "sat"}, "the x", "[CLS] the sat [SEP]"),
        ({"bos_token": "cat"}, "thecat", "[CLS] the cat [SEP]"),
    ],
)
def test_settings_beside_a_vocabulary_are_used(bert, files, settings, text, tokens):
    if files == "tokenizer.json":
        read_tokenizer(bert).library.save(str(bert / files))
    settings = settings | {"tokenizer_class": "BertTokenizer"}
    (bert / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    tokenizer = read_tokenizer(bert)
    restored = tokenizer_of(json.loads(json.dumps(tokenizer.to_dict())))
    for reader in (tokenizer, restored):
        assert " ".join(reader.tokens(reader.ids(text, 4))) == tokens


@pytest.mark.parametrize(
    ("component", "change"),
    [
        ("normalizer", lambda settings: None),
        ("pre_tokenizer", lambda settings: None),
        ("post_processor", lambda settings: None),
        ("model", lambda settings: settings | {"max_input_chars_per_word": 2}),
        ("model", lambda settings: settings | {"type": "WordLevel"}),
    ],
    ids=["normalizer", "pre_tokenizer", "post_processor", "model settings", "model type"],
)
def test_a_tokenizer_json_has_the_components_of_its_class(bert, component, change):
    read_tokenizer(bert).library.save(str(bert / "tokenizer.json"))
    content = json.loads((bert / "tokenizer.json").read_text("utf-8"))
    content[component] = change(content[component])
    (bert / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    (bert / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizerFast"}', "utf-8")
    with pytest.raises(ValueError, match=f"its {component} is not that of a BertTokenizer"):
        read_tokenizer(bert)
    (bert / "tokenizer_config.json").write_text('{"tokenizer_class": "TokenizersBackend"}', "utf-8")
    assert read_tokenizer(bert).ids("cat")


@pytest.mark.parametrize("change", [{}, {"bos_token": "cat"}, {"add_prefix_space": False}])
def test_xlm_roberta_uses_the_special_tokens_of_its_file(tmp_path, change):
    words = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("\u2581cat", -1.0)]
    library = tokenizers.Tokenizer(tokenizers.models.Unigram(words, unk_id=3))
    library.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    library.post_processor = tokenizers.processors.BertProcessing(("</s>", 2), ("<s>", 0))
    library.save(str(tmp_path / "tokenizer.json"))
    settings = {"tokenizer_class": "XLMRobertaTokenizerFast", "bos_token": "<s>"} | change
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    if change:
        with pytest.raises(ValueError, match=r"tokenizer_config\.json contradicts it; expected"):
            read_tokenizer(tmp_path)
    else:
        assert read_tokenizer(tmp_path).ids("cat") == [0, 4, 2]


@pytest.mark.parametrize(
    ("settings", "types"),
    [
        ({}, [0, 0, 0, 1, 1]),
        ({"model_input_names": ["input_ids", "attention_mask"]}, [0] * 5),
        ({"tokenizer_class": "DistilBertTokenizer"}, [0] * 5),
    ],
    ids=["default", "model_input_names", "tokenizer_class"],
)
def test_token_types_of_pairs_follow_the_settings(bert, settings, types):
    (bert / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    tokenizer = tokenizer_of(json.loads(json.dumps(read_tokenizer(bert).to_dict())))
    assert tokenizer.encode_pairs([("the", "cat")])[2].tolist() == [types]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "the. ' s cat"),
        ({"clean_up_tokenization_spaces": True}, "the.'s cat"),
        ({"tokenizer_class": "DistilBertTokenizer"}, "the. ' s cat"),
    ],
    ids=["default", "clean_up_tokenization_spaces", "tokenizer_class"],
)
def test_spaces_of_decoded_texts_follow_the_settings(bert, settings, text):
    (bert / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    (bert / "added_tokens.json").write_text(json.dumps({"'": 10, "s": 11}), "utf-8")
    tokenizer = tokenizer_of(json.loads(json.dumps(read_tokenizer(bert).to_dict())))
    words = ["the", ".", "'", "s", "cat"]
    assert tokenizer.decode([tokenizer.library.token_to_id(word) for word in words]) == text


def test_a_wrong_id_of_an_added_token_is_refused(bert):
    (bert / "added_tokens.json").write_text('{"<x>": 12}', "utf-8")
    with pytest.raises(ValueError, match="'<x>' has the id 10, and 12 is stated"):
        read_tokenizer(bert)


def test_an_unsupported_setting_is_refused(bert):
    (bert / "tokenizer_config.json").write_text('{"split_special_tokens": true}', "utf-8")
    with pytest.raises(ValueError, match="has split_special_tokens, which npformer does not have"):
        read_tokenizer(bert)


def test_a_vocabulary_of_another_class_is_refused(bert):
    (bert / "config.json").write_text('{"tokenizer_class": "BertJapaneseTokenizer"}', "utf-8")
    with pytest.raises(ValueError, match="tokenizer_class 'BertJapaneseTokenizer', which npformer"):
        read_tokenizer(bert)


def test_a_byte_pair_vocabulary_of_roberta(tmp_path):
    library = tokenizers.ByteLevelBPETokenizer()
    library.train_from_iterator(
        TEXTS, vocab_size=300, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], show_progress=False
    )
    library.save_model(str(tmp_path))
    tokenizer = read_tokenizer(tmp_path)
    ids, _ = tokenizer.encode(["the cat"])
    assert tokenizer.tokens(ids[0])[0] == "<s>"
    assert tokenizer.tokens(ids[0])[-1] == "</s>"
    assert tokenizer.token(tokenizer.padding_id) == "<pad>"


def test_tokenizer_json(bert):
    read_tokenizer(bert).library.save(str(bert / "tokenizer.json"))
    (bert / "vocab.txt").unlink()
    assert read_tokenizer(bert).encode(["the cat"])[0].tolist() == [[2, 5, 6, 3]]


def test_a_folder_without_a_tokenizer_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no tokenizer; expected tokenizer\.json"):
        read_tokenizer(tmp_path)


def test_a_path_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_tokenizer(tmp_path / "none")


def test_a_tokenizer_json_without_content_is_refused(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}", "utf-8")
    with pytest.raises(ValueError, match="is not a tokenizer"):
        read_tokenizer(tmp_path)


def test_a_vocabulary_without_special_tokens_is_refused(tmp_path):
    (tmp_path / "vocab.txt").write_text("a\nb\n", "utf-8")
    with pytest.raises(ValueError, match=r"has no \[UNK\]"):
        read_tokenizer(tmp_path / "vocab.txt")


def test_a_token_may_contain_other_line_ends(bert):
    words = [*(bert / "vocab.txt").read_text("utf-8").split(), "a\u2028b", "c\x85", "d\x1c\x0b"]
    (bert / "vocab.txt").write_text("\n".join([*words, "end"]) + "\n", "utf-8")
    assert read_tokenizer(bert).library.token_to_id("end") == len(words)


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ('"id": 4', 4000000000, "a token has the id 4000000000; expected ids below"),
        ('"sat": 7', 4000000000, "a token has the id 4000000000; expected ids below"),
        ('"sat": 7', 6, "'cat' and 'sat' have the same id 6"),
        ('"id": 4', 7, r"'sat' and '\[MASK\]' have the same id 7"),
        ('"unk_token": "[UNK]"', "x", "the vocabulary has no x, the token of unknown words"),
    ],
)
def test_ids_are_checked_before_memory_is_allocated(bert, entry, value, message):
    read_tokenizer(bert).library.save(str(bert / "tokenizer.json"))
    text = (bert / "tokenizer.json").read_text("utf-8")
    key = entry.partition(":")[0]
    changed = text.replace(entry, f"{key}: {json.dumps(value)}")
    assert changed != text
    (bert / "tokenizer.json").write_text(changed, "utf-8")
    with pytest.raises(ValueError, match=message):
        read_tokenizer(bert)


def test_ids_are_checked_beside_a_token_named_model(tmp_path):
    (tmp_path / "vocab.json").write_text('{"model": 0, "a": 4000000000}', "utf-8")
    (tmp_path / "merges.txt").write_text("", "utf-8")
    with pytest.raises(ValueError, match="a token has the id 4000000000; expected ids below"):
        read_tokenizer(tmp_path)


def test_a_huge_id_in_a_stored_tokenizer_is_refused(bert):
    """Otherwise it would take all memory."""
    values = read_tokenizer(bert).to_dict()
    huge = values["json"].replace('"sat":7', '"sat":4000000000')
    with pytest.raises(ValueError, match="a token has the id 4000000000; expected"):
        tokenizer_of(values | {"json": huge})


def test_a_wrong_side_in_a_stored_tokenizer_is_refused(bert):
    values = read_tokenizer(bert).to_dict()
    message = "truncation_side is 'up'; expected one of 'left', 'right'"
    with pytest.raises(ValueError, match=message):
        tokenizer_of(values | {"truncation_side": "up"})


def test_a_slow_pattern_in_a_stored_tokenizer_does_not_end_the_process(bert):
    values = read_tokenizer(bert).to_dict()
    slow = {"type": "Replace", "pattern": {"Regex": "(x+x+)+y"}, "content": ""}
    slow_json = json.dumps(json.loads(values["json"]) | {"normalizer": slow})
    tokenizer = tokenizer_of(values | {"json": slow_json})
    with pytest.raises(ValueError, match=r"fails at a text: .*; expected one that"):
        tokenizer.encode(["x" * 40])
    assert tokenizer.encode(["cat"])[0].tolist() == [[2, 6, 3]]


def test_mistakes_are_explained(bert):
    tokenizer = read_tokenizer(bert)
    with pytest.raises(ValueError, match="max_len is 1; expected a whole number of at least 2"):
        tokenizer.encode(["the cat"], max_len=1)
    with pytest.raises(ValueError, match="max_len is 2; expected a whole number of at least 3"):
        tokenizer.encode_pairs([("the", "cat")], max_len=2)
    with pytest.raises(TypeError, match=r"library is a str; expected a Tokenizer"):
        LibraryTokenizer("bpe")
    with pytest.raises(ValueError, match="no token 'nothing' for padding"):
        LibraryTokenizer(tokenizer.library, padding="nothing")
    with pytest.raises(ValueError, match="the tokenizer fails at a text"):
        tokenizer.encode_pairs([("a", 1)])
    with pytest.raises(ValueError, match="kind is 'letters'"):
        LibraryTokenizer.train(TEXTS, "letters")


def test_without_the_library_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    with pytest.raises(ImportError, match=r"npformer\[text\]"):
        LibraryTokenizer.train(TEXTS)


@pytest.mark.parametrize("kind", ["word", "wordpiece", "bpe"])
def test_a_hidden_word_is_a_token(kind):
    tokenizer = train_tokenizer(kind, TEXTS, vocab_size=400, masks=True)
    restored = tokenizer_of(json.loads(json.dumps(tokenizer.to_dict())))
    for encoder in (tokenizer, restored):
        ids = encoder.ids("The [MASK] sat")
        assert [word.strip("Ġ") for word in encoder.tokens(ids)] == ["the", "[MASK]", "sat"]
        assert ids[1] == encoder.mask_id


@pytest.mark.parametrize("kind", ["word", "wordpiece", "bpe"])
def test_a_tokenizer_has_no_hidden_word_by_default(kind):
    assert train_tokenizer(kind, TEXTS, vocab_size=400).mask_id is None
