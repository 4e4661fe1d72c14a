"""The class of the generator of a part of a step, from which dropout draws its masks.

It is a separate file because importing numpy.random takes time: `part_generator` imports it when
the first part is computed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from npformer.core.cut_masks import Cut, corner, split_by_sample

JUMP = 0x9E3779B97F4A7C15F39CC0605CEDC835
"""Words from one mask to the next: 2^128 over the golden ratio, as in `PCG64.jumped`. A power of 2
would repeat the low bits of PCG64's state."""

SKIPPED = 1 << 13
"""From this many bytes in a row on, jumping ahead takes less time than drawing and dropping."""


class PartGenerator(np.random.Generator):
    """The generator of a part of a step: see `generators.part_generator`.

    Parameters
    ----------
    own_bits : bit generator
        Of what differs from part to part.
    mask_bits : bit generator
        Of the masks of all parts.
    key, first, n_samples, cut
        As `part_generator` takes them.
    shared : numpy.random.Generator, optional
        Of what is the same in all parts; made from `key` when it is first asked for.
    """

    def __init__(
        self,
        own_bits: Any,
        mask_bits: Any,
        key: int,
        first: int,
        n_samples: int,
        cut: Cut | None,
        shared: np.random.Generator | None = None,
    ) -> None:
        super().__init__(own_bits)
        self.masks = mask_bits
        self.key = key
        self.first = first
        self.n_samples = n_samples
        self.cut = cut
        self._shared = shared

    def __reduce__(self) -> Any:
        state = (
            self.bit_generator,
            self.masks,
            self.key,
            self.first,
            self.n_samples,
            self.cut,
            self._shared,
        )
        return PartGenerator, state

    def spawn(self, n_children: int) -> list[Any]:
        """Return generators that draw independently, as those of NumPy."""
        return np.random.Generator(self.bit_generator).spawn(n_children)

    @property
    def shared(self) -> np.random.Generator:
        """The generator that draws the same in all parts."""
        if self._shared is None:
            seed = np.random.SeedSequence(self.key, spawn_key=(0, 0))
            self._shared = np.random.default_rng(seed)
        return self._shared

    def mask_bytes(self, shape: tuple[int, ...]) -> tuple[float, np.ndarray]:
        """Return a number from [0, 1) for the whole batch, and a byte for each entry of a mask.

        The rows belong to the part's samples if these have equally many, else to all parts. A
        row begins with a new word.
        """
        part_shape = split_by_sample(shape, self.n_samples)
        whole_shape = part_shape if self.cut is None else self.cut.undone(part_shape)
        n, of_sample, *rest = whole_shape
        rows, entries = n * of_sample, math.prod(rest)
        words = -(-entries // 8)  # of a row
        before = self.first * of_sample * words if n == self.n_samples else 0
        uniform = (self.masks.random_raw() >> 11) * 2.0**-53
        if before:
            self.masks.advance(before)
        if whole_shape == part_shape:
            drawn_bytes = self._rows(rows, words, entries)
        else:
            drawn_bytes = corner(
                self._some(rows, words, entries, whole_shape, part_shape), part_shape
            )
        self.masks.advance(JUMP - 1 - before - rows * words)
        return uniform, drawn_bytes

    def _rows(self, rows: int, words: int, entries: int) -> np.ndarray:
        """Return the bytes of rows, (rows, entries)."""
        drawn: np.ndarray = self.masks.random_raw(rows * words).view("uint8")
        return drawn.reshape(rows, 8 * words)[:, :entries]

    def _some(
        self, rows: int, words: int, entries: int, whole: tuple[int, ...], part: tuple[int, ...]
    ) -> np.ndarray:
        """Return the bytes of rows without those that are easy to skip.

        The first axis that was cut divides a row into blocks, whose first bytes count.
        """
        axis = next(i for i in range(len(whole)) if whole[i] != part[i])
        blocks, after = math.prod(whole[2:axis]), math.prod(whole[axis + 1 :])
        block, count = whole[axis] * after, part[axis] * after
        if axis == 1 or block - count < SKIPPED:
            return self._rows(rows, words, entries).reshape(whole)
        drawn, at = np.empty((rows * blocks, count), "uint8"), 0
        for i, bytes_of_block in enumerate(drawn):
            row, j = divmod(i, blocks)
            skipped, odd = divmod(j * block, 8)
            self.masks.advance(row * words + skipped - at)
            block_words = self.masks.random_raw(-(-(odd + count) // 8))
            bytes_of_block[:] = block_words.view("uint8")[odd : odd + count]
            at = row * words + skipped + len(block_words)
        self.masks.advance(rows * words - at)
        return drawn.reshape(*whole[:axis], part[axis], *whole[axis + 1 :])
