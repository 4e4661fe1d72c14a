"""A text that comes piece by piece is the text of all its ids, whatever decoder makes it."""

import numpy as np
import pytest

from npformer.data.tokenizers import LibraryTokenizer, SpellingTokenizer
from npformer.data.tokenizers.tokenizer import clean_up_spaces, clean_up_stable_beginning
from tests.needs import NEEDS

tokenizers = pytest.importorskip("tokenizers", reason=NEEDS["tokenizers"])
decoders = tokenizers.decoders

BYTES = [f"<0x{byte:02X}>" for byte in (0x41, 0x20, 0xE2, 0x82, 0xAC, 0xF0, 0x9F, 0x98, 0x80)]
PIECES = ["\u2581to", "\u2581be", "\u2581or", "n", "'", "\u2581'", "\u2581", "\u2581\u2581", "."]
PIECES += ["\u2581.", "##ly", "##'", "'s", "n't", "re", "end</w>", "</w>", "x</w>y", "|", "a|b"]
PIECES += ["<pad>", "<unk>", "\ufffd", "\u00e9", "a b", "do", "not", " ", "?", "ve", "  ", "aa"]
CHARACTERS = ["\u00e2", "\u0124", "\u00ac", "\u00f0", "\u0141", "\u013a", "\u0122", "\u0120", "a"]
"""Bytes of the euro sign and an emoji, a space and a letter, as byte-level tokens write them."""

UNDERLINE = decoders.Replace("\u2581", " ")


def tokenizer_with(decoder, clean_up=False):
    """Return a tokenizer in which some ids have no token, one is special, and one is added."""
    words = [*BYTES, *PIECES, *CHARACTERS, "<end>", "<own> token"]
    ids = {word: id + id // 20 for id, word in enumerate(words)}
    library = tokenizers.Tokenizer(tokenizers.models.WordLevel(ids, "<unk>"))
    library.add_special_tokens(["<end>"])
    library.add_tokens(["<own> token"])
    if decoder is not None:
        library.decoder = decoder
    made = LibraryTokenizer(library)
    made.clean_up = clean_up
    return made


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
    tokenizer, rng = tokenizer_with(DECODERS[name](), clean_up), np.random.default_rng(0)
    for length in range(1, 60):
        ids = rng.integers(0, tokenizer.vocab_size + 5, length)
        pieces = [*tokenizer.pieces(ids.tolist())]
        assert "".join(pieces) == tokenizer.decode(ids.tolist()), ids.tolist()
        assert "" not in pieces


def test_tokens_of_bytes_are_cut_anywhere():
    """Nearly only bytes, so that whole and cut characters follow each other."""
    rng = np.random.default_rng(0)
    for name, words in (("llama", BYTES + PIECES[:1]), ("byte-level", CHARACTERS)):
        tokenizer = tokenizer_with(DECODERS[name]())
        known = [tokenizer.library.token_to_id(word) for word in words]
        for _ in range(300):
            ids = rng.choice(known, 12).tolist()
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
def test_a_piece_comes_as_soon_as_nothing_can_change_it(name, words, pieces):
    tokenizer = tokenizer_with(DECODERS[name]())
    assert [*tokenizer.pieces(map(tokenizer.library.token_to_id, words))] == pieces


def test_spaces_beside_marks_wait_for_the_marks():
    tokenizer = tokenizer_with(None, clean_up=True)
    words = ["do", "n't", ".", "'", "s", "a b", "'", "a b"]
    ids = [tokenizer.library.token_to_id(word) for word in words if word != "s"]
    assert [*tokenizer.pieces(ids)] == ["do", "n't", ".", "'a b", "'a b"]
    letters = np.array([*" .?!,'ntmsvre"])
    rng = np.random.default_rng(0)
    for _ in range(2_000):
        text = "".join(rng.choice(letters, 30))
        for n in range(30):
            assert clean_up_spaces(text).startswith(clean_up_stable_beginning(text[:n])), (text, n)
    assert clean_up_stable_beginning("a text without marks") == "a text without marks"


def test_special_tokens_are_left_out_or_not():
    tokenizer = tokenizer_with(decoders.Fuse())
    end = tokenizer.library.token_to_id("<end>")
    gap = tokenizer.ids_without_token(tokenizer.vocab_size)[0]
    ids = [tokenizer.library.token_to_id("n"), end, -1, gap, 10**6]
    assert tokenizer.decode(ids) == "n"
    assert tokenizer.decode(ids, skip_special_tokens=False) == "n<end>"
    assert tokenizer.tokens([end, gap]) == ["<end>", str(gap)]
    spelling = SpellingTokenizer(["a", "b"])
    assert spelling.decode([1, 4, 5, 2, 0, -1, 6]) == "ab"
    assert spelling.decode([1, 4, 5, 2, 6], skip_special_tokens=False) == "[BEGIN]ab[END]"
    for each in (tokenizer, spelling):
        with pytest.raises(TypeError, match="skip_special_tokens is 1; expected True or False"):
            each.decode([4], skip_special_tokens=1)
        with pytest.raises(ValueError, match=r"an id is 0\.5"):
            each.decode([0.5])


def test_a_decoder_that_fails_is_named():
    """Strip takes the same space away twice, and the library's panic is no Exception."""
    tokenizer = tokenizer_with(decoders.Strip(" ", 1, 1))
    space = tokenizer.library.token_to_id(" ")
    for call in (lambda: tokenizer.decode([space]), lambda: [*tokenizer.pieces([space])]):
        with pytest.raises(ValueError, match=r"the tokenizer fails at ids: .*; expected one that"):
            call()


def test_ids_that_no_token_has_are_known():
    tokenizer = tokenizer_with(None)
    ids = tokenizer.library.get_vocab(with_added_tokens=True).values()
    size = tokenizer.vocab_size + 7
    assert tokenizer.ids_without_token(size) == sorted({*range(size)} - {*ids})
    assert len(tokenizer.ids_without_token(size)) > 7
    assert SpellingTokenizer(["a"]).ids_without_token(8) == [5, 6, 7]
