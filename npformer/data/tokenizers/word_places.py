"""The words of a text, of the names of its tokens: parts of a word go with their word."""

from collections.abc import Sequence

CONTINUATION = "##"
"""What a token begins with that continues the word before it (WordPiece)."""

SPACES = ("\u0120", "\u2581")
"""What a token begins with after a space (byte-level BPE; SentencePiece)."""

WordPlaces = list[tuple[str, list[int]]]
"""Words of a text, each with the places of its tokens."""


def words_of_tokens(names: Sequence[str]) -> WordPlaces:
    """Return the words that tokens make, in order.

    Where a token begins with a mark of a space, those without it continue the word before.
    """
    marks_spaces = any(name.startswith(SPACES) for name in names)
    words: WordPlaces = []
    may_continue = False
    for place, name in enumerate(names):
        is_special = len(name) > 2 and (name[0] + name[-1]) in ("[]", "<>")
        continues = name.startswith(CONTINUATION) or (marks_spaces and not name.startswith(SPACES))
        if continues and may_continue and not is_special:
            word, places = words[-1]
            longer = word.lstrip("".join(SPACES)) + name.removeprefix(CONTINUATION)
            words[-1] = (longer, [*places, place])
        else:
            words.append((name.lstrip("".join(SPACES)) or name, [place]))
        may_continue = not is_special
    return words
