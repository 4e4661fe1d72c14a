"""Hugging Face's library `tokenizers`: its module, and its threads."""

import os
from typing import Any

from npformer.core.support.shared_change import SharedChange
from npformer.data.libraries import library

PARALLELISM = "TOKENIZERS_PARALLELISM"
"""The environment variable that the library reads."""


def tokenizers_library() -> Any:
    """Return the module `tokenizers`."""
    who = "a tokenizer of WordPiece, BPE or tokenizer.json"
    return library("tokenizers", "text", who, '. Without it there is tokenizer="word"')


def _ask_for_one_thread() -> str | None:
    """Set the variable, and return its previous value."""
    previous = os.environ.get(PARALLELISM)
    os.environ[PARALLELISM] = "false"
    return previous


def _restore_threads(previous: str | None) -> None:
    """Give the variable its previous value; None removes it."""
    if previous is None:
        os.environ.pop(PARALLELISM, None)
    else:
        os.environ[PARALLELISM] = previous


one_thread = SharedChange(_ask_for_one_thread, _restore_threads)
"""``with one_thread():`` limits the library to one thread in the body: once it has used more, it
warns when the process forks."""
