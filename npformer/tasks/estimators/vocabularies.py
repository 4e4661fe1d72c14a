"""Vocabularies of a training: made once, and read where it goes on."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from npformer.data.tokenizers import Tokenizer
from npformer.interop.tokenizers import tokenizer_of
from npformer.training.storage.drawn import Drawn, digest_of


def recall_tokenizer(
    drawn: Drawn,
    name: str,
    texts: Sequence[str],
    settings: Mapping[str, Any],
    train: Callable[[], Tokenizer],
) -> Tokenizer:
    """Return the tokenizer that a training has, or train one; the settings are for JSON."""
    if drawn.folder is None:
        return train()
    basis = {"texts": digest_of(texts), **settings}
    values = drawn.recall(name, basis, lambda: train().to_dict())
    try:
        return tokenizer_of(values)
    except ImportError:
        raise
    except Exception as error:  # a file may say anything
        raise drawn.error_of_file() from error
