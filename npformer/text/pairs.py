"""Pairs of neighbours in texts, and how much they and single tokens say: TF-IDF's idf."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np


def frequent_pairs(
    texts: Iterable[Sequence[int]],
    vocab_size: int,
    *,
    single: Iterable[int] = (),
    least: int = 2,
    most: int = 50_000,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of tokens that are in several texts, and how much each token or pair counts.

    Parameters
    ----------
    texts : iterable of sequences of int
        The token ids of each text.
    vocab_size : int
    single : iterable of int
        Ids that are in no pair, such as those of parts of words.
    least, most : int
        In how many texts a pair must be, and how many pairs are kept: those of the most texts.

    Returns
    -------
    pairs : int array, shape (n_pairs, 2)
        Sorted.
    idf : float array, shape (vocab_size + n_pairs,)
        log((1 + n_texts) / (1 + n_texts with it)) + 1, first of tokens, then of pairs. 0 of a token
        that no text has.
    """
    alone = np.zeros(vocab_size, dtype=bool)
    alone[list(single)] = True
    n_texts, of_tokens = 0, np.zeros(vocab_size, dtype="int64")
    of_pairs: Counter[int] = Counter()
    for ids in texts:
        text = np.asarray(ids, dtype="int64")
        n_texts += 1
        of_tokens[np.unique(text)] += 1
        together = ~(alone[text[:-1]] | alone[text[1:]])
        of_pairs.update(set((text[:-1] * vocab_size + text[1:])[together].tolist()))
    frequent = [(n, pair) for pair, n in of_pairs.items() if n >= least]
    kept = sorted(pair for _, pair in sorted(frequent, key=lambda each: (-each[0], each[1]))[:most])
    pairs = np.array(kept, dtype="int64")
    counts = np.concatenate([of_tokens, [of_pairs[pair] for pair in kept]])
    idf = np.where(counts > 0, np.log((1.0 + n_texts) / (1.0 + counts)) + 1.0, 0.0)
    return np.stack([pairs // vocab_size, pairs % vocab_size], axis=1), idf
