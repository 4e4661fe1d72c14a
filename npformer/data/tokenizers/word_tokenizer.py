"""WordTokenizer: a token for each word, and perhaps for its parts, without any library."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Self

from npformer.core import checks
from npformer.data.tokenizers.marks import JOINER, MARKS, unify_marks, word_pattern
from npformer.data.tokenizers.tokenizer import MASK, VocabularyTokenizer, check_texts
from npformer.data.tokenizers.word_places import WordPlaces

PADDING, UNKNOWN = "[PAD]", "[UNK]"

# Chinese characters and Japanese kana are written without spaces: each is a token, as in BERT.
SINGLE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD = word_pattern(rf"[^\W{SINGLE}]")
TOKEN = re.compile(
    rf"{WORD}|[{SINGLE}]{MARKS}|[\U0001f1e6-\U0001f1ff]{{2}}"
    rf"|[^\w\s]{MARKS}(?:(?<={JOINER})[^\w\s]{MARKS})*"
)
"""A word, also with apostrophes; a character that is a word by itself; a flag, which is two
characters; or another symbol. To be matched with the result of `unify_marks`."""

LEAST = 3
"""How often a part of words must occur: rarer parts cost time and help little."""


class WordTokenizer(VocabularyTokenizer):
    """A token for each word and each punctuation mark of the vocabulary.

    A word ends where Unicode's word boundaries say: marks, such as vowel signs, belong to it. In
    scripts without spaces between words, such as Thai, Lao, Khmer or Burmese, it is a whole run of
    letters, unless invisible spaces (U+200B) divide it; each Chinese or Japanese character is a
    token.

    Id 0 is padding, id 1 a word that is not in the vocabulary, and with `masks` id 2 is a hidden
    word; then come the words.

    Parameters
    ----------
    words : sequence of str
        The vocabulary, in Unicode form NFC, and in lower case if `lower`.
    lower : bool
        Whether texts are converted to lower case.
    ngrams : int
        If not 0, parts of words with so many letters are tokens, too, written ``#part``; their ids
        come after those of the words. With 4, "words" has the parts ``#<wor #word #ords #rds>``.
        So an unknown word can have known parts (Bojanowski et al., 2017, "Enriching word vectors
        with subword information").
    masks : bool
        Whether ``[MASK]`` in a text is a token, which hides a word.
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
        super().__init__(special + check_texts(words, "words"))

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
        """Return a tokenizer with the most frequent words, and parts of words, of `texts`.

        Parameters
        ----------
        texts : iterable of str
        vocab_size : int
            Maximum number of ids, including those of padding and unknown words.
        min_count : int
            How often a word must occur; a part of words must occur at least 3 times.
        lower, ngrams, masks
            As in the class.
        """
        vocab_size = checks.whole("vocab_size", vocab_size, at_least=3)
        checks.positive("min_count", min_count)
        checks.whole("ngrams", ngrams, at_least=0)
        counts = Counter(word for text in check_texts(texts) for word in split(text, lower))
        frequent = {word: n for word, n in counts.items() if n >= min_count}
        if ngrams:
            ngram_counts = _count_ngrams(counts, ngrams)
            least = max(min_count, LEAST)
            frequent |= {ngram: n for ngram, n in ngram_counts.items() if n >= least}
        ranked = sorted(frequent, key=lambda token: (-frequent[token], token))
        n_words = vocab_size - (3 if masks else 2)  # besides the special tokens
        return cls(ranked[:n_words], lower=lower, ngrams=ngrams, masks=masks)

    def ids(self, text: str, max_len: int | None = None) -> list[int]:
        """Return the ids of one text: of its words, then of their parts."""
        words = self._words(text)[:max_len]
        ids = [self._id_of.get(word, self.unknown_id) for word in words]
        if self.ngrams:
            for word in words:
                ngrams = ngrams_of(word, self.ngrams)
                ids += [self._id_of[ngram] for ngram in ngrams if ngram in self._id_of]
        return ids[:max_len]

    def word_places(self, text: str, max_len: int | None = None) -> WordPlaces:
        """Return the words of a text, each with the places of its id and of its parts' ids."""
        words = self._words(text)[:max_len]
        places = [(word, [place]) for place, word in enumerate(words)]
        n = len(words)
        for word, places_of_word in places if self.ngrams else ():
            n_parts = sum(ngram in self._id_of for ngram in ngrams_of(word, self.ngrams))
            places_of_word += range(n, n + n_parts)
            n += n_parts
        if max_len is None:
            return places
        return [(word, [place for place in of_word if place < max_len]) for word, of_word in places]

    def _words(self, text: str) -> list[str]:
        """Return the words of a text, and `MASK` for each hidden one."""
        if not self.mask_id:
            return split(text, self.lower)
        first, *rest = text.split(MASK)
        words = split(first, self.lower)
        for passage in rest:
            words += [MASK, *split(passage, self.lower)]
        return words

    def ngram_ids(self) -> list[int]:
        """Return the ids of parts of words."""
        return [id for id, word in enumerate(self.vocabulary) if len(word) > 1 and word[0] == "#"]

    def to_dict(self) -> dict[str, Any]:
        """Return the vocabulary."""
        masks = self.mask_id is not None
        n_special = 3 if masks else 2
        return {
            "kind": "words",
            "words": self.vocabulary[n_special:],
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
    unified = unify_marks(text)
    if unified == text:
        return TOKEN.findall(text)
    return [text[match.start() : match.end()] for match in TOKEN.finditer(unified)]


def _count_ngrams(counts: Counter[str], n: int) -> Counter[str]:
    """Return how often each part of n letters occurs, given how often each word occurs."""
    ngram_counts: Counter[str] = Counter()
    for word, count in counts.items():
        for ngram in ngrams_of(word, n):
            ngram_counts[ngram] += count
    return ngram_counts


def ngrams_of(word: str, n: int) -> list[str]:
    """Return the parts of n letters of a word, whose ends are marked; none for a short word."""
    marked = f"<{word}>"
    if len(marked) <= n:
        return []
    return [f"#{marked[i : i + n]}" for i in range(len(marked) - n + 1)]
