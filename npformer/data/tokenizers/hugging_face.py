"""Hugging Face's library `tokenizers`: its module, and its threads."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from npformer.data.libraries import library


def tokenizers_library() -> Any:
    """Return the module `tokenizers`."""
    who = "a tokenizer of WordPiece, BPE or tokenizer.json"
    return library("tokenizers", "text", who, '. Without it there is tokenizer="word"')


@contextmanager
def one_thread() -> Iterator[None]:
    """Let the library use one thread: if it has used more, it warns about copies of a process."""
    name = "TOKENIZERS_PARALLELISM"
    before = os.environ.get(name)
    os.environ[name] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
