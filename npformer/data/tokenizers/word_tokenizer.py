"""WordTokenizer: a token for each word, and perhaps for its parts, without any library."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Self

from npformer.core import checks
from npformer.data.tokenizers.marks import JOINER, MARKS, marks_alike, words_of
from npformer.data.tokenizers.tokenizer import MASK, VocabularyTokenizer, checked_texts

PADDING, UNKNOWN = "[PAD]", "[UNK]"

# Chinese characters and Japanese kana are written without spaces: each is a token, as in BERT.
SINGLE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD = words_of(rf"[^\W{SINGLE}]")
TOKEN = re.compile(
    rf"{WORD}|[{SINGLE}]{MARKS}|[\U0001f1e6-\U0001f1ff]{{2}}"
    rf"|[^\w\s]{MARKS}(?:(?<={JOINER})[^\w\s]{MARKS})*"
)
"""A word, also with apostrophes; a character that is a word by itself; a flag, which is two
characters; or another symbol. For what `marks_alike` returns."""

LEAST = 3
"""How often a part of words must occur: rarer ones take time and say little."""


class WordTokenizer(VocabularyTokenizer):
    """A token for each word and each punctuation mark of the vocabulary.

    A word ends where Unicode's word boundaries say: marks, such as vowel signs, belong to it. In
    scripts without spaces between words it is a whole run of letters, as in Thai, Lao, Khmer or
    Burmese, unless invisible spaces (U+200B) divide it; Chinese and Japanese characters are single.

    Id 0 is padding, id 1 a word that is not in the vocabulary, with `masks` id 2 is a hidden word,
    and the words follow.

    Parameters
    ----------
    words : sequence of str
        The vocabulary, as it is looked up: in Unicode form NFC, and in lower case if `lower`.
    lower : bool
        Whether texts are converted to lower case.
    ngrams : int
        If not 0, the tokens of a text are followed by the parts of its words with so many letters,
        written ``#part``, that are in the vocabulary: 4 makes ``#<wor #word #ords #rds>`` from
        "words". A word that was never seen then has known parts (Bojanowski et al., 2017,
        "Enriching word vectors with subword information").
    masks : bool
        Whether ``[MASK]`` in a text is a token, which stands for a hidden word.
    """

    padding_id, unknown_id = 0, 1

    def __init__(
        self, words: Sequence[str], *, lower: bool = True, ngrams: int = 0, masks: bool = False
    ) -> None:
        self.lower = checks.flag("lower", lower)
        self.ngrams = checks.whole("ngrams", ngrams, at_least=0)
        self.mask_id = 2 if checks.flag("masks", masks) else None
        special = [PADDING, UNKNOWN]
        if masks:
            special.append(MASK)
        super().__init__(special + checked_texts(words, "words"))

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        *,
        vocab_size: int = 30_000,
        min_count: int = 1,
        lower: bool = True,
        ngrams: int = 0,
        masks: bool = False,
    ) -> Self:
        """Return a tokenizer with the most frequent words, and parts of words, of some texts.

        Parameters
        ----------
        texts : iterable of str
        vocab_size : int
            Maximum number of ids, including those of padding and unknown words.
        min_count : int
            How often a word must occur; a part at least 3 times.
        lower, ngrams, masks
            As in the class.
        """
        vocab_size = checks.whole("vocab_size", vocab_size, at_least=3)
        checks.positive("min_count", min_count)
        checks.whole("ngrams", ngrams, at_least=0)
        counts = Counter(word for text in checked_texts(texts) for word in split(text, lower))
        frequent = {word: n for word, n in counts.items() if n >= min_count}
        if ngrams:
            counts_of_parts = _count_parts(counts, ngrams)
            at_least = max(min_count, LEAST)
            frequent |= {part: n for part, n in counts_of_parts.items() if n >= at_least}
        ranked = sorted(frequent, key=lambda token: (-frequent[token], token))
        return cls(ranked[: vocab_size - 2 - masks], lower=lower, ngrams=ngrams, masks=masks)

    def ids(self, text: str, max_len: int | None = None) -> list[int]:
        """Return the ids of one text: its words, then parts of them."""
        words = self._words(text)[:max_len]
        ids = [self._id_of.get(word, self.unknown_id) for word in words]
        if self.ngrams:
            parts = [part for word in words for part in parts_of(word, self.ngrams)]
            ids += [self._id_of[part] for part in parts if part in self._id_of]
        return ids[:max_len]

    def _words(self, text: str) -> list[str]:
        """Return the words of a text, and `MASK` for each hidden one."""
        if not self.mask_id:
            return split(text, self.lower)
        first, *others = text.split(MASK)
        words = split(first, self.lower)
        for passage in others:
            words += [MASK, *split(passage, self.lower)]
        return words

    def parts(self) -> list[int]:
        """Return the ids of parts of words."""
        return [id for id, word in enumerate(self.vocabulary) if len(word) > 1 and word[0] == "#"]

    def to_dict(self) -> dict[str, Any]:
        """Return the vocabulary."""
        masks = self.mask_id is not None
        return {
            "kind": "words",
            "words": self.vocabulary[2 + masks :],
            "lower": self.lower,
            "ngrams": self.ngrams,
            "masks": masks,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return the tokenizer that `to_dict` described."""
        return cls(
            values["words"],
            lower=values.get("lower", True),
            ngrams=values.get("ngrams", 0),
            masks=values.get("masks", False),
        )


def split(text: str, lower: bool = True) -> list[str]:
    """Return the words of a text, in order."""
    text = unicodedata.normalize("NFC", text)
    if lower:
        text = text.lower()
    if (searched := marks_alike(text)) == text:
        return TOKEN.findall(text)
    return [text[match.start() : match.end()] for match in TOKEN.finditer(searched)]


def _count_parts(counts: Counter[str], n: int) -> Counter[str]:
    """Return how often each part of n letters occurs in words, from how often each of them does."""
    counts_of_parts: Counter[str] = Counter()
    for word, count in counts.items():
        for part in parts_of(word, n):
            counts_of_parts[part] += count
    return counts_of_parts


def parts_of(word: str, n: int) -> list[str]:
    """Return the parts of n letters of a word, whose ends are marked; none for a short word."""
    marked = f"<{word}>"
    if len(marked) <= n:
        return []
    return [f"#{marked[i : i + n]}" for i in range(len(marked) - n + 1)]
