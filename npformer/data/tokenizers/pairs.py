"""Pairs of neighbours in texts, and how much they and single tokens count: TF-IDF's idf."""

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
    """Return the pairs of tokens that most texts have, and how much each token or pair counts.

    Parameters
    ----------
    texts : iterable of sequences of int
        The token ids of each text.
    vocab_size : int
    single : iterable of int
        Ids that are in no pair, such as those of parts of words.
    most : int
        How many pairs to keep at most.

    Returns
    -------
    pairs : int array, shape (n_pairs, 2)
        Sorted.
    idf : float array, shape (vocab_size + n_pairs,)
        log((1 + n_texts) / (1 + n_texts with it)) + 1, first of tokens, then of pairs. 0 for a
        token that no text has.
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
    kept = sorted(sorted(of_pairs, key=lambda pair: (-of_pairs[pair], pair))[:most])
    pairs = np.array(kept, dtype="int64")
    counts = np.concatenate([of_tokens, [of_pairs[pair] for pair in kept]])
    idf = np.where(counts > 0, np.log((1.0 + n_texts) / (1.0 + counts)) + 1.0, 0.0)
    return np.stack([pairs // vocab_size, pairs % vocab_size], axis=1), idf
