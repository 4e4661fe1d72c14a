"""MarianTokenizer: the pieces of Marian's models, by the library SentencePiece."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from npformer.core import checks
from npformer.data.formats import check_is_no_pointer
from npformer.data.json_file import read_json
from npformer.data.libraries import library
from npformer.data.tokenizers.library_tokenizer import check_ids
from npformer.data.tokenizers.tokenizer import Tokenizer, clean_up_spaces, read_settings, token_text

FILES = ("source.spm", "target.spm", "vocab.json")
LANGUAGE = re.compile(">>.*?<<", re.DOTALL)
"""What a text may begin with: the language to translate it into."""
SPECIAL = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
FOREIGN = (
    "separate_vocabs",
    "sp_model_kwargs",
    "split_special_tokens",
    "bos_token",
    "additional_special_tokens",
    "extra_special_tokens",
)
"""Settings of tokenizer_config.json that npformer does not have."""


class MarianTokenizer(Tokenizer):
    """Pieces of words (Kudo and Richardson, 2018), with a model for each side and one vocabulary.

    Needs the extra ``translate``: the library ``sentencepiece``, which wrote the files.

    Parameters
    ----------
    source, target : bytes
        The content of ``source.spm`` and ``target.spm``.
    vocabulary : mapping of str to int
        The id of each piece, and of ``</s>``, ``<unk>`` and ``<pad>``.
    clean_up : bool
        Whether spaces before punctuation are taken out of decoded texts.
    """

    def __init__(
        self,
        source: bytes,
        target: bytes,
        vocabulary: Mapping[str, int],
        *,
        clean_up: bool = False,
    ) -> None:
        needed = library("sentencepiece", "translate", "Marian's tokenizer")
        processor = needed.SentencePieceProcessor
        self._source, self._target, self.clean_up = source, target, clean_up
        try:
            if not (source and target):
                raise RuntimeError("it is empty")
            self._of_source = processor(model_proto=source)
            self._of_target = processor(model_proto=target)
        except RuntimeError as error:
            raise ValueError(f"source.spm or target.spm is damaged: {error}") from error
        self.vocabulary = dict(vocabulary)
        for piece, id in self.vocabulary.items():
            checks.whole(f"the id of {piece!r} in {FILES[2]}", id, at_least=0)
        check_ids(self.vocabulary)
        self._pieces = {id: piece for piece, id in self.vocabulary.items()}
        for name in SPECIAL.values():
            if name not in self.vocabulary:
                raise ValueError(f"the vocabulary has no {name!r}; expected that of Marian")
        self.vocab_size = 1 + max(self._pieces)
        self.unknown_id = self.vocabulary["<unk>"]
        self.end_id = self.vocabulary["</s>"]
        self.padding_id = self.begin_id = self.vocabulary["<pad>"]

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Self:
        """Return the tokenizer of a folder with source.spm, target.spm and vocab.json."""
        path = checks.path("folder", folder)
        if missing := [name for name in FILES if not (path / name).is_file()]:
            raise FileNotFoundError(f"{path} has no {missing[0]}; expected {', '.join(FILES)}")
        for name in FILES:
            check_is_no_pointer(path / name)
        source, target = (Path(path / name).read_bytes() for name in FILES[:2])
        vocabulary = read_json(path / FILES[2])
        settings = read_settings(path)
        if differences := _differences(settings, vocabulary):
            raise ValueError(
                f"{path} has {differences[0]} of its own; expected that of Marian's models"
            )
        clean_up = settings.get("clean_up_tokenization_spaces") is True
        return cls(source, target, vocabulary, clean_up=clean_up)

    def ids(self, text: str, max_len: int | None = None) -> list[int]:
        """Return the ids of a source, then that of its end."""
        ids: list[int] = []
        unknown, end = self.vocabulary["<unk>"], self.vocabulary["</s>"]
        for part in re.split(f"({'|'.join(SPECIAL.values())})", text):
            pieces = [part] if part in SPECIAL.values() else self._source_pieces(part)
            ids += [self.vocabulary.get(piece, unknown) for piece in pieces]
        if max_len is not None:
            ids = ids[: max_len - 1]
        return [*ids, end]

    def _source_pieces(self, text: str) -> list[str]:
        """Return the pieces of a source without special tokens; a language is one piece."""
        language = LANGUAGE.match(text)
        if language is None:
            return list(self._of_source.encode(text, out_type=str))
        rest = text[language.end() :]
        return [language.group(), *self._of_source.encode(rest, out_type=str)]

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
        """Return the text of some ids of a target: see `Tokenizer.decode`."""
        checks.flag("skip_special_tokens", skip_special_tokens)
        special = self.padding_id, self.end_id, self.unknown_id
        text = ""
        pieces: list[str] = []  # since the last special token
        for id in self.ids_with_token(ids):
            if id not in special:
                pieces.append(self._pieces[id])
            elif not skip_special_tokens:
                text += f"{self._of_target.decode(pieces)}{self._pieces[id]} "
                pieces = []
        text = f"{text}{self._of_target.decode(pieces)}"
        if not skip_special_tokens:
            text = text.strip()
        return clean_up_spaces(text) if self.clean_up else text

    def has_token(self, id: int) -> bool:
        """Return whether an id has a piece."""
        return id in self._pieces

    def token(self, id: int) -> str:
        """Return the piece of an id."""
        return self._pieces.get(id, str(id))

    def to_dict(self) -> dict[str, Any]:
        """Return the files' contents, ready for JSON."""
        return {
            "kind": "marian",
            "models": [self._source.decode("latin-1"), self._target.decode("latin-1")],
            "vocabulary": self.vocabulary,
            "clean_up": self.clean_up,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the tokenizer that `to_dict` described."""
        source, target = (model.encode("latin-1") for model in values["models"])
        return cls(source, target, values["vocabulary"], clean_up=values["clean_up"])


def _differences(settings: Mapping[str, Any], vocabulary: Mapping[str, Any]) -> list[str]:
    """Return the settings and added tokens in which a folder differs from Marian's models."""
    differences = [key for key in FOREIGN if settings.get(key)]
    for key, usual in SPECIAL.items():
        if token_text(settings.get(key, usual)) != usual:
            differences.append(key)
    id_of_special = {word: str(vocabulary.get(word)) for word in SPECIAL.values()}
    for id, token in (settings.get("added_tokens_decoder") or {}).items():
        if id_of_special.get(str(token_text(token))) != id:
            differences.append(f"the token {id}")
    return differences
