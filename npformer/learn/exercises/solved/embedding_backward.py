# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
"""The backward pass of an embedding.

    y = table[ids]: for each token id its row of the table.

    dy      (*shape of ids, d)    given
    dtable  (vocab_size, d)

Whole numbers have no gradient. The same id may occur many times.
"""

import numpy as np

# %% Given: the forward pass


def embedding(ids, table):
    """Look up a row for each id."""
    return table[ids], (ids, table.shape)


# %% Your part: the backward pass


def embedding_backward(dy, cache):
    """Return dtable."""
    ids, table_shape = cache
    # your code
    dtable = np.zeros(table_shape, dtype=dy.dtype)
    np.add.at(dtable, ids, dy)
    return dtable
    # end of your code
