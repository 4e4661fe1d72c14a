"""Frequent pairs of neighbouring tokens, and the weights (TF-IDF's idf) of tokens and pairs."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np


def frequent_pairs(
    texts: Iterable[Sequence[int]],
    vocab_size: int,
    *,
    single: Iterable[int] = (),
    most: int = 50_000,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of neighbouring tokens that occur in most texts, and the weights (idf).

    Parameters
    ----------
    texts : iterable of sequences of int
        The token ids of each text.
    vocab_size : int
    single : iterable of int
        Ids that form no pairs, such as those of parts of words.
    most : int
        Maximum number of pairs.

    Returns
    -------
    pairs : int array, shape (n_pairs, 2)
        Sorted.
    idf : float array, shape (vocab_size + n_pairs,)
        log((1 + n_texts) / (1 + number of texts that contain it)) + 1, for tokens, then for pairs;
        0 for a token that no text contains.
    """
    is_single = np.zeros(vocab_size, dtype=bool)
    is_single[list(single)] = True
    n_texts = 0
    token_counts = np.zeros(vocab_size, dtype="int64")  # of the texts that contain a token
    pair_counts: Counter[int] = Counter()  # a pair (i, j) is the number i * vocab_size + j
    for ids in texts:
        text = np.asarray(ids, dtype="int64")
        n_texts += 1
        token_counts[np.unique(text)] += 1
        left, right = text[:-1], text[1:]
        may_pair = ~(is_single[left] | is_single[right])
        pair_numbers = (left * vocab_size + right)[may_pair]
        pair_counts.update(set(pair_numbers.tolist()))
    ranked = sorted(pair_counts, key=lambda pair: (-pair_counts[pair], pair))
    frequent = sorted(ranked[:most])
    pairs = np.array(frequent, dtype="int64")
    counts = np.concatenate([token_counts, [pair_counts[pair] for pair in frequent]])
    idf = np.where(counts > 0, np.log((1.0 + n_texts) / (1.0 + counts)) + 1.0, 0.0)
    return np.stack([pairs // vocab_size, pairs % vocab_size], axis=1), idf
