"""SpellingTokenizer: a token for each character, and for frequent words; nothing is lost."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

from npformer.core import checks
from npformer.data.tokenizers.marks import marks_alike, words_of
from npformer.data.tokenizers.tokenizer import VocabularyTokenizer, checked_texts

WORD = re.compile(" ?" + words_of(r"[^\W_]"))
"""A word, with the space before it: a text is its words and the characters between them."""

LEAST = 2
"""How often a word must occur to be a token."""


class SpellingTokenizer(VocabularyTokenizer):
    """A token for each character, and perhaps for frequent words: for models that write.

    The texts of the tokens, joined, are the text: case, spaces and line breaks stay. A word that is
    not a token is spelled out. Id 0 is padding, ids 1 and 2 stand for the beginning and the end of
    a text, and id 3 for any character that is not a token; the characters follow, then words.

    Parameters
    ----------
    characters : sequence of str
        All that occur.
    words : sequence of str
        Each of at least 2 characters; with a space before it, a word is another one.
    """

    padding_id, begin_id, end_id, unknown_id = 0, 1, 2, 3
    special = ("[PAD]", "[BEGIN]", "[END]", "[UNK]")

    def __init__(self, characters: Sequence[str], words: Sequence[str] = ()) -> None:
        self.characters = checked_texts(characters, "characters")
        self.words = checked_texts(words, "words")
        checks.positive("the number of characters", len(self.characters))
        super().__init__([*self.special, *self.characters, *self.words])

    @classmethod
    def train(cls, texts: Iterable[str], *, words: bool = False, vocab_size: int = 2_000) -> Self:
        """Return a tokenizer for some texts.

        Parameters
        ----------
        texts : iterable of str
        words : bool
            Whether frequent words are tokens. If not, characters alone are.
        vocab_size : int
            Maximum number of ids, with words. Characters are never left out.
        """
        checks.flag("words", words)
        vocab_size = checks.positive("vocab_size", vocab_size)
        listed = checked_texts(texts)
        characters = sorted(set().union(*listed))
        if not words:
            return cls(characters)
        counts = Counter(text[place] for text in listed for place in _places_of_words(text))
        kept = {word: n for word, n in counts.items() if n >= LEAST and len(word) > 1}
        ranked = sorted(kept, key=lambda word: (-kept[word], word))
        return cls(characters, ranked[: max(vocab_size - len(characters) - len(cls.special), 0)])

    def ids(self, text: str, max_len: int | None = None) -> list[int]:
        """Return the ids of one text."""
        return [self._id_of.get(piece, self.unknown_id) for piece in self._split(text)][:max_len]

    def _split(self, text: str) -> Iterable[str]:
        if not self.words:
            return text
        pieces: list[str] = []
        end = 0
        for place in _places_of_words(text):
            pieces += text[end : place.start]
            word, end = text[place], place.stop
            pieces += [word] if word in self._id_of else word
        return [*pieces, *text[end:]]

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
        """Return the text of some ids; the special ones are the first four. See `Tokenizer`."""
        first = len(self.special) if checks.flag("skip_special_tokens", skip_special_tokens) else 0
        return "".join(self.token(id) for id in self.with_token(ids) if id >= first)

    def pieces(self, ids: Iterable[int]) -> Iterator[str]:
        """Yield the text of each id: no other id changes it."""
        for id in ids:
            yield self.decode([id])

    def to_dict(self) -> dict[str, Any]:
        """Return characters and words."""
        return {"kind": "spelling", "characters": self.characters, "words": self.words}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return the tokenizer that `to_dict` described."""
        return cls(values["characters"], values["words"])


def _places_of_words(text: str) -> Iterator[slice]:
    """Yield where the words of a text are."""
    for match in WORD.finditer(marks_alike(text)):
        yield slice(match.start(), match.end())
