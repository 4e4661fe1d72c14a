"""The pieces of a streamed text, joined, are the text of all its ids, for every decoder."""

import numpy as np
import pytest

from npformer.data.tokenizers import LibraryTokenizer, SpellingTokenizer
from npformer.data.tokenizers.tokenizer import clean_up_spaces, clean_up_stable_beginning
from tests.needs import NEEDS

tokenizers = pytest.importorskip("tokenizers", reason=NEEDS["tokenizers"])
decoders = tokenizers.decoders

BYTES = [f"<0x{byte:02X}>" for byte in (0x41, 0x20, 0xE2, 0x82, 0xAC, 0xF0, 0x9F, 0x98, 0x80)]
WORDS = ["\u2581to", "\u2581be", "\u2581or", "n", "'", "\u2581'", "\u2581", "\u2581\u2581", "."]
WORDS += ["\u2581.", "##ly", "##'", "'s", "n't", "re", "end</w>", "</w>", "x</w>y", "|", "a|b"]
WORDS += ["<pad>", "<unk>", "\ufffd", "\u00e9", "a b", "do", "not", " ", "?", "ve", "  ", "aa"]
CHARACTERS = ["\u00e2", "\u0124", "\u00ac", "\u00f0", "\u0141", "\u013a", "\u0122", "\u0120", "a"]
"""Bytes of the euro sign and an emoji, a space and a letter, as byte-level tokens write them."""

UNDERLINE = decoders.Replace("\u2581", " ")


