"""LibraryTokenizer: WordPiece or BPE, by Hugging Face's library ``tokenizers``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from npformer.core import checks
from npformer.data.tokenizers.hugging_face import one_thread, tokenizers_library
from npformer.data.tokenizers.later_changes import (
    BYTE,
    CUT_CHARACTER,
    common_beginning,
    later_changes,
)
from npformer.data.tokenizers.tokenizer import (
    MASK,
    Tokenizer,
    check_texts,
    clean_up_spaces,
    clean_up_stable_beginning,
    pad_rows,
)
from npformer.data.tokenizers.vocabularies import bpe, wordpiece

KINDS = ("wordpiece", "bpe")
PADDING = ("[PAD]", "<pad>", "<PAD>", "<|padding|>")
"""Usual names of the padding token, for files that do not name it."""

MASKS = (MASK, "<mask>")
"""Names of the token that hides another one."""

BEGIN, END = "[BEGIN]", "[END]"
"""Names of the tokens for a text's beginning and end, for models that write."""

MOST_IDS = 1 << 24
"""A larger id is refused: models have at most some hundred thousand tokens."""

SETTINGS = "truncation_side", "token_types", "clean_up"
"""Stored beside the settings of the library: at which end texts are cut, whether the two texts of a
pair have different token types, and whether a decoded text is cleaned up."""


