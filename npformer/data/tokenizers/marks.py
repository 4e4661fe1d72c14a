"""Word boundaries as in Unicode: a mark belongs to the character before it.

A word in Python's regular expressions has letters and digits, but not the marks that many scripts
write after, above or below them: the vowel signs of Hindi and Thai, the points of Hebrew and of
Arabic. It also lacks invisible characters within words and emoji, such as soft hyphens and the
joiners of Persian and Hindi. See Unicode Standard Annex 29.
"""

import unicodedata
from functools import cache

MARK = "\u0300"
"""Replaces each mark in the result of `unify_marks`."""

JOINER = "\u200d"
"""Joins emoji, and letters; `unify_marks` leaves it unchanged."""

MARKS = f"[{MARK}{JOINER}]*"
"""Matches all marks of a character in the result of `unify_marks`."""

SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
GERESH = "\u05f3"
BETWEEN_WORDS = "\u200b"
"""An invisible space, used in Khmer and Thai: no mark, although in the same Unicode category."""


def word_pattern(letter: str) -> str:
    """Return a regular expression for words, given one for a letter without its marks.

    A word may contain apostrophes, the middle dot of Catalan, and the marks of Hebrew
    abbreviations.
    """
    within = '[\'\u2019\u00b7\u05f4\u2027"](?:(?<!")|(?=[\u05d0-\u05ea]))'
    letters = f"{letter}+(?:[{MARK}{JOINER}]+{letter}*)*"
    return f"{letters}(?:{within}{letters})*"


def unify_marks(text: str) -> str:
    """Return a text of the same length in which every mark is `MARK`, to search it for words."""
    if text.isascii():
        return text
    replacements = {}
    for character in set(text):
        replacement = _replacement(character)
        if replacement != character:
            replacements[ord(character)] = replacement
    return text.translate(replacements) if replacements else text


@cache
def _replacement(character: str) -> str:
    """Return `MARK` for a mark, a space for an invisible space, otherwise the character."""
    if character == BETWEEN_WORDS:
        return " "
    is_mark = unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf")
    if character != JOINER and (is_mark or character in SKIN_TONES + GERESH):
        return MARK
    return character
