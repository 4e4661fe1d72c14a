"""Generated tasks that tell mixers apart. A seed gives the same data on every machine.

``seed`` is a whole number or a NumPy generator, and ``train`` the number of training samples.
Another 512 samples are for validation and 2048 for testing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from npformer.core import Seed, checks, enough_memory, generators
from npformer.data.dataset import Dataset, Part
from npformer.functional import NO_LABEL

Draw: TypeAlias = "Callable[[np.random.Generator, int], Part]"


def _dataset(
    draw: Draw,
    seed: Seed,
    train: int,
    length: int,
    *,
    vocab_size: int,
    n_classes: int,
    labels: str = "sequence",
) -> Dataset:
    """Check the sizes and return what `draw` draws; `length` is for messages about memory."""
    train = checks.positive("train", train)
    checks.whole("the number of token ids", vocab_size, at_least=1)
    rng = generators.from_seed(seed)
    with enough_memory("the samples", (train + 512 + 2048, length)):
        return Dataset(
            train=draw(rng, train),
            validation=draw(rng, 512),
            test=draw(rng, 2048),
            n_classes=n_classes,
            vocab_size=vocab_size,
            labels=labels,
        )


def reverse(seed: Seed = 0, train: int = 16_000, length: int = 16, symbols: int = 8) -> Dataset:
    """Reverse the sequence: the label of token i is token length - 1 - i."""
    length, symbols = checks.positive("length", length), checks.positive("symbols", symbols)

    def draw(rng: np.random.Generator, n: int) -> Part:
        x = rng.integers(symbols, size=(n, length))
        return x, x[:, ::-1].copy()

    return _dataset(
        draw, seed, train, length, vocab_size=symbols, n_classes=symbols, labels="token"
    )


def majority(seed: Seed = 0, train: int = 16_000, length: int = 15) -> Dataset:
    """Which of two symbols occurs more often? The length is odd, so there are no ties."""
    length = checks.positive("length", length)
    if length % 2 == 0:
        raise ValueError(f"length is {length}; expected an odd number, so that there are no ties")

    def draw(rng: np.random.Generator, n: int) -> Part:
        x = rng.integers(2, size=(n, length))
        return x, (x.sum(axis=1) > length // 2).astype("int64")

    return _dataset(draw, seed, train, length, vocab_size=2, n_classes=2)


def recall(seed: Seed = 0, train: int = 32_000, pairs: int = 8, keys: int = 128) -> Dataset:
    """Multi-query recall: for each query, find the value that was paired with its key.

    A sequence is 8 pairs and then 8 queries. A pair of a key and one of 8 values is one token,
    ``8 key + value``. The keys of a sequence are 8 different ones of 128; the values are random.
    Each query is a token for one of these keys, in another order, and its label is the key's value.
    Pairs have no label.

    With so many keys, a mixer has to compare tokens. With few keys, a sum over all pairs would fit
    into d_model numbers as a dictionary, which any mixer can write and read. Knowing only how often
    each value occurs gives an accuracy of about one third.
    """
    values = 8
    pairs, keys = checks.positive("pairs", pairs), checks.positive("keys", keys)
    if keys < pairs:
        raise ValueError(
            f"keys is {keys} and pairs {pairs}; expected at least as many keys as pairs, because "
            "the keys of a sequence differ"
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
        draw,
        seed,
        train,
        max(keys, 2 * pairs),
        vocab_size=(values + 1) * keys,
        n_classes=values,
        labels="token",
    )


def pointer(seed: Seed = 0, train: int = 16_000, length: int = 16, symbols: int = 8) -> Dataset:
    """Pointer fetch: the last token names one of the `length` positions before it.

    Its label is the symbol at that position; the other tokens have no label.
    """
    length, symbols = checks.positive("length", length), checks.positive("symbols", symbols)

    def draw(rng: np.random.Generator, n: int) -> Part:
        content = rng.integers(symbols, size=(n, length))
        position = rng.integers(length, size=(n, 1))
        x = np.concatenate([content, symbols + position], axis=1)
        y = np.full_like(x, NO_LABEL)
        y[:, -1:] = np.take_along_axis(content, position, axis=1)
        return x, y

    return _dataset(
        draw,
        seed,
        train,
        length + 1,
        vocab_size=symbols + length,
        n_classes=symbols,
        labels="token",
    )


def parity(seed: Seed = 0, train: int = 16_000, length: int = 12) -> Dataset:
    """Is the number of ones odd? All bits are needed: any fewer say nothing about the answer."""
    length = checks.positive("length", length)

    def draw(rng: np.random.Generator, n: int) -> Part:
        x = rng.integers(2, size=(n, length))
        return x, x.sum(axis=1) % 2

    return _dataset(draw, seed, train, length, vocab_size=2, n_classes=2)
