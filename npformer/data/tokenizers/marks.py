"""Where words end: a mark belongs to what it stands behind, as in Unicode's word boundaries.

A word in Python's regular expressions has letters and digits, but not the marks that many scripts
write after, above or below them: the vowel signs of Hindi and Thai, the points of Hebrew and of
Arabic. Nor has it what is invisible within words and emoji, such as soft hyphens and the joiners of
Persian and Hindi. See Unicode Standard Annex 29.
"""

import unicodedata
from functools import cache

MARK = "\u0300"
"""What `marks_alike` puts for each mark."""

JOINER = "\u200d"
"""Joins emoji, and letters; it stays as it is."""

MARKS = f"[{MARK}{JOINER}]*"
"""In a regular expression for what `marks_alike` returns: all marks of a character."""

SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
GERESH = "\u05f3"
BETWEEN_WORDS = "\u200b"
"""An invisible space, as Khmer and Thai have it. It is no mark, though of the same category."""


def words_of(letter: str) -> str:
    """Return a regular expression for words, from one for a letter without its marks.

    Within a word there may be apostrophes, the middle dot of Catalan, and what Hebrew has in
    abbreviations.
    """
    within = '[\'\u2019\u00b7\u05f4\u2027"](?:(?<!")|(?=[\u05d0-\u05ea]))'
    letters = f"{letter}+(?:[{MARK}{JOINER}]+{letter}*)*"
    return f"{letters}(?:{within}{letters})*"


def marks_alike(text: str) -> str:
    """Return a text of the same length, in which all marks are `MARK`, to look for words in."""
    if text.isascii():
        return text
    replacements = {ord(c): other for c in set(text) if (other := _replacement(c)) != c}
    return text.translate(replacements) if replacements else text


@cache
def _replacement(character: str) -> str:
    """Return `MARK` for a mark, a space for an invisible one, and else the character."""
    if character == BETWEEN_WORDS:
        return " "
    is_mark = unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf")
    if character != JOINER and (is_mark or character in SKIN_TONES + GERESH):
        return MARK
    return character