class LibraryTokenizer(Tokenizer):
    """A tokenizer of Hugging Face's ``tokenizers``, the library of the extra ``text``.

    Parameters
    ----------
    library : tokenizers.Tokenizer
        Copied. Of its padding settings only the token is used, of its truncation settings the side.
    padding : str, optional
        The padding token. None: the one that `library` names, or one of the usual names.
    """

    def __init__(self, library: Any, *, padding: str | None = None) -> None:
        tk = tokenizers_library()
        checks.instance("library", library, tk.Tokenizer)
        stated_padding = (library.padding or {}).get("pad_token")
        self.token_types = True
        self.clean_up = False
        self.truncation_side = str((library.truncation or {}).get("direction", "right"))
        self.library = tk.Tokenizer.from_str(library.to_str())
        self.library.no_padding()
        self.library.no_truncation()
        self.padding = self._padding_token(padding, stated_padding)
        self.padding_id = int(self.library.token_to_id(self.padding))
        unknown = getattr(self.library.model, "unk_token", None)
        self.unknown_id = None if unknown is None else self.library.token_to_id(unknown)
        is_bpe = isinstance(self.library.model, tk.models.BPE)
        if unknown is not None and self.unknown_id is None and not is_bpe:
            raise ValueError(f"the vocabulary has no {unknown}, the token of unknown words")
        if getattr(self.library.model, "dropout", None):  # the same text gets other ids each time
            raise ValueError("the tokenizer has dropout (of merges); expected one without")
        self.begin_id = self.library.token_to_id(BEGIN)
        self.end_id = self.library.token_to_id(END)
        mask_ids = [self.library.token_to_id(word) for word in MASKS]
        self.mask_id = next((id for id in mask_ids if id is not None), None)
        ids = set(self.library.get_vocab(with_added_tokens=True).values())
        self.vocab_size = 1 + int(max(ids))
        self._gaps = set(range(self.vocab_size)) - ids
        added_tokens = self.library.get_added_tokens_decoder().items()
        self._special_ids = {id for id, token in added_tokens if token.special}
        self._later_changes = later_changes(self.library.decoder)

    def _padding_token(self, requested: str | None, stated: str | None) -> str:
        """Return the padding token: the requested one, the one in the file, or a usual one."""
        names = [name for name in (requested, stated, *PADDING) if name is not None]
        tokens = [name for name in names if self.library.token_to_id(name) is not None]
        if not tokens or (requested is not None and tokens[0] != requested):
            raise ValueError(
                f"the tokenizer has no token {names[0]!r} for padding; expected one. Name it: "
                "LibraryTokenizer(library, padding='...'), or add it to the vocabulary"
            )
        return tokens[0]

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        kind: str = "wordpiece",
        *,
        vocab_size: int = 8_000,
        min_count: int = 2,
        lower: bool = True,
        writes: bool = False,
        masks: bool = False,
    ) -> Self:
        """Return a tokenizer whose vocabulary comes from `texts`.

        Parameters
        ----------
        texts : iterable of str
        kind : {"wordpiece", "bpe"}
            "wordpiece": pieces of words, as in BERT (Schuster and Nakajima, 2012). "bpe": pieces of
            bytes, as in RoBERTa (Sennrich et al., 2016), which can encode any text.
        vocab_size : int
            Maximum number of ids.
        min_count : int
            How often a word, or a pair of pieces, must occur to get an id.
        lower : bool
            Whether texts are converted to lower case.
        writes : bool
            Whether it is for a model that writes text: spaces are preserved, and there are tokens
            for the beginning and the end of a text. Only for "bpe".
        masks : bool
            Whether ``[MASK]`` in a text is a token, which hides another one.
        """
        checks.choice("kind", kind, KINDS)
        checks.positive("vocab_size", vocab_size)
        checks.positive("min_count", min_count)
        checks.flag("lower", lower)
        checks.flag("writes", writes)
        checks.flag("masks", masks)
        checked_texts = check_texts(texts)
        sizes = {"vocab_size": vocab_size, "min_frequency": min_count}
        special_tokens: list[Any] = ["[PAD]"]
        if kind == "wordpiece":
            special_tokens.append("[UNK]")
        if masks:  # includes the space before it, as tokens of words do
            mask_token = tokenizers_library().AddedToken(MASK, lstrip=True, special=True)
            special_tokens.append(mask_token)
        if kind == "wordpiece":
            return cls(wordpiece(checked_texts, special_tokens, sizes, lower=lower))
        if writes:
            special_tokens += [BEGIN, END]
        return cls(bpe(checked_texts, special_tokens, sizes, lower=lower, keeps_spaces=writes))

    def ids(self, text: str, max_len: int | None = None) -> list[int]:
        """Return the ids of one text, with the special tokens that the tokenizer adds."""
        with self._cut_at(max_len):
            return list(self.library.encode(text).ids)

    def encode_pairs(
        self, pairs: Iterable[tuple[str, str]], max_len: int | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return ids, mask and token types of pairs of texts, such as questions and answers.

        If a pair has more than `max_len` tokens, the longer text is cut first.
        """
        with self._cut_at(max_len, pairs=True), one_thread():
            encodings = self.library.encode_batch([*pairs])
        ids, mask = pad_rows([encoding.ids for encoding in encodings], self.padding_id)
        types, _ = pad_rows([encoding.type_ids for encoding in encodings], 0)
        return ids, mask, types if self.token_types else np.zeros_like(types)

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
        """Return the text of ids: see `Tokenizer.decode`."""
        checks.flag("skip_special_tokens", skip_special_tokens)
        text = self._text(self.ids_with_token(ids), skip_special_tokens)
        return clean_up_spaces(text) if self._cleans_up() else text

    def stable_beginning(self, ids: list[int]) -> str:
        """Return a beginning of ``decode(ids)`` that no later id can change."""
        changes = self._later_changes
        if changes.anything:
            return ""
        if changes.bytes:
            ids = self._drop_last_bytes(ids)
        text = self._text(ids)
        if changes.cut_character:
            text = text.removesuffix(CUT_CHARACTER)
        if changes.last_token:
            visible = [id for id in ids if id not in self._special_ids]
            text_if_continued = self._text([*visible, *visible[-1:]])
            text = common_beginning(text, text_if_continued)
        return clean_up_stable_beginning(text) if self._cleans_up() else text

    def _text(self, ids: list[int], skip_special_tokens: bool = True) -> str:
        with explain_library_errors("ids"):
            return str(self.library.decode(ids, skip_special_tokens=skip_special_tokens))

    def _drop_last_bytes(self, ids: list[int]) -> list[int]:
        """Return ids up to the last one that is neither a byte nor a special token."""
        for n in range(len(ids), 0, -1):
            if ids[n - 1] not in self._special_ids and not BYTE.fullmatch(self.token(ids[n - 1])):
                return ids[:n]
        return []

    def _cleans_up(self) -> bool:
        is_bpe = isinstance(self.library.model, tokenizers_library().models.BPE)
        return self.clean_up and not is_bpe

    def has_token(self, id: int) -> bool:
        """Return whether an id has a token; a vocabulary may have gaps."""
        return 0 <= id < self.vocab_size and id not in self._gaps

    def token(self, id: int) -> str:
        """Return the token of an id, as the library shows it; for a gap, the number."""
        return str(self.library.id_to_token(id)) if self.has_token(id) else str(id)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of tokenizer.json."""
        settings = {name: getattr(self, name) for name in ("padding", *SETTINGS)}
        return {"kind": "library", "json": self.library.to_str(), **settings}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return the tokenizer that `to_dict` described."""
        check_ids(json.loads(values["json"]))
        library = tokenizers_library().Tokenizer.from_str(values["json"])
        tokenizer = cls(library, padding=values["padding"])
        checks.choice("truncation_side", values["truncation_side"], ("left", "right"))
        for name in SETTINGS:
            setattr(tokenizer, name, values[name])
        return tokenizer

    @contextmanager
    def _cut_at(self, max_len: int | None, *, pairs: bool = False) -> Iterator[None]:
        """Truncate texts to a length in the body; their special tokens are not cut off."""
        if max_len is not None:
            least = self.library.num_special_tokens_to_add(pairs)
            checks.whole("max_len", max_len, at_least=max(1, least))
            self.library.enable_truncation(max_len, direction=self.truncation_side)
        try:
            with explain_library_errors("a text"):
                yield
        finally:
            self.library.no_truncation()


@contextmanager
def explain_library_errors(input_name: str) -> Iterator[None]:
    """Raise ValueError where the library raises Exception, or a panic (a BaseException)."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        raise ValueError(
            f"the tokenizer fails at {input_name}: {error}; expected one that takes any"
        ) from error


def check_ids(content: dict[str, Any]) -> None:
    """Refuse ids of two tokens, and ids too large: memory is allocated up to the largest id.

    `content` is the content of a tokenizer.json or vocab.json.
    """
    words: dict[int, Any] = {}
    for word, id in _tokens_and_ids(content):
        if type(id) is not int:
            continue
        if not 0 <= id < MOST_IDS:
            raise ValueError(f"a token has the id {id}; expected ids below {MOST_IDS}")
        if words.setdefault(id, word) != word:
            raise ValueError(f"{words[id]!r} and {word!r} have the same id {id}")


def _tokens_and_ids(content: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Return the tokens and ids of a tokenizer.json or vocab.json; both may be of any type."""
    model = content.get("model")
    if not isinstance(model, dict):  # a vocabulary, which may have the word "model"
        return [*content.items()]
    vocabulary = model.get("vocab")
    tokens = [*vocabulary.items()] if isinstance(vocabulary, dict) else []
    for token in content.get("added_tokens", []):
        if isinstance(token, dict):
            tokens.append((token.get("content"), token.get("id")))
    return tokens
