"""Models with more ids than their tokenizer has tokens, and texts that they write."""

import re

import numpy as np
import pytest

import npformer as nf
from npformer import cli
from npformer.data.tokenizers import LibraryTokenizer
from npformer.interop.tokenizers import read_tokenizer
from tests.interop.folders import WORDS, config_of, vocabulary
from tests.interop.pieces import PADDED, llama_folder, llama_tokenizer, state_of, tokenizers

UNUSED = 290
"""An id of the model that no token has."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return llama_folder(tmp_path_factory.mktemp("padded"), add_bos_token=True, padding_side="left")


def writer_of(folder, likeliest=()):
    """Return the writer, whose model writes these ids most of the time."""
    writer = nf.from_pretrained(folder)
    output = writer.model.output.weight.value
    output[...] = np.random.default_rng(0).normal(size=output.shape)
    output[:, [*likeliest]] *= 40.0
    return writer


def test_a_stream_is_the_text_that_generate_returns(folder):
    writer = writer_of(folder)
    id_of = writer.tokenizer.library.token_to_id
    words = ["\u2581To", "\u2581be", "\u2581or", "\u2581not", "<0xE2>", "<0x82>", "<0xAC>"]
    never = set(range(PADDED)) - {id_of(word) for word in words}
    spaces = 0
    for seed in range(30):
        options = {"seed": seed, "never": never}
        text = writer.generate("To be", 12, **options)
        assert "".join(writer.stream("To be", 12, **options)) == text
        spaces += text.count(" ")
    assert spaces > 100
    texts = writer.generate(["To be", "or"], 12, seed=3)
    assert texts[0] == "".join(writer.stream("To be", 12, seed=3))


def test_the_command_prints_the_same_text(folder, capsys):
    assert cli.main(["generate", str(folder), "To be", "--tokens", "20", "--seed", "5"]) == 0
    expected = nf.from_pretrained(folder).generate("To be", 20, seed=5)
    assert capsys.readouterr().out == f"To be{expected}\n"


@pytest.mark.parametrize(
    "options", [{"temperature": 0.0}, {"temperature": 1.0}, {"top_k": 3}, {"top_p": 0.9}]
)
def test_ids_without_a_token_are_not_written(folder, options):
    unused = range(UNUSED, PADDED)
    writer = writer_of(folder, likeliest=unused)
    prompts = [writer.tokenizer.ids("To be")] * 3
    assert np.isin(writer.model.generate(prompts, 20, **options), unused).any()
    text = writer.generate(["To be"] * 3, 20, **options)
    assert "".join(writer.stream("To be", 20, **options)) == text[0]
    drawn = []
    writer.tokenizer.decode = lambda ids: drawn.extend(ids) or ""
    writer.generate(["To be"] * 3, 20, **options)
    assert drawn
    assert max(drawn) < writer.tokenizer.vocab_size < UNUSED


def test_an_end_may_be_an_id_without_a_token(folder):
    writer = writer_of(folder)
    writer._generation_settings["eos_token_id"] = UNUSED
    letter = writer.tokenizer.library.token_to_id("o")
    never = set(range(PADDED)) - {UNUSED, letter}
    lengths = {len(writer.generate("To be", 30, seed=seed, never=never)) for seed in range(5)}
    assert len(lengths) > 1
    assert max(lengths) < 30


def test_other_ends_are_ids(folder):
    writer = writer_of(folder)
    text = writer.generate("To be", 12, seed=1)
    never = range(writer.tokenizer.vocab_size, PADDED)
    row = writer.model.generate(writer.tokenizer.ids("To be"), 12, seed=1, never=never).tolist()
    assert text == writer.tokenizer.decode(row)
    for stop in (row[5], [row[5]], np.array([row[5]]), {row[5]}):
        expected = writer.tokenizer.decode(row[: row.index(row[5])])
        assert writer.generate("To be", 12, seed=1, stop=stop) == expected
        assert "".join(writer.stream("To be", 12, seed=1, stop=stop)) == expected


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"stop": "\n"},
            r"stop is '\\n'; expected token ids\. .*look for it in what stream yields",
        ),
        ({"stop": ["\n", "END"]}, r"stop is \['\\n', 'END'\]; expected token ids"),
        ({"stop": re.compile("x")}, "stop is a Pattern; expected token ids"),
        ({"stop": b"x"}, "stop is b'x'; expected token ids"),
        ({"stop": 1.5}, "stop is 1.5; expected a whole number"),
        (
            {"stop": [PADDED]},
            f"stop is {PADDED}; expected a whole number of at least 0 and at most",
        ),
        ({"never": "a"}, "never is 'a'; expected token ids"),
        ({"never": range(PADDED)}, f"never has all {PADDED} tokens; expected some to be left"),
        ({"max_new_tokens": 5}, "takes no 'max_new_tokens'; it takes .*Did you mean 'n'"),
        ({"stop_strings": ["a"]}, "takes no 'stop_strings'; it takes .*stop"),
        ({"probabilities": True}, r"text has no probabilities, .*model\.generate\("),
    ],
)
def test_wrong_ends_are_answered_in_words(folder, options, said):
    writer = nf.from_pretrained(folder)
    with pytest.raises((TypeError, ValueError), match=said):
        writer.generate("To be", 5, **options)
    if "probabilities" not in options:
        with pytest.raises((TypeError, ValueError), match=said):
            writer.stream("To be", 5, **options)


def test_a_writer_of_its_own_answers_the_same():
    writer = nf.TextWriter({"d_model": 8, "n_layers": 1, "n_heads": 2, "d_ff": 8, "max_len": 8})
    writer.fit("to be or not to be " * 4, epochs=1, progress=False)
    with pytest.raises(TypeError, match=r"stop is 'b'; expected token ids"):
        writer.generate("to", 5, stop="b")
    with pytest.raises(TypeError, match="takes no 'probabilities'"):
        writer.generate("to", 5, probabilities=True)
    end = writer.tokenizer_.ids(" ")
    text = writer.generate("to", 20)
    assert writer.generate("to", 20, stop=end) == text.split(" ")[0]


def test_hidden_tokens_become_none_without_a_token(tmp_path):
    tokenizer = vocabulary(tmp_path)
    model = nf.MaskedLanguageModel(config_of("bert"), len(WORDS) + 12, mask_id=tokenizer.mask_id)
    nf.interop.save_pretrained(model, tmp_path / "bert", tokenizer=tokenizer)
    pretrained = nf.from_pretrained(tmp_path / "bert")
    masked = pretrained.masked_language_model()
    assert set(range(len(WORDS), len(WORDS) + 12)) <= set(masked.masking().special_ids)
    ids = np.full((200, 16), tokenizer.ids("cat")[1])
    x, _ = masked.masking().hide(ids, None, np.random.default_rng(0).random((200, 16, 3)))
    assert len(np.unique(x)) > 10
    assert x.max() < len(WORDS)
    for words in nf.fill(pretrained, "the [MASK]", k=100):
        assert {word for word, _ in words} <= set(WORDS)
    for words in nf.fill(model, "the [MASK]", k=100, tokenizer=tokenizer):
        assert {word for word, _ in words} <= set(WORDS)


def test_gaps_of_a_vocabulary_are_neither_hidden_nor_drawn():
    words = {"[PAD]": 0, "[MASK]": 1, "[UNK]": 2, "a": 3, "b": 5, "c": 8}
    library = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, "[UNK]"))
    library.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    settings = {"d_model": 8, "n_layers": 1, "n_heads": 2, "d_ff": 8, "max_len": 4}
    filler = nf.TextFiller(settings, tokenizer=LibraryTokenizer(library))
    filler.fit(["a b c"] * 4, epochs=1, progress=False)
    assert {4, 6, 7} <= set(filler.model.masking().special_ids)


BEGIN, END, PREFIX = "add_bos_token", "add_eos_token", "add_prefix_space"


@pytest.mark.parametrize(
    ("tokenizer", "settings", "said"),
    [
        ({}, {BEGIN: True}, ""),
        ({}, {BEGIN: True, END: False, "legacy": False}, ""),
        ({}, {BEGIN: None, END: None, PREFIX: None}, ""),
        ({}, {PREFIX: True}, ""),
        ({"prefix": "first"}, {BEGIN: True, PREFIX: True}, ""),
        ({"prefix": "never"}, {BEGIN: True, PREFIX: False}, ""),
        ({"begins": False}, {BEGIN: False, END: False}, ""),
        ({"begins": False}, {BEGIN: True, "bos_token": None}, ""),
        ({"begins": False}, {BEGIN: True}, "add_bos_token = True, and '<s>' is not added"),
        ({}, {BEGIN: True, END: True}, "add_eos_token = True, and '</s>' is not added"),
        ({}, {PREFIX: False}, "add_prefix_space = False, and a space is added"),
        ({"prefix": "never"}, {PREFIX: True}, "add_prefix_space = True, and a space is not added"),
        ({"prefix": "never"}, {PREFIX: True, "tokenizer_class": "PreTrainedTokenizerFast"}, ""),
    ],
)
def test_a_tokenizer_that_contradicts_its_settings_is_refused(tmp_path, tokenizer, settings, said):
    library = llama_tokenizer(**tokenizer)
    state_of(tmp_path, library, **settings)
    if said:
        with pytest.raises(ValueError, match=f"with {re.escape(said)} by its tokenizer; expected"):
            read_tokenizer(tmp_path, padding="</s>")
    else:
        read = read_tokenizer(tmp_path, padding="</s>")
        assert read.ids("To be") == library.encode("To be").ids


def test_an_end_that_the_settings_do_not_want_is_warned_of(tmp_path):
    """tokenizer.json counts, as in transformers 5."""
    state_of(tmp_path, llama_tokenizer(), add_bos_token=False)
    with pytest.warns(UserWarning, match="add_bos_token = False, and '<s>' is added by .*follows"):
        assert read_tokenizer(tmp_path, padding="</s>").ids("To")[0] == 1


def test_neither_sides_nor_lengths_of_a_file_change_a_text(tmp_path, folder):
    """Each text is as it is alone: padding stands behind it, and nothing is cut unasked."""
    library = llama_tokenizer()
    library.enable_padding(direction="left", pad_id=2, pad_token="</s>", length=9)
    library.enable_truncation(2)
    state_of(tmp_path, library, padding_side="left", model_max_length=2)
    tokenizer = read_tokenizer(tmp_path)
    ids, mask = tokenizer.encode(["To be or not", "To"])
    alone = tokenizer.ids("To")
    assert len(tokenizer.ids("To be or not")) == 5
    assert ids[1].tolist() == alone + [2] * 3
    assert mask[1].tolist() == [True, True, False, False, False]
    writer = nf.from_pretrained(folder)  # whose settings say "left"
    written = writer.generate(["To be or not", "To"], 8, temperature=0)
    assert written == [writer.generate(text, 8, temperature=0) for text in ("To be or not", "To")]
