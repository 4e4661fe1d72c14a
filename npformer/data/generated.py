"""Generated tasks that tell mixers apart. A seed means the same data everywhere."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import TypeAlias

import numpy as np

from npformer.core import Seed, checks, initializers
from npformer.data.dataset import Dataset, Part
from npformer.functional import NO_LABEL

Draw: TypeAlias = "Callable[[np.random.Generator, int], Part]"


def _dataset(
    draw: Draw, seed: Seed, train: int, *, vocab_size: int, n_classes: int, labels: str
) -> Dataset:
    rng = initializers.generator(seed)
    return Dataset(
        train=draw(rng, train),
        validation=draw(rng, 512),
        test=draw(rng, 2048),
        vocab_size=vocab_size,
        n_classes=n_classes,
        labels=labels,
    )


def reverse(seed: Seed = 0, train: int = 16_000, length: int = 16, symbols: int = 8) -> Dataset:
    """Say the sequence backwards: token i is labelled with token length - 1 - i.

    Parameters
    ----------
    seed : int or numpy.random.Generator
    train : int
        Training samples.
    length, symbols : int
    """

    def draw(rng: np.random.Generator, n: int) -> Part:
        x = rng.integers(symbols, size=(n, length))
        return x, x[:, ::-1].copy()

    return _dataset(draw, seed, train, vocab_size=symbols, n_classes=symbols, labels="token")


def majority(seed: Seed = 0, train: int = 16_000, length: int = 15) -> Dataset:
    """Which of two symbols occurs more often? The length is odd, so there are no ties.

    Parameters
    ----------
    seed : int or numpy.random.Generator
    train : int
        Training samples.
    length : int
        Odd.
    """
    if length % 2 == 0:
        raise ValueError(f"length is {length}; expected an odd number, so that there are no ties")

    def draw(rng: np.random.Generator, n: int) -> Part:
        x = rng.integers(2, size=(n, length))
        return x, (x.sum(axis=1) > length // 2).astype("int64")

    return _dataset(draw, seed, train, vocab_size=2, n_classes=2, labels="sequence")


def recall(seed: Seed = 0, train: int = 32_000, pairs: int = 8, keys: int = 128) -> Dataset:
    """Multi-query recall: look up, for each of 8 queries, the value that was paired with its key.

    A sequence is 8 pairs and then 8 queries. A pair is one token, which stands for a key and one of
    8 values: token ``8 key + value``. Keys are drawn from 128 and differ, values are random; a
    query is the token of a key, in another order. It is labelled with the value; pairs have no
    label.

    To solve it a mixer has to compare tokens. With few keys it need not: a sum over all pairs is
    then a dictionary small enough for d_model numbers, and any mixer can write and read it. Knowing
    only which values occur, and how often, gives about a third.

    Parameters
    ----------
    seed : int or numpy.random.Generator
    train : int
        Training samples.
    pairs, keys : int
        Pairs in a sequence, of so many keys that there are.
    """
    values = 8
    checks.positive("pairs", pairs)
    if not isinstance(keys, Integral) or keys < pairs:
        raise ValueError(
            f"keys is {keys!r} and pairs {pairs}; expected at least as many keys as pairs, for the "
            "keys of a sequence differ"
        )

    def draw(rng: np.random.Generator, n: int) -> Part:
        key = np.argsort(rng.random((n, keys)), axis=1)[:, :pairs]
        value = rng.integers(values, size=(n, pairs))
        order = np.argsort(rng.random((n, pairs)), axis=1)
        query = keys * values + np.take_along_axis(key, order, axis=1)
        answer = np.take_along_axis(value, order, axis=1)
        x = np.concatenate([key * values + value, query], axis=1)
        y = np.concatenate([np.full_like(answer, NO_LABEL), answer], axis=1)
        return x, y

    return _dataset(
        draw, seed, train, vocab_size=keys * values + keys, n_classes=values, labels="token"
    )


def pointer(seed: Seed = 0, train: int = 16_000, length: int = 16, symbols: int = 8) -> Dataset:
    """Pointer fetch: the last token names a position; which symbol stands there?

    Only the last token is labelled.

    Parameters
    ----------
    seed : int or numpy.random.Generator
    train : int
        Training samples.
    length, symbols : int
        Positions to point at, and symbols that can stand there.
    """

    def draw(rng: np.random.Generator, n: int) -> Part:
        content = rng.integers(symbols, size=(n, length))
        position = rng.integers(length, size=(n, 1))
        x = np.concatenate([content, symbols + position], axis=1)
        y = np.full_like(x, NO_LABEL)
        y[:, -1:] = np.take_along_axis(content, position, axis=1)
        return x, y

    return _dataset(
        draw, seed, train, vocab_size=symbols + length, n_classes=symbols, labels="token"
    )


def parity(seed: Seed = 0, train: int = 16_000, length: int = 12) -> Dataset:
    """Is the number of ones odd? Every bit matters, so nothing is learned from a part of them.

    Parameters
    ----------
    seed : int or numpy.random.Generator
    train : int
        Training samples, drawn from 2^length sequences.
    length : int
    """

    def draw(rng: np.random.Generator, n: int) -> Part:
        x = rng.integers(2, size=(n, length))
        return x, x.sum(axis=1) % 2

    return _dataset(draw, seed, train, vocab_size=2, n_classes=2, labels="sequence")
