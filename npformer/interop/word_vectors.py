"""Read pretrained word vectors (GloVe, word2vec, fastText), and set them in an embedding."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from npformer.core import Layer, array_module, asarray, checks, describe
from npformer.data.formats import check_is_no_pointer
from npformer.data.text_file import check_file
from npformer.data.tokenizers.tokenizer import check_texts
from npformer.layers import Embedding

GZIP = b"\x1f\x8b"


def read_word_vectors(path: str | os.PathLike[str], words: Iterable[str]) -> dict[str, np.ndarray]:
    """Return the vectors of the words that a file has, float32, in the order of `words`.

    A line is a word and its numbers, separated by spaces or a tab, in UTF-8: "the 0.418 0.24968".
    That is the text format of GloVe, and of word2vec and fastText (.vec), which begin with a line
    "number_of_words size". The file may be compressed by gzip. Vectors of other words are skipped,
    so a file of gigabytes needs little memory. Words must match exactly, and most files are in
    lower case. If a word occurs twice, its first vector is used.

    Parameters
    ----------
    path : str or path
    words : iterable of str
        The words to look up, such as a vocabulary.

    Raises
    ------
    ValueError
        The file has another format (such as word2vec's binary one), is cut short, or has a vector
        that is not finite or not of the first one's size; the message names the line.
    """
    path = checks.path("path", path)
    checked_words = check_texts([*words] if isinstance(words, Mapping | Set) else words, "words")
    word_of_bytes = {word.encode(): word for word in checked_words}
    vectors: dict[str, np.ndarray] = {}
    for number, fields, size in _rows(path):
        word = word_of_bytes.get(b" ".join(fields[:-size]))  # a word may contain spaces
        if word is not None and word not in vectors:
            vectors[word] = _vector(path, number, fields[-size:])
        elif len(fields) <= size:
            raise _line_error(
                path, number, f"{len(fields) - 1} numbers, and {size} in the first line"
            )
    return {word: vectors[word] for word in word_of_bytes.values() if word in vectors}


def set_word_vectors(
    model: Layer, words: Sequence[str] | Mapping[str, int], vectors: Mapping[str, Any]
) -> int:
    """Set rows of a model's token embedding to word vectors; return the number of rows set.

    Rows of other words do not change, and no row changes if this raises an error. To prevent
    training from changing the vectors: ``model.freeze("embed.tokens*")``.

    Parameters
    ----------
    model : SequenceClassifier or TextEncoder
        Its inputs are token ids, and d_model is the size of the vectors. With
        ``scale_embeddings``, the embedding is the vector times sqrt(d_model).
    words : sequence of str, or mapping of str to int
        The word of each token id, or the token id of each word.
    vectors : mapping of str to array, shape (d_model,)
        As returned by `read_word_vectors`. Words that are not in `words` are ignored.
    """
    tokens = getattr(getattr(model, "embed", None), "tokens", None)
    if not isinstance(tokens, Embedding):
        raise TypeError(
            f"model is {describe(model)} without an embedding of tokens; expected a classifier or "
            "encoder of token ids: SequenceClassifier(..., vocab_size=...)"
        )
    vocab_size, d_model = tokens.weight.shape
    checked_words = check_texts([*words] if isinstance(words, Mapping) else words, "words")
    ids = words.values() if isinstance(words, Mapping) else range(len(checked_words))
    checks.instance("vectors", vectors, Mapping, "read_word_vectors returns one")
    rows: dict[int, np.ndarray] = {}
    for word, token in zip(checked_words, ids, strict=True):
        name = f"the id of {word!r}, for a model with vocab_size {vocab_size},"
        checks.whole(name, token, at_least=0, at_most=vocab_size - 1)
        if word not in vectors:
            continue
        rows[token] = _check_vector(word, vectors[word], d_model)
    if rows:
        table = tokens.weight.value
        xp = array_module(table)
        stacked = np.stack(list(rows.values())).astype(tokens.weight.dtype)
        table[xp.asarray(list(rows))] = asarray(stacked, model.backend)
    return len(rows)


def _check_vector(word: str, numbers: Any, d_model: int) -> np.ndarray:
    """Return a word's vector as an array, after checking its size and its numbers."""
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
    """Yield the number and the content of each line that is not empty."""
    check_file(path)
    check_is_no_pointer(path)
    number = 0
    with path.open("rb") as file:
        compressed = file.read(2) == GZIP
        file.seek(0)
        lines: Any = gzip.GzipFile(fileobj=file) if compressed else file
        try:
            for number, line in enumerate(lines, 1):
                if number <= 2 and b"\0" in line:
                    raise ValueError(
                        f"{path} is not a text file; expected lines of words and numbers. A .bin "
                        "of word2vec or fastText has to be converted to text first"
                    )
                content = line.removeprefix(b"\xef\xbb\xbf").rstrip(b" \t\r\n")
                if content:
                    yield number, content
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(
                f"{path} is cut short or damaged after line {number} ({error}); expected a "
                "complete gzip file. Copy or download it again"
            ) from error


def _rows(path: Path) -> Iterator[tuple[int, list[bytes], int]]:
    """Yield a line's number, its fields, and the size of the vectors, for each line with a word.

    Raises ValueError if the first of these lines has no vector, or if the heading of the file has
    another number of lines.
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
            _vector(path, number, fields[-size:] if size else [b""])  # checks that it is a vector
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
    """Return whether a line is a heading: the number of words, and the size of their vectors."""
    return len(fields) == 2 and all(map(bytes.isdigit, fields))


def _vector(path: Path, number: int, fields: list[bytes]) -> np.ndarray:
    """Return the numbers of a line."""
    try:
        with np.errstate(over="ignore"):
            vector = np.array([float(field) for field in fields]).astype("float32")
    except ValueError:
        raise _line_error(path, number, "something other than numbers after a word") from None
    if not np.isfinite(vector).all():
        raise _line_error(path, number, "a number that is NaN or infinite")
    return vector


def _line_error(path: Path, number: int, problem: str) -> ValueError:
    """Return the error for a line that is not a word and its vector."""
    return ValueError(
        f"line {number} of {path}: {problem}. Expected a word and its numbers, as in 'the 0.41 "
        "0.24', in UTF-8. Is it cut short, or in another format?"
    )
