# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""The causal mask, also for queries that come after a cache.

Query i is at position begin + i, and key j at position j. A query sees the keys up to its own
position.

    mask    bool, (n_queries, n_keys)    True where the query sees the key

Without a cache begin is 0, and there are as many keys as queries. With one, there are begin more
keys: those of the tokens before.
"""

import numpy as np

# %% Your part


def causal_mask(n_queries, n_keys, begin=0):
    """Return which query sees which key."""
    # your code
    query, key = np.arange(n_queries)[:, None], np.arange(n_keys)
    return key <= begin + query
    # end of your code
