"""Texts that a language model with a tokenizer writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from npformer.data.tokenizers import Tokenizer
from npformer.training.generation.writing import list_tokens

Ids = Sequence[int] | np.ndarray
"""The ids of a prompt."""


def write_texts(
    model: Any,
    tokenizer: Tokenizer,
    prompts: Sequence[Ids],
    n: int,
    *,
    stop: Any = None,
    never: Any = None,
    **options: Any,
) -> list[str]:
    """Return what a model writes after each of some prompts, without the tokens that end it.

    The arguments are those of `LanguageModel.generate`.
    """
    if "probabilities" in options:
        raise TypeError(
            "a text has no probabilities, its tokens have; expected none of this argument here. "
            "model.generate(ids, n, probabilities=True) returns tokens with their probabilities"
        )
    ends = list_tokens("stop", stop, model.vocab_size)
    never = tokens_to_avoid(model, tokenizer, ends, never)
    rows = model.generate(prompts, n, stop=ends, never=never, **options)
    return [tokenizer.decode([id for id in row.tolist() if id not in ends]) for row in rows]


def write_pieces(
    model: Any,
    tokenizer: Tokenizer,
    prompt: Ids,
    n: int,
    *,
    stop: Any = None,
    never: Any = None,
    **options: Any,
) -> Iterator[str]:
    """Yield the text of `write_texts` for one prompt, as it comes."""
    ends = list_tokens("stop", stop, model.vocab_size)
    never = tokens_to_avoid(model, tokenizer, ends, never)
    tokens = model.stream(prompt, n, stop=ends, never=never, **options)
    return tokenizer.pieces(id for id in tokens if id not in ends)


def tokens_to_avoid(model: Any, tokenizer: Tokenizer, ends: Sequence[int], never: Any) -> list[int]:
    """Return the ids that are not written: some that are given, and all that no token has.

    A vocabulary is often padded to a round number. An end needs no token.
    """
    without_token = set(tokenizer.ids_without_token(model.vocab_size)) - set(ends)
    return [*list_tokens("never", never, model.vocab_size), *sorted(without_token)]
