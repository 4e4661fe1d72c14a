"""Pretrained word vectors: text files of GloVe, word2vec and fastText, and an embedding's rows."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import Layer, array_module, asarray, checks, described
from npformer.data.formats import check_is_no_pointer
from npformer.data.text_file import check_file
from npformer.data.tokenizers.tokenizer import check_texts
from npformer.layers import Embedding

GZIP = b"\x1f\x8b"


def read_word_vectors(path: str | os.PathLike[str], words: Iterable[str]) -> dict[str, np.ndarray]:
    """Return the vectors of those words that a file has, float32, in the order of the words.

    A line is a word and its numbers, separated by spaces or a tab, in UTF-8: "the 0.418 0.24968".
    That is the text format of GloVe, and of word2vec and fastText (.vec), which begin with a line
    "number_of_words size". The file may be compressed by gzip. Other words are not kept, so a file
    of gigabytes needs little memory. Words are compared letter by letter: most files are in lower
    case. If a word occurs twice, its first vector counts.

    Parameters
    ----------
    path : str or path
    words : iterable of str
        The words that are wanted, such as a vocabulary.

    Raises
    ------
    ValueError
        The file has another format (such as word2vec's binary one), is cut short, or has a vector
        that is not finite or not of the first one's size; the message names the line.
    """
    path = checks.path("path", path)
    listed = check_texts([*words] if isinstance(words, Mapping | Set) else words, "words")
    wanted = {word.encode(): word for word in listed}
    vectors: dict[str, np.ndarray] = {}
    for number, fields, size in _rows(path):
        word = wanted.get(b" ".join(fields[:-size]))  # a word may hold spaces
        if word is not None and word not in vectors:
            vectors[word] = _vector(path, number, fields[-size:])
        elif len(fields) <= size:
            raise _wrong(path, number, f"{len(fields) - 1} numbers, and {size} in the first line")
    return {word: vectors[word] for word in wanted.values() if word in vectors}


def set_word_vectors(
    model: Layer, words: Sequence[str] | Mapping[str, int], vectors: Mapping[str, Any]
) -> int:
    """Fill rows of a model's embedding of tokens with word vectors; return how many were filled.

    Rows of other words stay as they are, and so do all rows if this raises an error. To keep
    training from changing the vectors: ``model.freeze("embed.tokens*")``.

    Parameters
    ----------
    model : SequenceClassifier or TextEncoder
        Of token ids; d_model is the size of the vectors. With ``scale_embeddings``, what enters the
        model is the vector times sqrt(d_model).
    words : sequence of str, or mapping of str to int
        The word of each token id, or the token id of each word.
    vectors : mapping of str to array, shape (d_model,)
        As `read_word_vectors` returns them. Words that are not in `words` are left out.
    """
    tokens = getattr(getattr(model, "embed", None), "tokens", None)
    if not isinstance(tokens, Embedding):
        raise TypeError(
            f"model is {described(model)} without an embedding of tokens; expected a classifier or "
            "encoder of token ids: SequenceClassifier(..., vocab_size=...)"
        )
    vocab_size, d_model = tokens.weight.shape
    listed = check_texts([*words] if isinstance(words, Mapping) else words, "words")
    ids = words.values() if isinstance(words, Mapping) else range(len(listed))
    checks.instance("vectors", vectors, Mapping, "read_word_vectors returns one")
    rows: dict[int, np.ndarray] = {}
    for word, token in zip(listed, ids, strict=True):
        name = f"the id of {word!r}, for a model with vocab_size {vocab_size},"
        checks.whole(name, token, at_least=0, at_most=vocab_size - 1)
        if word not in vectors:
            continue
        rows[token] = _checked_vector(word, vectors[word], d_model)
    if rows:
        table = tokens.weight.value
        xp = array_module(table)
        stacked = np.stack(list(rows.values())).astype(tokens.weight.dtype)
        table[xp.asarray(list(rows))] = asarray(stacked, model.backend)
    return len(rows)


def _checked_vector(word: str, numbers: Any, d_model: int) -> np.ndarray:
    """Return a word's vector as an array, after checking that it fits into the embedding."""
    vector = np.asarray(numbers)
    if vector.shape != (d_model,):
        raise ValueError(
            f"the vector of {word!r} has shape {vector.shape} and the model d_model {d_model}; "
            f"expected ({d_model},). Build the model with d_model={vector.size}"
        )
    if vector.dtype.kind not in "fiu" or not np.isfinite(vector).all():
        raise ValueError(f"the vector of {word!r} is {vector}; expected finite numbers")
    return vector


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of each line that is not empty."""
    check_file(path)
    check_is_no_pointer(path)
    number = 0
    with path.open("rb") as file:
        compressed = file.read(2) == GZIP
        file.seek(0)
        opened: Any = gzip.GzipFile(fileobj=file) if compressed else file
        try:
            for number, line in enumerate(opened, 1):
                if number <= 2 and b"\0" in line:
                    raise ValueError(
                        f"{path} is not a text file; expected lines of words and numbers. A .bin "
                        "of word2vec or fastText has to be converted to text first"
                    )
                if content := line.removeprefix(b"\xef\xbb\xbf").rstrip(b" \t\r\n"):
                    yield number, content
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(
                f"{path} is cut short or damaged after line {number} ({error}); expected a whole "
                "gzip file. Copy or download it again"
            ) from error


def _rows(path: Path) -> Iterator[tuple[int, list[bytes], int]]:
    """Yield a line's number, its fields, and the size of the vectors, for each line with a word.

    Raises ValueError if the first of them has no vector, or if the file says at its beginning that
    it has more lines or fewer.
    """
    size = n_lines = 0
    n_stated: int | None = None
    for number, line in _lines(path):
        fields = _fields(line)
        if number == 1 and _is_heading(fields):
            n_stated = int(fields[0])
            size = int(fields[1])
            continue
        n_lines += 1
        if n_lines == 1:
            size = size or len(fields) - 1
            _vector(path, number, fields[-size:] if size else [b""])  # raises if it is no vector
        yield number, fields, size
    if n_lines == 0:
        raise ValueError(f"{path} holds no word vectors; expected lines such as 'the 0.41 0.24'")
    if n_stated is not None and n_lines != n_stated:
        raise ValueError(
            f"{path} says that it has {n_stated:,} words but has {n_lines:,}; expected all. It was "
            "cut short: copy or download it again"
        )


def _fields(line: bytes) -> list[bytes]:
    """Return the word and the numbers of a line; a word with spaces is several fields."""
    only_tabs = b"\t" in line and b" " not in line.strip()
    return line.split(b"\t" if only_tabs else b" ")


def _is_heading(fields: list[bytes]) -> bool:
    """Return whether a line says how many words there are, and the size of their vectors."""
    return len(fields) == 2 and all(map(bytes.isdigit, fields))


def _vector(path: Path, number: int, fields: list[bytes]) -> np.ndarray:
    """Return the numbers of a line."""
    try:
        with np.errstate(over="ignore"):
            vector = np.array([float(field) for field in fields]).astype("float32")
    except ValueError:
        raise _wrong(path, number, "something other than numbers after a word") from None
    if not np.isfinite(vector).all():
        raise _wrong(path, number, "a number that is NaN or infinite")
    return vector


def _wrong(path: Path, number: int, what: str) -> ValueError:
    return ValueError(
        f"line {number} of {path}: {what}. Expected a word and its numbers, as in 'the 0.41 "
        "0.24', in UTF-8. Is it cut short, or in another format?"
    )
