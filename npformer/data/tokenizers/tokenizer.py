"""Tokenizer: the base class of all tokenizers."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import a_type, checks, describe
from npformer.data.json_file import read_json_if_there
from npformer.data.lists import check_list
from npformer.data.tokenizers.word_places import WordPlaces, words_of_tokens

MASK = "[MASK]"
"""Stands in a text for a hidden token."""

WRITING = ("char", "word", "bpe")
"""Tokenizers for models that write; decoding is exact. See `train_writing_tokenizer`."""


class Tokenizer(ABC):
    """Encodes texts as rows of token ids.

    Attributes
    ----------
    vocab_size : int
        The number of ids, which run from 0 to vocab_size - 1.
    padding_id : int
        The id that fills a row after its last token.
    unknown_id : int or None
        The id of anything that is not in the vocabulary; None if the vocabulary covers every text.
    mask_id : int or None
        The id of a hidden token, ``[MASK]`` in a text; None if the tokenizer has none.
    begin_id, end_id : int or None
        The ids that mark the beginning and the end of a text, for models that write.
    """

    vocab_size: int
    padding_id: int
    unknown_id: int | None
    mask_id: int | None = None
    begin_id: int | None = None
    end_id: int | None = None

    @abstractmethod
    def ids(self, text: str, max_len: int | None = None) -> list[int]:
        """Return the ids of one text, at most `max_len`; the arguments have been checked."""

    @abstractmethod
    def token(self, id: int) -> str:
        """Return the token of an id."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON, from which `tokenizer_of` makes the tokenizer."""

    def encode(
        self, texts: Iterable[str], max_len: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the token ids of texts, and their mask.

        Parameters
        ----------
        texts : iterable of str
            A text without any token becomes one unknown token, or padding if there is none.
        max_len : int, optional
            Maximum number of tokens of a text; the rest is cut off. None: no limit.

        Returns
        -------
        ids : int array, shape (texts, length)
            `length` is that of the longest text; shorter rows are filled with `padding_id`.
        mask : bool array of the same shape
            True at tokens.
        """
        if max_len is not None:
            checks.positive("max_len", max_len)
        id_for_empty = self.padding_id if self.unknown_id is None else self.unknown_id
        rows = [self.ids(text, max_len) or [id_for_empty] for text in check_texts(texts)]
        return pad_rows(rows, self.padding_id)

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
        """Return the text of ids; TypeError if the tokenizer does not preserve spaces.

        Parameters
        ----------
        ids : iterable of int
            -1 and ids without a token are skipped: a model may have more ids than its tokenizer.
        skip_special_tokens : bool
            Whether to skip special tokens, too: padding, the beginning and the end of a text, ...
        """
        raise TypeError(
            f"{a_type(self)} does not keep spaces, so no text can be made from its ids; "
            f"expected another one, such as {', '.join(WRITING)}"
        )

    def stable_beginning(self, ids: list[int]) -> str:
        """Return a beginning of ``decode(ids)`` that no later id can change.

        All `ids` have a token. "" is always right, and what this class returns.
        """
        return ""

    def pieces(self, ids: Iterable[int]) -> Iterator[str]:
        """Yield the text of ids as they arrive; joined, it equals ``decode(ids)``.

        Text that a later id can still change, such as part of a character, is held back.
        """
        received: list[int] = []
        n_written = 0
        for id in ids:
            received += self.ids_with_token([id])
            text = self.stable_beginning(received)
            if len(text) > n_written:
                yield text[n_written:]
                n_written = len(text)
        rest = self.decode(received)[n_written:]
        if rest:
            yield rest

    def unknown_in(self, text: str) -> list[str]:
        """Return the characters of a text that are not in the vocabulary, each once."""
        characters = dict.fromkeys(text)
        return [character for character in characters if self.unknown_id in self.ids(character)]

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Return the token of each id."""
        return [self.token(id) for id in self.check_token_ids(ids)]

    def word_places(self, text: str, max_len: int | None = None) -> WordPlaces:
        """Return the words of a text, each with the places of its tokens among its ids."""
        return words_of_tokens(self.tokens(self.ids(text, max_len)))

    def check_token_ids(self, ids: Any) -> list[int]:
        """Return token ids as a list, after checking that each is in the vocabulary."""
        entries = check_list("ids", ids, "a whole number for each token")
        return [checks.whole("an id", id, 0, self.vocab_size - 1) for id in entries]

    def ids_with_token(self, ids: Any) -> list[int]:
        """Return the ids that have a token, after checking that all are whole numbers."""
        entries = check_list("ids", ids, "a whole number for each token")
        numbers = [checks.whole("an id", id, at_least=-1) for id in entries]
        return [id for id in numbers if self.has_token(id)]

    def has_token(self, id: int) -> bool:
        """Return whether an id has a token."""
        return 0 <= id < self.vocab_size

    def ids_without_token(self, vocab_size: int) -> list[int]:
        """Return the ids without a token, of a model whose ids run from 0 to ``vocab_size - 1``."""
        return [id for id in range(vocab_size) if not self.has_token(id)]


class VocabularyTokenizer(Tokenizer):
    """A tokenizer with a list of tokens: the id of each is its position in the list."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.vocabulary = list(tokens)
        self.vocab_size = len(tokens)
        self._id_of = {token: id for id, token in enumerate(tokens)}
        repeated = [token for token, n in Counter(tokens).items() if n > 1]
        if repeated:
            raise ValueError(f"{repeated[0]!r} is there more than once; expected different tokens")

    def token(self, id: int) -> str:
        """Return the token of an id."""
        return self.vocabulary[id]


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of a tokenizer from the files beside its vocabulary."""
    settings = read_json_if_there(folder / "tokenizer_config.json")
    if "added_tokens_decoder" not in settings:  # otherwise transformers ignores the other file
        settings |= read_json_if_there(folder / "special_tokens_map.json")
    return settings


def token_text(token: Any) -> str | None:
    """Return the text of a special token, stored as a string or as a dict with its settings."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None


SPACED_MARKS = " .", " ?", " !", " ,", " ' ", " n't", " 'm", " 's", " 've", " 're"
"""Marks with the spaces that some tokenizers leave beside them; removed in this order."""


def clean_up_spaces(text: str) -> str:
    """Return a decoded text without the spaces that some tokenizers leave beside marks."""
    for mark in SPACED_MARKS:
        text = text.replace(mark, mark.strip())
    return text


def clean_up_stable_beginning(text: str) -> str:
    """Return a beginning of ``clean_up_spaces(text + more)`` that is the same for every `more`."""
    for mark in SPACED_MARKS:
        text = text.replace(mark, mark.strip())
        for n in reversed(range(1, len(mark))):
            if text.endswith(mark[:n]):  # more text may complete the mark
                text = text[:-n]
                break
    return text


def pad_rows(rows: Sequence[Sequence[int]], padding_id: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of ids as one array, padded with `padding_id`, and its mask."""
    lengths = np.array([len(row) for row in rows], dtype="int64")
    mask = np.arange(lengths.max(initial=1)) < lengths[:, None]
    ids = np.full(mask.shape, padding_id, dtype="int64")
    ids[mask] = np.fromiter((id for row in rows for id in row), "int64", int(lengths.sum()))
    return ids, mask


def check_texts(texts: Any, name: str = "texts") -> list[str]:
    """Return texts as a list, after checking that each is a string."""
    entries = check_list(name, texts, "a string for each text")
    for i, text in enumerate(entries):
        if not isinstance(text, str):
            is_missing = str(text) in ("None", "nan", "NaT", "<NA>")
            problem = "missing" if is_missing else a_type(text)
            if describe(text) != problem:  # for an array both are the same
                problem = f"{problem}: {describe(text)}"
            raise TypeError(f"{name}[{i}] is {problem}; expected a string")
        if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
            raise ValueError(
                f"{name}[{i}] has half of a character, as of a wrong encoding: {text[:40]!a}; "
                "expected whole ones. text.encode('utf-8', 'replace').decode('utf-8') puts a '?'"
            )
    return entries
