"""SpellingTokenizer: a token for each character, and for frequent words; decoding is exact."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

from npformer.core import checks
from npformer.data.tokenizers.marks import unify_marks, word_pattern
from npformer.data.tokenizers.tokenizer import VocabularyTokenizer, check_texts

WORD = re.compile(" ?" + word_pattern(r"[^\W_]"))
"""A word with the space before it; the characters between words are single tokens."""

LEAST = 2
"""How often a word must occur to be a token."""


class SpellingTokenizer(VocabularyTokenizer):
    """A token for each character, and perhaps for frequent words: for models that write.

    The joined tokens are the text: case, spaces and line breaks are preserved. A word that is not a
    token is spelled out. Id 0 is padding, ids 1 and 2 mark the beginning and the end of a text, and
    id 3 is any character that is not a token; then come the characters, and then the words.

    Parameters
    ----------
    characters : sequence of str
        All characters that occur in the texts.
    words : sequence of str
        Each of at least 2 characters. A word with a space before it is a different token.
    """

    padding_id, begin_id, end_id, unknown_id = 0, 1, 2, 3
    special = ("[PAD]", "[BEGIN]", "[END]", "[UNK]")

    def __init__(self, characters: Sequence[str], words: Sequence[str] = ()) -> None:
        self.characters = check_texts(characters, "characters")
        self.words = check_texts(words, "words")
        checks.positive("the number of characters", len(self.characters))
        super().__init__([*self.special, *self.characters, *self.words])

    @classmethod
    def train(cls, texts: Iterable[str], *, words: bool = False, vocab_size: int = 2_000) -> Self:
        """Return a tokenizer with the characters, and perhaps the frequent words, of texts.

        Parameters
        ----------
        texts : iterable of str
        words : bool
            Whether frequent words are tokens; otherwise only characters are.
        vocab_size : int
            Maximum number of ids if `words`. All characters are included, whatever their number.
        """
        checks.flag("words", words)
        vocab_size = checks.positive("vocab_size", vocab_size)
        checked_texts = check_texts(texts)
        characters = sorted(set().union(*checked_texts))
        if not words:
            return cls(characters)
        counts: Counter[str] = Counter()
        for text in checked_texts:
            counts.update(text[place] for place in _word_slices(text))
        frequent = [word for word, n in counts.items() if n >= LEAST and len(word) > 1]
        ranked = sorted(frequent, key=lambda word: (-counts[word], word))
        n_words = max(vocab_size - len(characters) - len(cls.special), 0)
        return cls(characters, ranked[:n_words])

    def ids(self, text: str, max_len: int | None = None) -> list[int]:
        """Return the ids of one text."""
        tokens = self._split(text)
        return [self._id_of.get(token, self.unknown_id) for token in tokens][:max_len]

    def _split(self, text: str) -> Iterable[str]:
        """Return the tokens of a text: words of the vocabulary, and single characters."""
        if not self.words:
            return text
        tokens: list[str] = []
        end = 0  # of the previous word
        for place in _word_slices(text):
            tokens.extend(text[end : place.start])
            word = text[place]
            if word in self._id_of:
                tokens.append(word)
            else:
                tokens.extend(word)
            end = place.stop
        tokens.extend(text[end:])
        return tokens

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
        """Return the text of ids; the first four ids are special. See `Tokenizer`."""
        checks.flag("skip_special_tokens", skip_special_tokens)
        first = len(self.special) if skip_special_tokens else 0
        return "".join(self.token(id) for id in self.ids_with_token(ids) if id >= first)

    def pieces(self, ids: Iterable[int]) -> Iterator[str]:
        """Yield the text of each id, which does not depend on other ids."""
        for id in ids:
            yield self.decode([id])

    def to_dict(self) -> dict[str, Any]:
        """Return characters and words."""
        return {"kind": "spelling", "characters": self.characters, "words": self.words}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return the tokenizer that `to_dict` described."""
        return cls(values["characters"], values["words"])


def _word_slices(text: str) -> Iterator[slice]:
    """Yield the positions of the words in a text."""
    for match in WORD.finditer(unify_marks(text)):
        yield slice(match.start(), match.end())
