"""Parts of a batch whose samples differ in length, which take equally long to compute."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from npformer.core import checks


def shards_by_tokens(lengths: np.ndarray, n: int) -> list[slice]:
    """Return n parts of a batch, of neighbours, of which the largest is as small as possible.

    A part's size is its number of samples times the longest length among them, because each sample
    is padded up to that. No part is empty if there are at least n samples.

    Parameters
    ----------
    lengths : int array, shape (batch,)
        Tokens of each sample, at least 1. This is fast if neighbours often have the same length, as
        in batches by length.
    n : int
    """
    checks.positive("n", n)
    runs = [(length, len(list(same))) for length, same in groupby(lengths.tolist())]
    longest = max((length for length, _ in runs), default=1)
    fewest = max(longest, -(-int(lengths.sum()) // n))
    most = max(longest * -(-len(lengths) // n), fewest)
    while fewest < most:  # parts of at most `most` tokens are enough
        middle = (fewest + most) // 2
        if len(_stops(runs, middle, n)) <= n:
            most = middle
        else:
            fewest = middle + 1
    stops, start, shards = _stops(runs, most, n), 0, []
    stops += [len(lengths)] * (n - len(stops))
    for k, stop in enumerate(stops):
        stop = max(start, min(stop, len(lengths) - (n - 1 - k)))  # leave one for each later part
        shards.append(slice(start, stop))
        start = stop
    return shards


def _stops(runs: list[tuple[int, int]], most: int, n: int) -> list[int]:
    """Return where parts end that take as many samples as `most` tokens allow, n + 1 at most.

    A run is samples of the same length, at most `most`: the length, and how many.
    """
    stops: list[int] = []
    at = start = longest = 0
    for length, count in runs:
        end = at + count
        longest = max(longest, length)
        while (fit := start + most // longest) < end:  # the run goes beyond this part
            start = at = max(at, fit)
            longest = length
            stops.append(start)
            if len(stops) > n:
                return stops
        at = end
    return [*stops, at]
