"""WordTokenizer: a token for each word, without any library."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Self

from npformer.core import checks
from npformer.text.tokenizer import Tokenizer, checked_texts

PADDING, UNKNOWN = "[PAD]", "[UNK]"

# Chinese characters and Japanese kana are written without spaces: each is a token, as in BERT.
SINGLE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
TOKEN = re.compile(rf"[{SINGLE}]|[^\W{SINGLE}]+(?:['\u2019][^\W{SINGLE}]+)*|[^\w\s]")
"""A character that is a word by itself; a word, also with apostrophes; or another sign."""


class WordTokenizer(Tokenizer):
    """A token for each word and each punctuation mark of the vocabulary.

    Id 0 is padding, id 1 a word that is not in the vocabulary, and the words follow.

    Parameters
    ----------
    words : sequence of str
        The vocabulary, as it is looked up: in Unicode's form NFC, and in lower case if `lower`.
    lower : bool
        Whether texts are brought to lower case.
    """

    padding_id, unknown_id = 0, 1

    def __init__(self, words: Sequence[str], *, lower: bool = True) -> None:
        checks.flag("lower", lower)
        self.lower = lower
        self.words = [PADDING, UNKNOWN, *checked_texts(words, "words")]
        self._id_of = {word: id for id, word in enumerate(self.words)}
        if len(self._id_of) < len(self.words):
            twice = [word for word, n in Counter(self.words).items() if n > 1]
            raise ValueError(f"words has {twice[0]!r} more than once; expected different words")

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        *,
        vocab_size: int = 30_000,
        min_count: int = 1,
        lower: bool = True,
    ) -> Self:
        """Return a tokenizer with the most frequent words of some texts.

        Parameters
        ----------
        texts : iterable of str
        vocab_size : int
            Most ids, with those of padding and of unknown words.
        min_count : int
            How often a word must occur.
        lower : bool
            Whether texts are brought to lower case.
        """
        vocab_size = checks.whole("vocab_size", vocab_size, at_least=3)
        checks.positive("min_count", min_count)
        counts = Counter(word for text in checked_texts(texts) for word in split(text, lower))
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        words = [word for word, n in ranked[: vocab_size - 2] if n >= min_count]
        return cls(words, lower=lower)

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        return len(self.words)

    def ids(self, text: str, max_len: int | None = None) -> list[int]:
        """Return the ids of one text."""
        return [self._id_of.get(word, self.unknown_id) for word in split(text, self.lower)][
            :max_len
        ]

    def token(self, id: int) -> str:
        """Return the word of an id."""
        return self.words[id]

    def to_dict(self) -> dict[str, Any]:
        """Return the vocabulary."""
        return {"kind": "words", "words": self.words[2:], "lower": self.lower}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return the tokenizer that `to_dict` described."""
        return cls(values["words"], lower=values["lower"])


def split(text: str, lower: bool = True) -> list[str]:
    """Return the words of a text, in order."""
    text = unicodedata.normalize("NFC", text)
    return TOKEN.findall(text.lower() if lower else text)
