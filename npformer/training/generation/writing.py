"""What a language model writes after prompts, token by token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from re import Pattern
from typing import Any

import numpy as np

from npformer.core import Context, asarray, checks, describe, to_numpy
from npformer.engine import EngineContext, fast
from npformer.functional.embedding import check_ids
from npformer.training.generation.choosing import Choice, generators_of

NOTHING = -1
"""The text after a stop token."""


class Window:
    """The tokens of each row that a model sees, and with a cache its state after them.

    A row that has grown beyond the model's max_len continues from its last max_len // 2 tokens, at
    positions from 0 on.
    """

    def __init__(
        self, model: Any, rows: Sequence[np.ndarray], cache: bool, n: int = 1 << 62
    ) -> None:
        self._model, self._cache = fast(model), cache
        self._backend = model.backend
        self._max_len, self._n = model.config.max_len, n
        self._context = EngineContext(keep=False)
        self._rows = [self._cut(row) for row in rows]
        self._longest = max(map(len, self._rows))
        self._added: list[np.ndarray] = []  # tokens after these rows, (batch,) each
        self._states: Any = None

    def logits(self) -> np.ndarray:
        """Return the logits of the token that follows each row, (batch, vocab_size)."""
        if self._states is None:
            return self._anew()
        return self._follow(self._added[-1][:, None], self._context)

    def add(self, tokens: np.ndarray) -> None:
        """Append a token to each row."""
        self._added.append(tokens)
        if not self._cache or self._longest + len(self._added) > self._max_len:
            added = np.stack(self._added, axis=1)
            self._rows = [
                self._cut(np.concatenate(old_and_new))
                for old_and_new in zip(self._rows, added, strict=True)
            ]
            self._longest = max(map(len, self._rows))
            self._added, self._states = [], None

    def _anew(self) -> np.ndarray:
        """Return the logits after whole rows."""
        lengths = np.array([len(row) for row in self._rows])
        ids = np.zeros((len(lengths), self._longest), dtype="int64")
        mask = np.arange(ids.shape[1]) < lengths[:, None]
        ids[mask] = np.concatenate(self._rows)
        self._states = self._model.start(len(ids), min(self._max_len, self._longest + self._n))
        padding_mask = None if mask.all() else asarray(mask, self._backend)
        logits = self._follow(ids, EngineContext(keep=False, mask=padding_mask))
        if not self._cache:
            self._states = None
        return logits

    def _follow(self, ids: np.ndarray, context: Context) -> np.ndarray:
        ids = asarray(ids, self._backend)
        logits, self._states = self._model.next_logits(ids, self._states, context)
        return to_numpy(logits)

    def _cut(self, row: np.ndarray) -> np.ndarray:
        return row if len(row) <= self._max_len else row[-max(self._max_len // 2, 1) :]


def write_tokens(
    model: Any,
    rows: Sequence[np.ndarray],
    n: int,
    choice: Choice,
    seed: int = 0,
    cache: bool = True,
    stop: Sequence[int] = (),
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield, up to n times, a token for each row, (batch,), and the logits it was chosen from.

    A row that has written a stop token continues with `NOTHING`; once all have, this ends.
    """
    generators = generators_of(seed, len(rows))
    window, going = Window(model, rows, cache, n), np.ones(len(rows), dtype=bool)
    for k in range(n):
        logits = window.logits()
        tokens = choice.draw(logits, generators)
        yield np.where(going, tokens, NOTHING), logits
        if stop:
            going &= ~np.isin(tokens, stop)
            if not going.any():
                return
        if k < n - 1:
            window.add(tokens)


def check_prompts(prompt: Any, vocab_size: int) -> tuple[list[np.ndarray], bool]:
    """Return the rows of a prompt, checked, and whether it was given as several rows."""
    rows, is_batch = _prompt_rows(prompt)
    if not rows:
        raise ValueError("prompt has no rows; expected at least one")
    for i, row in enumerate(rows):
        name = f"prompt[{i}]" if is_batch else "prompt"
        if row.ndim != 1 or len(row) == 0:
            raise ValueError(
                f"{name} has shape {row.shape}; expected at least one token id, (length,). To "
                "begin a text, pass a token that texts begin with, such as a line break"
            )
        check_ids(name, row, vocab_size, f"vocab_size is {vocab_size}")
    return rows, is_batch


def _prompt_rows(prompt: Any) -> tuple[list[np.ndarray], bool]:
    """Return the rows of a prompt, and whether it was given as several rows."""
    if isinstance(prompt, np.ndarray):
        if prompt.ndim == 1:
            return [prompt], False
        if prompt.ndim == 2:
            return [*prompt], True
    elif isinstance(prompt, list | tuple):
        if any(isinstance(row, list | tuple | np.ndarray) for row in prompt):
            return [np.asarray(row) for row in prompt], True
        return [np.asarray(prompt)], False
    raise TypeError(
        f"prompt is {describe(prompt)}; expected token ids, (length,) or (batch, length), or "
        "a list of rows of any lengths"
    )


def list_tokens(name: str, tokens: Any, vocab_size: int) -> list[int]:
    """Return tokens, given as None, as one or as several."""
    if tokens is None:
        return []
    is_list = isinstance(tokens, list | tuple | set | frozenset | range | np.ndarray)
    listed = [*np.ravel(tokens)] if isinstance(tokens, np.ndarray) else tokens
    ids = []
    for token in listed if is_list else [tokens]:
        if isinstance(token, str | bytes | Pattern):
            raise TypeError(
                f"{name} is {describe(tokens)}; expected token ids. tokenizer.ids(text) has those "
                "of a text. To end at a text of several tokens, look for it in what stream yields, "
                "or cut what generate returns: written.split(text)[0]"
            )
        ids.append(checks.whole(name, token, at_least=0, at_most=vocab_size - 1))
    return ids
