"""MarianTokenizer: tokens of Marian's models, by the library SentencePiece."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

from npformer.core import checks
from npformer.data.formats import check_is_no_pointer
from npformer.data.json_file import read_json
from npformer.data.libraries import library
from npformer.data.tokenizers.library_tokenizer import check_ids
from npformer.data.tokenizers.tokenizer import Tokenizer, clean_up_spaces, read_settings, token_text

FILES = ("source.spm", "target.spm", "vocab.json")
LANGUAGE = re.compile(">>.*?<<", re.DOTALL)
"""The target language, with which a text may begin."""
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
    """SentencePiece (Kudo and Richardson, 2018), with two models, one for each side.

    Needs the extra ``translate``: the library ``sentencepiece``, which wrote the files.

    Parameters
    ----------
    source, target : bytes
        The content of ``source.spm`` and ``target.spm``.
    vocabulary : mapping of str to int
        The id of each token of both sides, and of ``</s>``, ``<unk>`` and ``<pad>``.
    clean_up : bool
        Whether to remove spaces before punctuation in decoded texts.
    """

    def __init__(
        self,
        source: bytes,
        target: bytes,
        vocabulary: Mapping[str, int],
        *,
        clean_up: bool = False,
    ) -> None:
        sentencepiece = library("sentencepiece", "translate", "Marian's tokenizer")
        self._source = source
        self._target = target
        self.clean_up = clean_up
        try:
            if not (source and target):
                raise RuntimeError("it is empty")
            self._source_processor = sentencepiece.SentencePieceProcessor(model_proto=source)
            self._target_processor = sentencepiece.SentencePieceProcessor(model_proto=target)
        except RuntimeError as error:
            raise ValueError(f"source.spm or target.spm is damaged: {error}") from error
        self.vocabulary = dict(vocabulary)
        for token, id in self.vocabulary.items():
            checks.whole(f"the id of {token!r} in {FILES[2]}", id, at_least=0)
        check_ids(self.vocabulary)
        self._token_of_id = {id: token for token, id in self.vocabulary.items()}
        for name in SPECIAL.values():
            if name not in self.vocabulary:
                raise ValueError(
                    f"the vocabulary has no {name!r}; expected the vocabulary of Marian"
                )
        self.vocab_size = 1 + max(self._token_of_id)
        self.unknown_id: int = self.vocabulary["<unk>"]
        self.end_id: int = self.vocabulary["</s>"]
        self.padding_id = self.begin_id = self.vocabulary["<pad>"]

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Self:
        """Return the tokenizer of a folder with source.spm, target.spm and vocab.json."""
        path = checks.path("folder", folder)
        for name in FILES:
            if not (path / name).is_file():
                raise FileNotFoundError(f"{path} has no {name}; expected {', '.join(FILES)}")
        for name in FILES:
            check_is_no_pointer(path / name)
        source = (path / "source.spm").read_bytes()
        target = (path / "target.spm").read_bytes()
        vocabulary = read_json(path / "vocab.json")
        settings = read_settings(path)
        differences = _differences(settings, vocabulary)
        if differences:
            raise ValueError(
                f"{path} changes {differences[0]}; expected the value of Marian's models"
            )
        clean_up = settings.get("clean_up_tokenization_spaces") is True
        return cls(source, target, vocabulary, clean_up=clean_up)

    def ids(self, text: str, max_len: int | None = None) -> list[int]:
        """Return the ids of a source text, and the id of its end."""
        ids: list[int] = []
        for passage in re.split(f"({'|'.join(SPECIAL.values())})", text):
            is_special = passage in SPECIAL.values()
            tokens = [passage] if is_special else self._source_tokens(passage)
            ids += [self.vocabulary.get(token, self.unknown_id) for token in tokens]
        if max_len is not None:
            ids = ids[: max_len - 1]
        return [*ids, self.end_id]

    def _source_tokens(self, text: str) -> list[str]:
        """Return the tokens of a source text without special tokens; a language is one token."""
        language = LANGUAGE.match(text)
        if language is None:
            return list(self._source_processor.encode(text, out_type=str))
        rest = text[language.end() :]
        return [language.group(), *self._source_processor.encode(rest, out_type=str)]

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
        """Return the text of ids of a target: see `Tokenizer.decode`."""
        checks.flag("skip_special_tokens", skip_special_tokens)
        special = self.padding_id, self.end_id, self.unknown_id
        text = ""
        tokens: list[str] = []  # since the last special token
        for id in self.ids_with_token(ids):
            if id not in special:
                tokens.append(self._token_of_id[id])
            elif not skip_special_tokens:
                text += f"{self._target_processor.decode(tokens)}{self._token_of_id[id]} "
                tokens = []
        text = f"{text}{self._target_processor.decode(tokens)}"
        if not skip_special_tokens:
            text = text.strip()
        return clean_up_spaces(text) if self.clean_up else text

    def has_token(self, id: int) -> bool:
        """Return whether an id has a token."""
        return id in self._token_of_id

    def token(self, id: int) -> str:
        """Return the token of an id; without one, the number."""
        return self._token_of_id.get(id, str(id))

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of the files, ready for JSON."""
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
    """Return the settings and the added tokens of a folder that differ from Marian's models."""
    differences = [key for key in FOREIGN if settings.get(key)]
    for key, word in SPECIAL.items():
        if token_text(settings.get(key, word)) != word:
            differences.append(key)
    id_of_special = {word: str(vocabulary.get(word)) for word in SPECIAL.values()}
    for id, token in (settings.get("added_tokens_decoder") or {}).items():
        if id_of_special.get(str(token_text(token))) != id:
            differences.append(f"the token {id}")
    return differences
