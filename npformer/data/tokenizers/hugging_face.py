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
    before = os.environ.get(PARALLELISM)
    os.environ[PARALLELISM] = "false"
    return before


def _restore_threads(before: str | None) -> None:
    if before is None:
        os.environ.pop(PARALLELISM, None)
    else:
        os.environ[PARALLELISM] = before


one_thread = SharedChange(_ask_for_one_thread, _restore_threads)
"""``with one_thread():`` lets the library use one thread in the body: if it has used more, it warns
about copies of a process."""
