"""Tokenizer: what all tokenizers can do."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import a_type, checks, described
from npformer.data.json_file import read_json_if_there
from npformer.data.lists import listed

MASK = "[MASK]"
"""What stands in a text for a hidden token."""

WRITING = ("char", "word", "bpe")
"""Tokenizers of models that write, which lose nothing: see `writing_tokenizer`."""


class Tokenizer(ABC):
    """Turns texts into rows of token ids.

    Attributes
    ----------
    vocab_size : int
        The number of ids, which run from 0 to vocab_size - 1.
    padding_id : int
        The id that fills a row after its last token.
    unknown_id : int or None
        The id of what is not in the vocabulary; None if nothing is unknown.
    mask_id : int or None
        The id that stands for a hidden token, ``[MASK]`` in a text; None if there is none.
    begin_id, end_id : int or None
        The ids that stand for the beginning and the end of a text, for models that write.
    """

    vocab_size: int
    padding_id: int
    unknown_id: int | None
    mask_id: int | None = None
    begin_id: int | None = None
    end_id: int | None = None

    @abstractmethod
    def ids(self, text: str, max_len: int | None = None) -> list[int]:
        """Return the ids of one text, at most `max_len`; both have been checked."""

    @abstractmethod
    def token(self, id: int) -> str:
        """Return what an id stands for."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON, for `tokenizer_of`."""

    def encode(
        self, texts: Iterable[str], max_len: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the token ids of texts, and their mask.

        Parameters
        ----------
        texts : iterable of str
            A text without any token becomes the id of an unknown one, or of padding.
        max_len : int, optional
            The most tokens per text; the rest is cut off. None: all tokens.

        Returns
        -------
        ids : int array, shape (texts, length)
            As long as the longest text, and padded with `padding_id`.
        mask : bool array of the same shape
            True at tokens.
        """
        if max_len is not None:
            checks.positive("max_len", max_len)
        empty = [self.padding_id if self.unknown_id is None else self.unknown_id]
        return padded(
            [self.ids(text, max_len) or empty for text in checked_texts(texts)], self.padding_id
        )

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
        """Return the text of some ids, if the tokenizer can tell.

        Parameters
        ----------
        ids : iterable of int
            -1, and ids that no token has, are left out: a model may have more ids than its
            tokenizer.
        skip_special_tokens : bool
            Whether tokens such as padding, and a text's beginning and end, are left out, too.
        """
        raise TypeError(
            f"{a_type(self)} does not keep spaces, so no text can be made from its ids; "
            f"expected another one, such as {', '.join(WRITING)}"
        )

    def settled_text(self, ids: list[int]) -> str:
        """Return a beginning of ``decode(ids)`` that stays as it is, whatever ids follow.

        `ids` are those that a token has. A tokenizer that does not know its own returns "".
        """
        return ""

    def pieces(self, ids: Iterable[int]) -> Iterator[str]:
        """Yield the text of ids as they come: joined, it is what `decode` makes of them all.

        What a later id may still change waits for it, such as a part of a character.
        """
        with_token: list[int] = []
        n_written = 0
        for id in ids:
            with_token += self.with_token([id])
            text = self.settled_text(with_token)
            if len(text) > n_written:
                yield text[n_written:]
                n_written = len(text)
        rest = self.decode(with_token)[n_written:]
        if rest:
            yield rest

    def unknown_in(self, text: str) -> list[str]:
        """Return the characters of a text that are not in the vocabulary, each once."""
        return [c for c in dict.fromkeys(text) if self.unknown_id in self.ids(c)]

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Return what each of some ids stands for."""
        return [self.token(id) for id in self.checked(ids)]

    def checked(self, ids: Any) -> list[int]:
        """Return token ids as a list, after checking that each is in the vocabulary."""
        entries = listed("ids", ids, "a whole number for each token")
        return [checks.whole("an id", id, 0, self.vocab_size - 1) for id in entries]

    def with_token(self, ids: Any) -> list[int]:
        """Return those of some ids that a token has, after checking that all are numbers."""
        entries = listed("ids", ids, "a whole number for each token")
        numbers = [checks.whole("an id", id, at_least=-1) for id in entries]
        return [id for id in numbers if self.has_token(id)]

    def has_token(self, id: int) -> bool:
        """Return whether an id has a token."""
        return 0 <= id < self.vocab_size

    def ids_without_token(self, vocab_size: int) -> list[int]:
        """Return the ids of a model, which run up to ``vocab_size - 1``, that no token has."""
        return [id for id in range(vocab_size) if not self.has_token(id)]


class VocabularyTokenizer(Tokenizer):
    """A tokenizer with a list of pieces: the id of each is its place in the list."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self.vocabulary, self.vocab_size = list(pieces), len(pieces)
        self._id_of = {piece: id for id, piece in enumerate(pieces)}
        if twice := [piece for piece, n in Counter(pieces).items() if n > 1]:
            raise ValueError(f"{twice[0]!r} is there more than once; expected different tokens")

    def token(self, id: int) -> str:
        """Return the piece of an id."""
        return self.vocabulary[id]


def stated_settings(folder: Path) -> dict[str, Any]:
    """Return what the files beside a vocabulary say of a tokenizer."""
    settings = read_json_if_there(folder / "tokenizer_config.json")
    if "added_tokens_decoder" not in settings:  # with it, transformers does not read that file
        settings |= read_json_if_there(folder / "special_tokens_map.json")
    return settings


def word_of(token: Any) -> str | None:
    """Return a special token, which may be stored as a word or with its settings."""
    found = token.get("content") if isinstance(token, dict) else token
    return found if isinstance(found, str) else None


CLEANED_UP = " .", " ?", " !", " ,", " ' ", " n't", " 'm", " 's", " 've", " 're"
"""Marks beside which some tokenizers leave spaces; they are cleaned up one after the other."""


def cleaned_up(text: str) -> str:
    """Return a decoded text without the spaces that some tokenizers leave beside marks."""
    for mark in CLEANED_UP:
        text = text.replace(mark, mark.strip())
    return text


def settled_clean_up(text: str) -> str:
    """Return a beginning of ``cleaned_up(text + more)`` that is the same for any `more`."""
    for mark in CLEANED_UP:
        text = text.replace(mark, mark.strip())
        for n in reversed(range(1, len(mark))):
            if text.endswith(mark[:n]):  # with more text it may be the mark
                text = text[:-n]
                break
    return text


def padded(rows: Sequence[Sequence[int]], padding_id: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of ids as one array, filled up with `padding_id`, and its mask."""
    lengths = np.array([len(row) for row in rows], dtype="int64")
    mask = np.arange(lengths.max(initial=1)) < lengths[:, None]
    ids = np.full(mask.shape, padding_id, dtype="int64")
    ids[mask] = np.fromiter((id for row in rows for id in row), "int64", int(lengths.sum()))
    return ids, mask


def checked_texts(texts: Any, name: str = "texts") -> list[str]:
    """Return texts as a list, after checking that each is a string."""
    found = listed(name, texts, "a string for each text")
    for i, text in enumerate(found):
        if not isinstance(text, str):
            what = "missing" if str(text) in ("None", "nan", "NaT", "<NA>") else a_type(text)
            words = ": ".join(dict.fromkeys((what, described(text))))  # not an array twice
            raise TypeError(f"{name}[{i}] is {words}; expected a string")
        if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
            raise ValueError(
                f"{name}[{i}] has half of a character, as of a wrong encoding: {text[:40]!a}; "
                "expected whole ones. text.encode('utf-8', 'replace').decode('utf-8') puts a '?'"
            )
    return found