def tokenizer_with(decoder, clean_up=False):
    """Return a tokenizer in which some ids have no token, one is special, and one is added."""
    words = [*BYTES, *WORDS, *CHARACTERS, "<end>", "<own> token"]
    ids = {word: id + id // 20 for id, word in enumerate(words)}
    library = tokenizers.Tokenizer(tokenizers.models.WordLevel(ids, "<unk>"))
    library.add_special_tokens(["<end>"])
    library.add_tokens(["<own> token"])
    if decoder is not None:
        library.decoder = decoder
    tokenizer = LibraryTokenizer(library)
    tokenizer.clean_up = clean_up
    return tokenizer


def llama(*last):
    return decoders.Sequence([UNDERLINE, decoders.ByteFallback(), decoders.Fuse(), *last])


DECODERS = {
    "none": lambda: None,
    "byte-level": decoders.ByteLevel,
    "wordpiece": decoders.WordPiece,
    "wordpiece without clean-up": lambda: decoders.WordPiece(cleanup=False),
    "metaspace": decoders.Metaspace,
    "metaspace, first word": lambda: decoders.Metaspace(prepend_scheme="first"),
    "metaspace, never": lambda: decoders.Metaspace(prepend_scheme="never"),
    "llama": lambda: llama(decoders.Strip(" ", 1, 0)),
    "gemma": llama,
    "strip at the end": lambda: llama(decoders.Strip(" ", 1, 1)),
    "replace words": lambda: llama(decoders.Replace(" to be", "B")),
    "replace letters": lambda: llama(decoders.Replace("a", "__")),
    "replace by bytes": lambda: decoders.Sequence(
        [decoders.Replace("aa", "<0xE2>"), decoders.ByteFallback(), decoders.Fuse()]
    ),
    "byte fallback": decoders.ByteFallback,
    "fuse": decoders.Fuse,
    "ctc": decoders.CTC,
    "bpe": decoders.BPEDecoder,
    "bpe, then strip": lambda: decoders.Sequence(
        [decoders.BPEDecoder(), decoders.Fuse(), decoders.Strip(" ", 0, 1)]
    ),
    "byte-level, then strip": lambda: decoders.Sequence(
        [decoders.ByteLevel(), decoders.Strip("a", 0, 1)]
    ),
    "regular expression": lambda: decoders.Replace(tokenizers.Regex("[aeiou]+"), "*"),
}


@pytest.mark.parametrize("clean_up", [False, True])
@pytest.mark.parametrize("name", DECODERS)
def test_the_pieces_of_random_ids_are_their_text(name, clean_up):
    tokenizer = tokenizer_with(DECODERS[name](), clean_up)
    rng = np.random.default_rng(0)
    for length in range(1, 60):
        ids = rng.integers(0, tokenizer.vocab_size + 5, length)
        stream = [*tokenizer.pieces(ids.tolist())]
        assert "".join(stream) == tokenizer.decode(ids.tolist()), ids.tolist()
        assert "" not in stream


@pytest.mark.parametrize(
    ("name", "words"), [("llama", BYTES + WORDS[:1]), ("byte-level", CHARACTERS)]
)
def test_the_pieces_of_bytes_are_their_text(name, words):
    """Nearly only bytes, so that complete and incomplete characters follow each other."""
    rng = np.random.default_rng(0)
    tokenizer = tokenizer_with(DECODERS[name]())
    ids_of_words = [tokenizer.library.token_to_id(word) for word in words]
    for _ in range(300):
        ids = rng.choice(ids_of_words, 12).tolist()
        assert "".join(tokenizer.pieces(ids)) == tokenizer.decode(ids), tokenizer.tokens(ids)


@pytest.mark.parametrize(
    ("name", "words", "pieces"),
    [
        (
            "llama",
            ["\u2581to", "\u2581be", "\u2581or", "n", "not"],
            ["to", " be", " or", "n", "not"],
        ),
        ("llama", ["n", "<0xE2>", "<0x82>", "<0xAC>", "\u2581to"], ["n", "\u20ac to"]),
        ("llama", ["<0x41>", "<end>", "<0xE2>", "n"], ["\ufffd\ufffdn"]),  # and not A
        ("byte-level", ["a", "\u00e2", "\u0124", "\u00ac", "a"], ["a", "\u20ac", "a"]),
        ("byte-level", ["a", "\u00e2", "\u0124"], ["a", "\ufffd"]),
        ("wordpiece", ["do", "##ly", ".", "n't"], ["do", "ly", ".", "n't"]),
        ("bpe", ["a b", "end</w>", "end</w>"], ["a b", "end", " end"]),
        ("ctc", ["n", "n", "<pad>", "n", "|"], ["n", "n", " "]),
        ("none", ["do", "not", "<own> token"], ["do", " not", " <own> token"]),
        ("replace words", ["n", "\u2581to", "\u2581be"], ["nB"]),
        ("strip at the end", ["\u2581to", "\u2581be"], ["to be"]),
    ],
)
def test_a_piece_arrives_as_soon_as_no_later_id_can_change_it(name, words, pieces):
    tokenizer = tokenizer_with(DECODERS[name]())
    assert [*tokenizer.pieces(map(tokenizer.library.token_to_id, words))] == pieces


def test_spaces_beside_marks_wait_for_the_marks():
    tokenizer = tokenizer_with(None, clean_up=True)
    words = ["do", "n't", ".", "'", "s", "a b", "'", "a b"]
    ids = [tokenizer.library.token_to_id(word) for word in words if word != "s"]
    assert [*tokenizer.pieces(ids)] == ["do", "n't", ".", "'a b", "'a b"]


def test_clean_up_of_a_beginning_is_a_beginning_of_the_clean_up():
    letters = np.array([*" .?!,'ntmsvre"])
    rng = np.random.default_rng(0)
    for _ in range(2_000):
        text = "".join(rng.choice(letters, 30))
        for n in range(30):
            assert clean_up_spaces(text).startswith(clean_up_stable_beginning(text[:n])), (text, n)


def test_clean_up_does_not_change_a_text_without_marks():
    assert clean_up_stable_beginning("a text without marks") == "a text without marks"


def test_special_tokens_are_skipped_on_request():
    tokenizer = tokenizer_with(decoders.Fuse())
    end = tokenizer.library.token_to_id("<end>")
    gap = tokenizer.ids_without_token(tokenizer.vocab_size)[0]
    ids = [tokenizer.library.token_to_id("n"), end, -1, gap, 10**6]
    assert tokenizer.decode(ids) == "n"
    assert tokenizer.decode(ids, skip_special_tokens=False) == "n<end>"
    assert tokenizer.tokens([end, gap]) == ["<end>", str(gap)]


def test_a_spelling_tokenizer_skips_special_tokens_on_request():
    tokenizer = SpellingTokenizer(["a", "b"])
    assert tokenizer.decode([1, 4, 5, 2, 0, -1, 6]) == "ab"
    assert tokenizer.decode([1, 4, 5, 2, 6], skip_special_tokens=False) == "[BEGIN]ab[END]"


@pytest.mark.parametrize(
    "make_tokenizer",
    [lambda: tokenizer_with(decoders.Fuse()), lambda: SpellingTokenizer(["a", "b"])],
    ids=["library", "spelling"],
)
def test_wrong_arguments_of_decode_are_refused(make_tokenizer):
    tokenizer = make_tokenizer()
    with pytest.raises(TypeError, match="skip_special_tokens is 1; expected True or False"):
        tokenizer.decode([4], skip_special_tokens=1)
    with pytest.raises(ValueError, match=r"an id is 0\.5"):
        tokenizer.decode([0.5])


def test_a_decoder_that_fails_is_named():
    """Strip removes the same space twice, and the library raises a panic, no Exception."""
    tokenizer = tokenizer_with(decoders.Strip(" ", 1, 1))
    space = tokenizer.library.token_to_id(" ")
    for call in (lambda: tokenizer.decode([space]), lambda: [*tokenizer.pieces([space])]):
        with pytest.raises(ValueError, match=r"the tokenizer fails at ids: .*; expected one that"):
            call()


def test_ids_without_a_token():
    tokenizer = tokenizer_with(None)
    ids = tokenizer.library.get_vocab(with_added_tokens=True).values()
    size = tokenizer.vocab_size + 7
    assert tokenizer.ids_without_token(size) == sorted({*range(size)} - {*ids})
    assert len(tokenizer.ids_without_token(size)) > 7
    assert SpellingTokenizer(["a"]).ids_without_token(8) == [5, 6, 7]
