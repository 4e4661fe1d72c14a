"""MarianTokenizer: the pieces of Marian's models, by the library SentencePiece."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from npformer.core import checks
from npformer.data.json_file import read_json, read_json_if_there
from npformer.data.libraries import library
from npformer.data.tokenizers.tokenizer import Tokenizer

FILES = ("source.spm", "target.spm", "vocab.json")
LANGUAGE = re.compile(">>.+?<<")
"""What a text may begin with: the language to translate it into."""


class MarianTokenizer(Tokenizer):
    """Pieces of words (Kudo and Richardson, 2018), with a model for each side and one vocabulary.

    Needs the extra ``translate``: the library ``sentencepiece``, which wrote the files.

    Parameters
    ----------
    source, target : bytes
        The content of ``source.spm`` and ``target.spm``.
    vocabulary : mapping of str to int
        The id of each piece, and of ``</s>``, ``<unk>`` and ``<pad>``.
    """

    def __init__(self, source: bytes, target: bytes, vocabulary: Mapping[str, int]) -> None:
        needed = library("sentencepiece", "translate", "Marian's tokenizer")
        processor = needed.SentencePieceProcessor
        self._source, self._target = source, target
        try:
            self._of_source = processor(model_proto=source)
            self._of_target = processor(model_proto=target)
        except RuntimeError as error:
            raise ValueError(f"source.spm or target.spm is damaged: {error}") from error
        self.vocabulary = dict(vocabulary)
        for piece, id in self.vocabulary.items():
            checks.whole(f"the id of {piece!r} in {FILES[2]}", id, at_least=0)
        self._pieces = {id: piece for piece, id in self.vocabulary.items()}
        for name in ("</s>", "<unk>", "<pad>"):
            if name not in self.vocabulary:
                raise ValueError(f"the vocabulary has no {name!r}; expected that of Marian")
        self.unknown_id = self.vocabulary["<unk>"]
        self.end_id = self.vocabulary["</s>"]
        self.padding_id = self.begin_id = self.vocabulary["<pad>"]

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Self:
        """Return the tokenizer of a folder with source.spm, target.spm and vocab.json."""
        path = checks.path("folder", folder)
        if missing := [name for name in FILES if not (path / name).is_file()]:
            raise FileNotFoundError(f"{path} has no {missing[0]}; expected {', '.join(FILES)}")
        source, target = (Path(path / name).read_bytes() for name in FILES[:2])
        if read_json_if_there(path / "tokenizer_config.json").get("separate_vocabs"):
            raise ValueError(f"{path} has a vocabulary for each side; expected one for both")
        return cls(source, target, read_json(path / FILES[2]))

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        return 1 + max(self._pieces)

    def ids(self, text: str, max_len: int | None = None) -> list[int]:
        """Return the ids of a source, then that of its end."""
        language = LANGUAGE.match(text)
        pieces = [] if language is None else [language.group()]
        rest = text if language is None else text[language.end() :]
        pieces += self._of_source.encode(rest, out_type=str)
        unknown = self.vocabulary["<unk>"]
        ids = [self.vocabulary.get(piece, unknown) for piece in pieces]
        return [*ids[: None if max_len is None else max_len - 1], self.vocabulary["</s>"]]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of some ids of a target, without special tokens."""
        special = self.padding_id, self.end_id, self.unknown_id, -1
        pieces = [self._pieces[id] for id in self.checked(ids, -1) if id not in special]
        return str(self._of_target.decode(pieces))

    def token(self, id: int) -> str:
        """Return the piece of an id."""
        return self._pieces.get(id, str(id))

    def to_dict(self) -> dict[str, Any]:
        """Return the files' contents, ready for JSON."""
        both = (each.decode("latin-1") for each in (self._source, self._target))
        return {"kind": "marian", "models": list(both), "vocabulary": self.vocabulary}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the tokenizer that `to_dict` described."""
        source, target = (each.encode("latin-1") for each in values["models"])
        return cls(source, target, values["vocabulary"])
